//! `pgclinic heal` with evidence: pages that WAL and a backup prove come back as they were, and
//! what nothing proves stays as it is.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_model::document::{HealDocument, HealOutcome};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{
    TempCopy, as_primary, copy_of, execute, seed, server, streamed_backup, value,
};

use crate::common::{self, Ran, pgclinic, text};

const BEFORE: &str = "CREATE TABLE public.papers (id int PRIMARY KEY, v text, big text);
    ALTER TABLE public.papers ALTER big SET STORAGE EXTERNAL;
    INSERT INTO public.papers SELECT g, md5(g::text), repeat('z', CASE WHEN g % 50 = 0 THEN 5000 ELSE 9 END)
        FROM generate_series(1, 4000) AS g";
const AFTER: &str = "UPDATE public.papers SET v = 'u' || id WHERE id % 3 = 0;
    DELETE FROM public.papers WHERE id % 7 = 0;
    INSERT INTO public.papers SELECT g, 'n', 'n' FROM generate_series(5000, 6000) AS g";
pub(crate) const ROWS: &str =
    "SELECT md5(string_agg(id || v || big, ',' ORDER BY id)) FROM public.papers";
pub(crate) const PAGE: u64 = 8192;

/// A stopped cluster with a backup from the middle of its life.
pub(crate) struct Ward {
    pub(crate) copy: TempCopy,
    pub(crate) backup: PathBuf,
    _folder: tempfile::TempDir,
    pub(crate) table: String,
    toast: String,
    pub(crate) key: String,
    pub(crate) rows: String,
}

impl Ward {
    pub(crate) fn new() -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let folder = tempfile::tempdir().expect("a directory");
        let backup = folder.path().join("backup");
        let mut running = copy
            .start_with(&as_primary().with("wal_keep_size", "512MB"))
            .expect("a server");
        execute(&running, BEFORE);
        streamed_backup(&running, &backup, None);
        execute(&running, AFTER);
        execute(&running, "VACUUM public.papers");
        let path = |of: &str| value(&running, &format!("SELECT pg_relation_filepath({of})"));
        let (table, key) = (path("'public.papers'"), path("'public.papers_pkey'"));
        let toast = "(SELECT reltoastrelid FROM pg_class WHERE relname = 'papers')";
        let toast = path(toast);
        let rows = value(&running, ROWS);
        running.stop(StopMode::Fast).expect("a stop");
        Ward {
            copy,
            backup,
            _folder: folder,
            table,
            toast,
            key,
            rows,
        }
    }

    pub(crate) fn hurt(&self, path: &str, block: u64) {
        let file = fs::File::options()
            .write(true)
            .open(self.copy.pgdata.join(path));
        let file = file.expect("a file");
        let garbage: Vec<u8> = (0..600).map(|at| (at * 31 % 251) as u8).collect();
        file.write_all_at(&garbage, block * PAGE + 300)
            .expect("a write");
    }

    pub(crate) fn heal(&self, words: &[&str]) -> Ran {
        let line = ["heal", text(&self.copy.pgdata), "--format", "json"];
        pgclinic(&[&line[..], words].concat())
    }

    pub(crate) fn start(&self) -> Server {
        self.copy.start().expect("a server")
    }
}

pub(crate) fn document(ran: &Ran) -> HealDocument {
    serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ran.out, ran.err))
}

/// Takes what lies in a `pg_wal` away, so that nothing but the backup proves anything.
pub(crate) fn without_wal(pgdata: &Path) -> PathBuf {
    let aside = pgdata.with_extension("wal-aside");
    fs::create_dir(&aside).expect("a directory");
    for entry in fs::read_dir(pgdata.join("pg_wal")).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.path().is_file() {
            fs::rename(entry.path(), aside.join(entry.file_name())).expect("a move");
        }
    }
    aside
}

#[test]
fn a_healthy_cluster_has_nothing_to_heal() {
    let ward = Ward::new();
    let healthy = document(&ward.heal(&[]).exits(0));
    assert_eq!(healthy.outcome, HealOutcome::NothingToHeal);
    assert!(healthy.cures.is_empty() && healthy.applied.is_none());
}

#[test]
fn pages_come_back_from_a_backup_and_the_wal_since() {
    let ward = Ward::new();
    for block in [0, 7, 20] {
        ward.hurt(&ward.table, block);
    }
    ward.hurt(&ward.toast, 1);
    ward.hurt(&ward.key, 3);
    let hurt = common::files(&ward.copy.pgdata);
    let backup = ["--backup", text(&ward.backup)];
    let planned = document(&ward.heal(&backup).exits(3));
    assert_eq!(planned.cures.len(), 4, "{:?}", planned.not_healed);
    assert_eq!(
        common::files(&ward.copy.pgdata),
        hurt,
        "a plan writes nothing"
    );
    let not_healed: Vec<_> = planned.not_healed.iter().map(|own| &own.path).collect();
    assert_eq!(not_healed, [&ward.key], "an index is rebuilt");

    let healed = document(&ward.heal(&[&backup[..], &["--yes"]].concat()).exits(1));
    let journal = healed.applied.expect("it was written").journal;
    pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert_eq!(
        common::files(&ward.copy.pgdata),
        hurt,
        "the first bytes are back"
    );
    ward.heal(&[&backup[..], &["--yes"]].concat()).exits(1);
    let mut running = ward.start();
    execute(&running, "REINDEX INDEX public.papers_pkey");
    assert_eq!(value(&running, ROWS), ward.rows);
    running.stop(StopMode::Fast).expect("a stop");
    common::check_json(&ward.copy.pgdata, 0);
}

#[test]
fn a_saved_plan_is_proven_again_and_an_edited_one_is_refused() {
    let ward = Ward::new();
    ward.hurt(&ward.table, 5);
    ward.hurt(&ward.table, 7);
    let plans = tempfile::tempdir().expect("a directory");
    let plan = plans.path().join("plan.json");
    ward.heal(&["--backup", text(&ward.backup), "--save", text(&plan)])
        .exits(0);
    let whole = fs::read_to_string(&plan).expect("a plan");
    let edited = whole.replacen("\"block\": 5", "\"block\": 6", 1);
    assert_ne!(edited, whole);
    let wrong = plans.path().join("edited.json");
    fs::write(&wrong, edited).expect("a write");
    ward.heal(&["--apply", text(&wrong), "--yes"]).exits(2);
    // A request goes with its cure, so that what is left is a plan for what is left.
    let mut shorter: HealDocument = serde_json::from_str(&whole).expect("JSON");
    shorter.request.remove(0);
    shorter.cures.remove(0);
    assert!(!shorter.cures.is_empty(), "something is left");
    fs::write(&wrong, serde_json::to_vec(&shorter).expect("JSON")).expect("a write");
    let refused = ward.heal(&["--apply", text(&wrong), "--yes"]).exits(2);
    assert!(
        refused.err.contains("the plan was edited"),
        "{}",
        refused.err
    );
    let healed = document(&ward.heal(&["--apply", text(&plan), "--yes"]).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    let mut running = ward.start();
    assert_eq!(value(&running, ROWS), ward.rows);
    running.stop(StopMode::Fast).expect("a stop");
}

#[test]
fn what_nothing_proves_is_listed_and_stays() {
    let ward = Ward::new();
    ward.hurt(&ward.table, 5);
    let hurt = common::files(&ward.copy.pgdata);
    let other = copy_of(&seed(&server(15), Checksums::Off));
    let _wal = without_wal(&ward.copy.pgdata);
    let backup_wal = without_wal(&ward.backup);
    for entry in fs::read_dir(&backup_wal).expect("a directory") {
        fs::remove_file(entry.expect("an entry").path()).expect("a file");
    }
    let foreign = ward
        .heal(&["--pages", "--backup", text(&other.pgdata), "--yes"])
        .exits(3);
    assert!(document(&foreign).cures.is_empty(), "of another cluster");
    let alone = document(
        &ward
            .heal(&["--pages", "--backup", text(&ward.backup), "--yes"])
            .exits(3),
    );
    assert!(alone.cures.is_empty() && alone.applied.is_none());
    // The WAL that was taken away is damage of its own.
    let (page, rest): (Vec<_>, Vec<_>) = alone.not_healed.iter().partition(|own| own.needs_loss);
    assert!(
        rest.iter().all(|own| own.path.starts_with("pg_wal")),
        "{rest:?}"
    );
    assert_eq!(page.len(), 1);
    assert!(page[0].path == ward.table && !page[0].why.is_empty());
    let table = ward.copy.pgdata.join(&ward.table);
    assert_eq!(fs::read(&table).ok().as_ref(), hurt.get(&table));
}

/// What is damaged and is no page must not be passed over: nothing to heal means nothing is wrong.
#[test]
fn damage_that_is_no_page_is_never_nothing_to_heal() {
    let wounds: [fn(&Ward); 2] = [
        |ward| fs::remove_file(ward.copy.pgdata.join("pg_xact/0000")).expect("a file"),
        |ward| fs::remove_dir_all(ward.copy.pgdata.join("pg_twophase")).expect("a directory"),
    ];
    for (number, wound) in wounds.into_iter().enumerate() {
        let ward = Ward::new();
        wound(&ward);
        let planned = document(&ward.heal(&["--backup", text(&ward.backup)]).exits(3));
        assert_eq!(planned.outcome, HealOutcome::Planned, "wound {number}");
        let is_named = !planned.not_healed.is_empty() || !planned.cures.is_empty();
        assert!(is_named, "wound {number}");
    }
}

/// A backup whose own page was zeroed would make an empty page of a damaged one.
#[test]
fn a_page_of_zeros_in_a_backup_proves_nothing() {
    let ward = Ward::new();
    let mut running = ward.copy.start_with(&as_primary()).expect("a server");
    execute(
        &running,
        "CREATE TABLE public.still AS SELECT g FROM generate_series(1, 5000) AS g",
    );
    execute(&running, "CHECKPOINT");
    running.stop(StopMode::Fast).expect("a stop");
    let mut running = ward.copy.start_with(&as_primary()).expect("a server");
    let path = value(&running, "SELECT pg_relation_filepath('public.still')");
    let backup = ward.backup.with_extension("later");
    streamed_backup(&running, &backup, None);
    running.stop(StopMode::Fast).expect("a stop");
    // Only the backup knows the page: WAL from before it is gone.
    let names = fs::read_dir(backup.join("pg_wal")).expect("a directory");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    let first = names
        .filter(|name| name.len() == 24)
        .min()
        .expect("a segment");
    for entry in fs::read_dir(ward.copy.pgdata.join("pg_wal")).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.file_name().len() == 24 && entry.file_name() < first {
            fs::remove_file(entry.path()).expect("a segment");
        }
    }
    ward.hurt(&path, 3);
    // Line pointers alone would follow from the tuples.
    let file = fs::File::options()
        .write(true)
        .open(ward.copy.pgdata.join(&path));
    file.expect("a file")
        .write_all_at(&[0x5A; 900], 3 * PAGE + 5000)
        .expect("a write");
    let words = ["--backup", text(&backup)];
    let sound = document(&ward.heal(&words).exits(3));
    assert_eq!(sound.cures.len(), 1, "{:?}", sound.not_healed);
    let file = fs::File::options().write(true).open(backup.join(&path));
    file.expect("a file")
        .write_all_at(&[0; 8192], 3 * PAGE)
        .expect("a write");
    let zeroed = document(&ward.heal(&[&words[..], &["--yes"]].concat()).exits(3));
    assert!(zeroed.cures.is_empty() && zeroed.applied.is_none());
    let why = zeroed.not_healed.iter().flat_map(|own| &own.why);
    assert!(why.into_iter().any(|why| why.contains("all zero")));
}

/// The copy has a rule of its own for who gets in: nobody is asked for a password there.
#[test]
fn a_server_that_asks_for_passwords_proves_all_the_same() {
    let ward = Ward::new();
    ward.hurt(&ward.table, 7);
    let rules = ward.copy.pgdata.join("pg_hba.conf");
    let strict = "local all all scram-sha-256\n";
    fs::write(&rules, strict).expect("a write");
    let words = ["--backup", text(&ward.backup), "--yes", "--prove"];
    let healed = document(&ward.heal(&words).exits(0));
    let proof = healed.proof.expect("a server read it");
    assert!(proof.holds(), "{proof:?}");
    let rules = fs::read_to_string(rules).expect("a file");
    assert_eq!(rules, strict, "the cluster's own rules stay");
}

/// The server logs 32 numbers before it gives them, so that only a sequence that was set back and
/// has given none since is what its last record says.
#[test]
fn a_sequence_from_wal_goes_on_later_and_gives_no_number_twice() {
    let ward = Ward::new();
    let mut running = ward.start();
    execute(
        &running,
        "CREATE SEQUENCE public.given; CREATE SEQUENCE public.set_back;
         SELECT nextval('public.given') FROM generate_series(1, 5);
         SELECT nextval('public.set_back'), setval('public.set_back', 70, false)",
    );
    let path = |name: &str| value(&running, &format!("SELECT pg_relation_filepath('{name}')"));
    let (given, set_back) = (path("public.given"), path("public.set_back"));
    running.stop(StopMode::Fast).expect("a stop");
    let page = || fs::read(ward.copy.pgdata.join(&set_back)).expect("a file");
    let before = page();
    ward.hurt(&given, 0);
    ward.hurt(&set_back, 0);

    let healed = document(&ward.heal(&["--yes"]).exits(3));
    assert_eq!(page(), before, "an exact cure gives the page back");
    let cure_of = |path: &str| {
        let mut cures = healed.cures.iter();
        cures.find(|cure| cure.place.path == path).expect("a cure")
    };
    assert_eq!(cure_of(&set_back).safety, Safety::Exact);
    let later = cure_of(&given);
    assert_eq!(later.safety, Safety::Lossy);
    assert!(
        later.summary.contains("goes on after 33"),
        "{}",
        later.summary
    );
    assert!(
        later.warnings[0].contains("none is given twice"),
        "{:?}",
        later.warnings
    );

    ward.heal(&["--accept", &later.id]).exits(0);
    let mut running = ward.start();
    let next = "SELECT nextval('public.given') || ' ' || nextval('public.set_back')";
    assert_eq!(value(&running, next), "34 70");
    running.stop(StopMode::Fast).expect("a stop");
}

/// What could not be read for want of a catalog's page can be once the page is back.
#[test]
fn catalogs_that_come_back_leave_nothing_of_what_they_kept_from_the_check() {
    let ward = Ward::new();
    let (directory, _) = ward.table.rsplit_once('/').expect("a path");
    // pg_class, pg_attribute and pg_index.
    for filenode in [1259, 1249, 2610] {
        ward.hurt(&format!("{directory}/{filenode}"), 0);
    }
    let backup = ["--backup", text(&ward.backup)];
    let planned = document(&ward.heal(&backup).exits(3));
    assert!(!planned.not_checked.is_empty(), "catalogs are damaged");
    let healed = document(&ward.heal(&[&backup[..], &["--yes"]].concat()).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    assert!(healed.not_checked.is_empty(), "{:?}", healed.not_checked);
    common::check_json(&ward.copy.pgdata, 0);
}
