//! `pgclinic heal --scratch`: pages of indexes that a real server rolls forward from a backup, in a
//! cluster of their files alone.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pgclinic_diff::are_alike;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Fork, Page};
use pgclinic_model::document::{HealDocument, HealOutcome};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Installation, Server, StartOptions, StopMode};
use pgclinic_testkit::{
    TempCopy, all_majors, as_primary, copy_of, execute, seed, server, streamed_backup, value,
};

use crate::common::{self, Ran, pgclinic, text};
use crate::heal_evidence::{PAGE, document};

const BEFORE: &str = "CREATE TABLE public.leaves (id int, words int[], place point, tag text);
    CREATE INDEX of_btree ON public.leaves (id);
    CREATE INDEX of_gin ON public.leaves USING gin (words) WITH (fastupdate = off);
    CREATE INDEX of_gist ON public.leaves USING gist (place);
    CREATE INDEX of_spgist ON public.leaves USING spgist (place);
    CREATE INDEX of_hash ON public.leaves USING hash (tag);
    CREATE INDEX of_brin ON public.leaves USING brin (id) WITH (pages_per_range = 1);
    INSERT INTO public.leaves SELECT g * 3 % 10007, ARRAY[g % 100, g], point(g % 97, g % 89), md5(g::text)
        FROM generate_series(1, 5000) AS g";
const AFTER: [&str; 4] = [
    "INSERT INTO public.leaves SELECT g * 3 % 10007, ARRAY[g % 100, g], point(g % 97, g % 89), md5(g::text)
        FROM generate_series(5001, 9000) AS g",
    "SELECT pg_switch_wal()",
    "DELETE FROM public.leaves WHERE id % 11 = 0",
    "VACUUM public.leaves",
];
const METHODS: [(&str, AccessMethod); 6] = [
    ("of_btree", AccessMethod::Btree),
    ("of_gin", AccessMethod::Gin),
    ("of_gist", AccessMethod::Gist),
    ("of_spgist", AccessMethod::Spgist),
    ("of_hash", AccessMethod::Hash),
    ("of_brin", AccessMethod::Brin),
];

/// A stopped cluster with a backup from before its indexes grew.
struct Leaves {
    copy: TempCopy,
    backup: PathBuf,
    directory: tempfile::TempDir,
    /// The file of each index.
    files: Vec<(String, AccessMethod)>,
}

impl Leaves {
    fn new(checksums: Checksums) -> Self {
        Leaves::of(&server(15), checksums)
    }

    fn of(installation: &Installation, checksums: Checksums) -> Self {
        let copy = copy_of(&seed(installation, checksums));
        let directory = tempfile::tempdir().expect("a directory");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).expect("a mode");
        let backup = directory.path().join("backup");
        let mut running = copy.start_with(&all_wal_kept()).expect("a server");
        execute(&running, BEFORE);
        streamed_backup(&running, &backup, None);
        for sql in AFTER {
            execute(&running, sql);
            execute(&running, "SELECT pg_switch_wal()");
        }
        execute(
            &running,
            "INSERT INTO public.leaves SELECT g, ARRAY[g % 100, g], point(g % 97, g % 89), md5(g::text) FROM generate_series(1, 3000) AS g",
        );
        let path =
            |index: &str| value(&running, &format!("SELECT pg_relation_filepath('{index}')"));
        let files = METHODS.iter().map(|(index, method)| (path(index), *method));
        let files = files.collect();
        running.stop(StopMode::Fast).expect("a stop");
        Leaves {
            copy,
            backup,
            directory,
            files,
        }
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.copy.pgdata.join(path)).expect("a file")
    }

    fn page(&self, path: &str, block: u32) -> Vec<u8> {
        let at = usize::try_from(u64::from(block) * PAGE).expect("an offset");
        self.bytes(path)[at..][..8192].to_vec()
    }

    /// The block that changed last, of those after the first.
    fn last_changed(&self, path: &str) -> u32 {
        let bytes = self.bytes(path);
        let pages = (0u32..).zip(bytes.chunks_exact(8192)).skip(1);
        let last = pages.max_by_key(|(_, page)| Page::parse(page).map(Page::pd_lsn));
        last.expect("more than one page").0
    }

    fn hurt(&self, path: &str, block: u32) {
        let file = fs::File::options()
            .write(true)
            .open(self.copy.pgdata.join(path));
        let garbage: Vec<u8> = (0..700).map(|at| (at * 37 % 251) as u8).collect();
        file.expect("a file")
            .write_all_at(&garbage, u64::from(block) * PAGE)
            .expect("a write");
    }

    fn heal(&self, words: &[&str]) -> Ran {
        let line = ["heal", text(&self.copy.pgdata), "--format", "json"];
        pgclinic(&[&line[..], words].concat())
    }

    fn start(&self) -> Server {
        self.copy.start().expect("a server")
    }
}

fn all_wal_kept() -> StartOptions {
    as_primary().with("wal_keep_size", "512MB")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
    names.sort();
    names
}

fn reasons(document: &HealDocument) -> String {
    let why = document.not_healed.iter().flat_map(|own| own.why.clone());
    why.collect::<Vec<_>>().join("\n")
}

#[test]
fn pages_of_every_access_method_come_back_as_the_server_left_them() {
    let ward = Leaves::new(Checksums::On);
    let mut lost = Vec::new();
    for (path, method) in &ward.files {
        let block = ward.last_changed(path);
        lost.push((path.clone(), *method, block, ward.page(path, block)));
        ward.hurt(path, block);
    }
    let hurt = common::files(&ward.copy.pgdata);
    let backup = common::files(&ward.backup);
    let scratch = ward.directory.path().join("scratch");
    let words = ["--backup", text(&ward.backup), "--index-pages"];
    let without = document(&ward.heal(&words).exits(3));
    assert!(without.cures.is_empty(), "{:?}", without.cures);
    assert!(reasons(&without).contains("with --scratch"), "{without:?}");
    let words = [&words[..], &["--scratch", "--scratch-in", text(&scratch)]].concat();
    let planned = document(&ward.heal(&words).exits(3));
    assert_eq!(planned.cures.len(), lost.len(), "{}", reasons(&planned));
    let is_exact = |cure: &pgclinic_model::document::Cure| {
        let mut evidence = cure.evidence.iter();
        cure.safety == Safety::Exact && evidence.any(|own| own.contains("in a scratch cluster"))
    };
    assert!(planned.cures.iter().all(is_exact), "{:?}", planned.cures);
    assert_eq!(common::files(&ward.copy.pgdata), hurt, "nothing is written");
    assert_eq!(common::files(&ward.backup), backup, "nor to the backup");
    assert_eq!(names(&scratch), Vec::<String>::new(), "nothing is left");

    let healed = document(&ward.heal(&[&words[..], &["--yes"]].concat()).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    for (path, method, block, before) in &lost {
        let now = ward.page(path, *block);
        let lsn = |page: &[u8]| Page::parse(page).map(Page::pd_lsn);
        assert_eq!(lsn(&now), lsn(before), "{method:?}");
        let pair = (now.as_slice(), before.as_slice());
        assert!(
            are_alike(pair, Fork::Main, Some(*method), *block),
            "{method:?}"
        );
    }
    let journal = healed.applied.expect("it was written").journal;
    pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert_eq!(common::files(&ward.copy.pgdata), hurt, "the first bytes");

    let plan = ward.directory.path().join("plan.json");
    ward.heal(&[&words[..], &["--save", text(&plan)]].concat())
        .exits(0);
    let apply = ["--apply", text(&plan), "--scratch-in", text(&scratch)];
    ward.heal(&[&apply[..], &["--yes"]].concat()).exits(0);
    common::check_json(&ward.copy.pgdata, 0);
    let mut running = ward.start();
    execute(&running, "ALTER EXTENSION amcheck SET SCHEMA public");
    execute(
        &running,
        "SELECT public.bt_index_parent_check('of_btree', true)",
    );
    running.stop(StopMode::Fast).expect("a stop");
}

/// Without data checksums nothing vouches for the page of a backup; an image in WAL does.
#[test]
fn an_image_since_the_backup_makes_up_for_checksums() {
    let ward = Leaves::new(Checksums::Off);
    let (path, method) = &ward.files[0];
    let block = ward.last_changed(path);
    let before = ward.page(path, block);
    ward.hurt(path, block);
    let words = ["--index-pages", "--scratch", "--yes"];
    let words = [&["--backup", text(&ward.backup)][..], &words].concat();
    let healed = document(&ward.heal(&words).exits(0));
    assert_eq!(healed.cures[0].safety, Safety::Exact);
    let now = ward.page(path, block);
    let pair = (now.as_slice(), before.as_slice());
    assert!(are_alike(pair, Fork::Main, Some(*method), block));
}

#[test]
fn a_gap_in_wal_and_a_foreign_backup_prove_nothing() {
    let ward = Leaves::new(Checksums::On);
    let (path, _) = &ward.files[0];
    ward.hurt(path, ward.last_changed(path));
    let words = ["--pages", "--index-pages", "--scratch", "--yes"];
    let other = copy_of(&seed(&server(15), Checksums::Off));
    let foreign = [&words[..], &["--backup", text(&other.pgdata)]].concat();
    let foreign = document(&ward.heal(&foreign).exits(3));
    assert!(foreign.cures.is_empty() && foreign.applied.is_none());
    let why = reasons(&foreign);
    assert!(why.contains("it is of another cluster"), "{why}");

    let own = ward.copy.pgdata.join("pg_wal");
    let is_segment = |name: &String| name.len() == 24;
    let last = names(&ward.backup.join("pg_wal"))
        .into_iter()
        .rfind(is_segment);
    let segments = names(&own).into_iter().filter(is_segment);
    let mut since = segments.filter(|name| Some(name) > last.as_ref());
    let gap = since.nth(1).expect("segments since the backup");
    fs::remove_file(own.join(gap)).expect("a segment");
    let hurt = common::files(&ward.copy.pgdata);
    let words = [&words[..], &["--backup", text(&ward.backup)]].concat();
    let planned = document(&ward.heal(&words).exits(3));
    assert!(planned.cures.is_empty() && planned.applied.is_none());
    let why = reasons(&planned);
    assert!(why.contains("--scratch: WAL ends before"), "{why}");
    assert!(planned.not_healed.iter().any(|own| {
        let mut commands = own.commands.iter();
        own.path == *path && commands.any(|own| own.starts_with("REINDEX INDEX public.of_btree;"))
    }));
    assert_eq!(common::files(&ward.copy.pgdata), hurt);
}

#[test]
fn the_server_of_every_major_rolls_its_pages_forward() {
    for installation in all_majors() {
        let ward = Leaves::of(&installation, Checksums::On);
        let (path, method) = &ward.files[0];
        let block = ward.last_changed(path);
        let before = ward.page(path, block);
        ward.hurt(path, block);
        let words = ["--backup", text(&ward.backup), "--index-pages", "--scratch"];
        ward.heal(&[&words[..], &["--yes"]].concat()).exits(0);
        let now = ward.page(path, block);
        let pair = (now.as_slice(), before.as_slice());
        let version = &installation.version;
        assert!(
            are_alike(pair, Fork::Main, Some(*method), block),
            "{version}"
        );
    }
}

/// A database that was created since the backup is in no copy that recovery could begin with.
#[test]
fn what_the_backup_lacks_keeps_no_other_page_back() {
    let ward = Leaves::new(Checksums::On);
    let mut running = ward.copy.start_with(&all_wal_kept()).expect("a server");
    execute(&running, "CREATE DATABASE later");
    let mut session = running.connect("later").expect("a session");
    session
        .execute("CREATE TABLE t (id int PRIMARY KEY)")
        .expect("a table");
    session
        .execute("INSERT INTO t SELECT generate_series(1, 3000)")
        .expect("rows");
    let later = session.query_value("SELECT pg_relation_filepath('t_pkey')");
    let later = later.expect("an answer").expect("a path");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    let (path, method) = &ward.files[0];
    let block = ward.last_changed(path);
    let before = ward.page(path, block);
    ward.hurt(path, block);
    ward.hurt(&later, 1);
    let words = ["--backup", text(&ward.backup), "--index-pages", "--scratch"];
    let healed = document(&ward.heal(&[&words[..], &["--yes"]].concat()).exits(1));
    let now = ward.page(path, block);
    let pair = (now.as_slice(), before.as_slice());
    assert!(are_alike(pair, Fork::Main, Some(*method), block));
    assert!(reasons(&healed).contains("--scratch"), "{healed:?}");
}
