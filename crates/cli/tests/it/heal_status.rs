//! `pgclinic heal` with evidence for files of `pg_xact` and `pg_multixact`, and for WAL that is
//! missing in `pg_wal`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgclinic_model::document::{CureOutcome, HealDocument, HealOutcome};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{
    TempCopy, as_primary, copy_of, execute, seed, server, streamed_backup, value,
};

use crate::common::{self, Ran, pgclinic, text};

const ROWS: &str = "SELECT count(*) || md5(string_agg(id::text, ',' ORDER BY id)) FROM public.many";

/// Rows of very many subtransactions, half of them after a backup.
struct Ward {
    copy: TempCopy,
    backup: PathBuf,
    folder: tempfile::TempDir,
    rows: String,
}

fn subtransactions(server: &Server, from: u32, to: u32) {
    let mut session = server.connect("clinic").expect("a session");
    let block = format!(
        "DO $$ BEGIN FOR i IN {from}..{to} LOOP BEGIN
             INSERT INTO public.many VALUES (i); PERFORM 1 / (i % 10);
         EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$"
    );
    session.execute(&block).expect("subtransactions");
}

impl Ward {
    fn new() -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let folder = tempfile::tempdir().expect("a directory");
        let backup = folder.path().join("backup");
        let mut running = copy
            .start_with(&as_primary().with("wal_keep_size", "512MB"))
            .expect("a server");
        execute(&running, "CREATE TABLE public.many (id int)");
        subtransactions(&running, 1, 5000);
        streamed_backup(&running, &backup, None);
        subtransactions(&running, 5001, 10000);
        let rows = value(&running, ROWS);
        running.stop(StopMode::Fast).expect("a stop");
        Ward {
            copy,
            backup,
            folder,
            rows,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.copy.pgdata.join(name)
    }

    fn heal(&self, words: &[&str]) -> Ran {
        let line = ["heal", text(&self.copy.pgdata), "--format", "json"];
        pgclinic(&[&line[..], words].concat())
    }

    #[track_caller]
    fn is_whole_again(&self) {
        let mut running = self.copy.start().expect("a server");
        assert_eq!(value(&running, ROWS), self.rows);
        running.stop(StopMode::Fast).expect("a stop");
        common::check_json(&self.copy.pgdata, 0);
    }
}

fn document(ran: &Ran) -> HealDocument {
    serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ran.out, ran.err))
}

#[track_caller]
fn assert_cures(document: &HealDocument, cure: &str, paths: &[&str], safety: Safety) {
    let own: Vec<&str> = document
        .cures
        .iter()
        .map(|own| own.place.path.as_str())
        .collect();
    assert_eq!(own, paths, "{:?}", document.not_healed);
    let all = document.cures.iter();
    let odd = all.filter(|own| own.name != cure || own.safety != safety);
    assert_eq!(odd.collect::<Vec<_>>(), Vec::<&_>::new());
}

#[test]
fn a_missing_file_comes_back_and_goes_again_with_undo() {
    let ward = Ward::new();
    let before = common::files(&ward.copy.pgdata);
    let file = ward.path("pg_xact/0000");
    fs::remove_file(&file).expect("a file");
    let backup = ["--backup", text(&ward.backup)];
    let planned = document(&ward.heal(&backup).exits(3));
    assert_cures(&planned, "restore-status", &["pg_xact/0000"], Safety::Exact);
    assert!(!file.exists(), "a plan writes nothing");

    let plan = ward.folder.path().join("plan.json");
    ward.heal(&[&backup[..], &["--save", text(&plan)]].concat())
        .exits(0);
    let healed = document(&ward.heal(&["--apply", text(&plan), "--yes"]).exits(3));
    assert_eq!(
        healed.outcome,
        HealOutcome::PartlyUndecided,
        "tables were not looked at"
    );
    assert_eq!(healed.cures[0].outcome, CureOutcome::Healed);
    assert_eq!(
        fs::read(&file).ok().as_ref(),
        before.get(&file),
        "byte for byte"
    );
    let journal = healed.applied.expect("it was written").journal;
    pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert!(!file.exists(), "undone");

    ward.heal(&[&backup[..], &["--yes"]].concat()).exits(3);
    ward.is_whole_again();
}

#[test]
fn a_cut_file_and_zeroed_sectors_come_back() {
    let ward = Ward::new();
    let file = ward.path("pg_xact/0000");
    let whole = fs::read(&file).expect("a file");
    let backup = ["--backup", text(&ward.backup), "--yes"];
    let cut = fs::File::options().write(true).open(&file).expect("a file");
    cut.set_len(4096).expect("a cut");
    let healed = document(&ward.heal(&backup).exits(3));
    assert_cures(&healed, "restore-status", &["pg_xact/0000"], Safety::Exact);
    assert_eq!(fs::read(&file).expect("a file"), whole);

    let zeroed = fs::File::options().write(true).open(&file);
    let zeroed = zeroed.expect("a file");
    zeroed.write_all_at(&[0; 512], 1024).expect("a write");
    let healed = document(&ward.heal(&backup).exits(3));
    assert_cures(&healed, "restore-status", &["pg_xact/0000"], Safety::Exact);
    assert_eq!(fs::read(&file).expect("a file"), whole);
    ward.is_whole_again();
}

/// A copy without a manifest may be wrong itself; a word of its own takes it all the same.
#[test]
fn a_copy_that_nothing_confirms_is_lossy() {
    let ward = Ward::new();
    fs::remove_file(ward.backup.join("backup_manifest")).expect("a manifest");
    let offsets = ward.path("pg_xact/0000");
    fs::remove_file(&offsets).expect("a file");
    let words = ["--backup", text(&ward.backup)];
    let planned = document(&ward.heal(&words).exits(3));
    assert_cures(&planned, "restore-status", &["pg_xact/0000"], Safety::Lossy);
    let consent = ["--accept", planned.cures[0].id.as_str()];
    ward.heal(&[&words[..], &consent].concat()).exits(3);
    ward.is_whole_again();
}

/// Moves segments into an archive, the first of them compressed.
fn archived(ward: &Ward, names: &[String]) -> PathBuf {
    let archive = ward.folder.path().join("archive");
    fs::create_dir(&archive).expect("a directory");
    for (number, name) in names.iter().enumerate() {
        let from = ward.path("pg_wal").join(name);
        let bytes = fs::read(&from).expect("a segment");
        fs::remove_file(&from).expect("a segment");
        let to = archive.join(name);
        fs::write(&to, bytes).expect("a segment");
        if number == 0 {
            let packed = Command::new("gzip").arg(&to).status();
            assert!(packed.expect("gzip").success());
        }
    }
    archive
}

/// The segments that recovery reads.
fn segments(pgdata: &Path) -> Vec<String> {
    let entries = fs::read_dir(pgdata.join("pg_wal")).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut names: Vec<String> = names.map(|name| name.expect("UTF-8")).collect();
    names.retain(|name| name.len() == 24);
    names.sort();
    names
}

/// A server that crashed with WAL of several segments behind its checkpoint, and its rows.
fn crashed() -> (Ward, Vec<String>) {
    let mut ward = Ward::new();
    let mut running = ward
        .copy
        .start_with(&as_primary().with("checkpoint_timeout", "1h"))
        .expect("a server");
    execute(&running, "CHECKPOINT");
    let redo = value(
        &running,
        "SELECT pg_walfile_name(redo_lsn) FROM pg_control_checkpoint()",
    );
    for _ in 0..3 {
        execute(
            &running,
            "CREATE TABLE IF NOT EXISTS public.filler (t text);
             INSERT INTO public.filler SELECT repeat('x', 1000) FROM generate_series(1, 3000);
             SELECT pg_switch_wal()",
        );
    }
    subtransactions(&running, 10001, 10500);
    ward.rows = value(&running, ROWS);
    let last = value(&running, "SELECT pg_walfile_name(pg_current_wal_lsn())");
    running.kill();
    fs::remove_file(ward.path("postmaster.pid")).expect("its file");
    let mut names = segments(&ward.copy.pgdata);
    names.retain(|name| (redo.as_str()..=last.as_str()).contains(&name.as_str()));
    (ward, names)
}

#[test]
fn wal_that_a_crashed_server_needs_is_put_in_its_place() {
    let (ward, names) = crashed();
    assert!(names.len() >= 4, "{names:?}");
    let missing = &names[..names.len() - 1];
    let before = common::files(&ward.copy.pgdata);
    let archive = archived(&ward, missing);
    let words = ["--wal", text(&archive)];
    let planned = document(&ward.heal(&words).exits(3));
    let paths: Vec<String> = missing
        .iter()
        .map(|name| format!("pg_wal/{name}"))
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_cures(&planned, "restore-wal-segment", &paths, Safety::Exact);
    assert!(planned.obstacles.is_empty(), "recovery is what it is for");

    let healed = document(&ward.heal(&[&words[..], &["--yes"]].concat()).exits(3));
    assert!(
        healed
            .cures
            .iter()
            .all(|own| own.outcome == CureOutcome::Healed),
        "{healed:?}"
    );
    for path in paths {
        let path = ward.path(path);
        assert!(
            fs::read(&path).ok().as_ref() == before.get(&path),
            "byte for byte"
        );
    }
    ward.is_whole_again();
}

#[test]
fn a_gap_that_the_archive_has_too_is_left() {
    let (ward, names) = crashed();
    let archive = archived(&ward, &names[..names.len() - 1]);
    // The second one; the first is compressed.
    fs::remove_file(archive.join(&names[1])).expect("a segment");
    let ran = ward.heal(&["--wal", text(&archive)]).exits(3);
    let planned = document(&ran);
    let own = planned.cures.iter();
    assert_eq!(
        own.filter(|own| own.name == "restore-wal-segment").count(),
        0
    );
    assert!(
        ran.err.contains("missing WAL is not put in its place"),
        "{}",
        ran.err
    );
}

/// The last segment is never in an archive before it is full.
#[test]
fn an_end_that_only_the_archive_has_is_lossy() {
    let (ward, names) = crashed();
    let archive = archived(&ward, &names);
    fs::remove_file(archive.join(&names[names.len() - 1])).expect("a segment");
    let planned = document(&ward.heal(&["--wal", text(&archive)]).exits(3));
    assert!(!planned.cures.is_empty());
    let own = planned.cures.iter();
    assert_eq!(own.filter(|own| own.safety == Safety::Exact).count(), 0);
}
