//! `measure`, `salvage` and `diff` on the data directory of a server at work: after a checkpoint
//! what they say of the stopped cluster, under load nothing that is not so, and damage is told.

use pgclinic_model::document::{
    Copy, DiffDocument, DiffVerdict, Difference, MeasureDocument, MeasuredRelation, Outcome,
    SalvageReport,
};

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use common::{Ran, pgclinic, text};
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_testkit::{
    CHANGES, Load, TempCopy, all_majors, as_primary, busy, catch_up, copy_of, execute, overwrite,
    seed, standby, started, streamed_backup, value, while_it_restarts,
};

#[track_caller]
fn measure(pgdata: &Path, exits: &[u8]) -> MeasureDocument {
    let ran = pgclinic(&["measure", text(pgdata), "--format", "json"]);
    assert!(exits.contains(&ran.exit), "{}: {}", ran.exit, ran.err);
    let document: MeasureDocument = serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ran.out, ran.err));
    assert!(document.coverage.is_balanced(), "{:?}", document.coverage);
    document
}

fn figures_are_those_of_the_stopped(major: u16) {
    let (copy, mut server) = started(major, Checksums::On, &StartOptions::default());
    execute(&server, CHANGES);
    let running = measure(&copy.pgdata, &[0]);
    let state = running.target.state.as_deref().unwrap_or_default();
    assert!(state.starts_with("running"), "{state}");
    assert!(running.notes.iter().any(|note| note.contains("is running")));
    let words = pgclinic(&["measure", text(&copy.pgdata)]).exits(0);
    assert!(
        words.out.starts_with("MEASURED (running)  "),
        "{}",
        words.out
    );
    server.stop(StopMode::Fast).expect("a stop");

    let stopped = measure(&copy.pgdata, &[0]);
    assert!(stopped.notes.is_empty());
    assert_eq!(running.relations.len(), stopped.relations.len());
    for (now, then) in stopped.relations.iter().zip(&running.relations) {
        assert_eq!(then, now);
    }
    assert_eq!(running.databases, stopped.databases);
    assert_eq!(running.hints, stopped.hints);
}

#[test]
fn figures_of_a_running_13_are_those_of_the_stopped_cluster() {
    figures_are_those_of_the_stopped(13);
}

#[test]
fn figures_of_a_running_18_are_those_of_the_stopped_cluster() {
    figures_are_those_of_the_stopped(18);
}

/// The figures of a table that transactions elsewhere do not change: its age grows with each of
/// them.
fn still(own: &MeasuredRelation) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut table = own.sections.get("table").expect("a table").clone();
    for age in ["relfrozenxid_age", "relminmxid_age"] {
        table.remove(age).expect("an age");
    }
    table
}

/// What the load leaves alone has its figures; nothing is called broken.
#[test]
fn figures_under_load_are_told_without_an_error() {
    for checksums in [Checksums::On, Checksums::Off] {
        let (copy, mut server) = started(15, checksums, &busy());
        let load = Load::start(&server, &[CHANGES]);
        let measured: Vec<_> = (0..6).map(|_| measure(&copy.pgdata, &[0, 3])).collect();
        assert!(load.stop() > 0);
        server.stop(StopMode::Fast).expect("a stop");
        let named = |document: &MeasureDocument, name: &str| {
            let mut all = document.relations.iter();
            all.find(|own| own.relation.as_deref() == Some(name))
                .cloned()
        };
        let stopped = measure(&copy.pgdata, &[0]);
        for document in &measured {
            for own in &document.relations {
                assert_eq!(own.pages_not_measured, 0, "{}", own.name());
            }
            let frozen = named(document, "frozen").expect("nobody touches it");
            let now = named(&stopped, "frozen").expect("nobody touches it");
            assert_eq!(still(&frozen), still(&now));
            assert!(named(document, "docs").is_some(), "it never goes");
        }
    }
}

#[test]
fn a_page_overwritten_under_a_server_is_not_measured() {
    let (copy, server) = started(18, Checksums::On, &StartOptions::default());
    let path = value(&server, "SELECT pg_relation_filepath('public.frozen')");
    overwrite(&copy.pgdata.join(&path), 8192 + 8);
    let document = measure(&copy.pgdata, &[3]);
    let broken = document.relations.iter();
    let broken = broken.filter(|own| own.pages_not_measured > 0);
    let broken: Vec<_> = broken
        .map(|own| (&*own.path, own.pages_not_measured))
        .collect();
    assert_eq!(broken, [(&*path, 1)]);
}

/// A salvage into a folder of its own: the account, and all files but that.
struct Salvaged {
    account: SalvageReport,
    files: BTreeMap<String, Vec<u8>>,
    ran: Ran,
}

impl Salvaged {
    #[track_caller]
    fn of(pgdata: &Path, exits: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let out = folder.path().join("out");
        let ran = pgclinic(&["salvage", text(pgdata), "--to", text(&out), "--no-sync"]);
        assert!(
            exits.contains(&ran.exit),
            "{}: {}{}",
            ran.exit,
            ran.out,
            ran.err
        );
        let account = fs::read(out.join("salvage.json")).expect("an account");
        let account = serde_json::from_slice(&account).expect("a document");
        let files = common::files(&out).into_iter();
        let named = files.map(|(path, bytes)| {
            let path = path.strip_prefix(&out).expect("below the directory");
            (text(path).to_owned(), bytes)
        });
        let of_account = ["salvage.json", "salvage.html"];
        let files = named.filter(|(name, _)| !of_account.contains(&name.as_str()));
        let files = files.collect();
        Salvaged {
            account,
            files,
            ran,
        }
    }

    /// The first column of a table.
    fn column(&self, file: &str) -> Vec<String> {
        let bytes = self.files.get(file).unwrap_or_else(|| panic!("no {file}"));
        let lines = String::from_utf8_lossy(bytes);
        let rows = lines.lines().skip(1);
        rows.map(|line| line.split(',').next().unwrap_or_default().to_owned())
            .collect()
    }
}

fn rows_are_those_of_the_stopped(major: u16) {
    let (copy, mut server) = started(major, Checksums::On, &StartOptions::default());
    execute(&server, CHANGES);
    // Behind the checkpoint: one change that committed, and one that never will.
    execute(
        &server,
        "INSERT INTO public.fresh VALUES (-1, 'behind the checkpoint')",
    );
    let mut open = server.connect("clinic").expect("a session");
    open.execute("BEGIN; UPDATE public.fresh SET what = 'never'; DELETE FROM public.frozen")
        .expect("changes");
    execute(
        &server,
        "CHECKPOINT; INSERT INTO public.fresh VALUES (-2, 'in the WAL only')",
    );
    let running = Salvaged::of(&copy.pgdata, &[3]);
    assert!(
        running.ran.out.starts_with("INCOMPLETE (running)  "),
        "{}",
        running.ran.out
    );
    // No checkpoint of a running server writes those, and nothing else is open.
    let mut open_ends = running.account.not_salvaged.iter();
    assert!(
        open_ends.all(|own| own.inherent || own.what.starts_with("rows of the unlogged table")),
        "{}",
        running.ran.out
    );
    assert_eq!(running.account.source.as_deref(), Some("running"));
    assert!(
        running.ran.out.contains("salvage postgres://"),
        "{}",
        running.ran.out
    );
    drop(open);
    server.stop(StopMode::Fast).expect("a stop");

    let stopped = Salvaged::of(&copy.pgdata, &[0]);
    assert_eq!(stopped.account.source, None);
    // What loads the files is written of stopped clusters only.
    let names = |own: &Salvaged| {
        let files = own.files.keys().filter(|name| !name.ends_with("load.sql"));
        files.cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(&running), names(&stopped));
    for (name, bytes) in stopped
        .files
        .iter()
        .filter(|(name, _)| !name.ends_with("load.sql"))
    {
        assert!(running.files.get(name) == Some(bytes), "{name} differs");
    }
    let fresh = running.column("clinic/public.fresh.csv");
    assert_eq!(fresh.len(), 3002);
    assert!(fresh.contains(&"-1".to_owned()) && fresh.contains(&"-2".to_owned()));
}

#[test]
fn rows_of_a_running_13_are_those_of_the_stopped_cluster() {
    rows_are_those_of_the_stopped(13);
}

#[test]
fn rows_of_a_running_18_are_those_of_the_stopped_cluster() {
    rows_are_those_of_the_stopped(18);
}

/// Nothing that is sound is called lost, no row comes twice, and what stood still is whole.
#[test]
fn rows_under_load_are_neither_lost_nor_doubled() {
    for checksums in [Checksums::On, Checksums::Off] {
        let (copy, mut server) = started(15, checksums, &busy());
        let before = Salvaged::of(&copy.pgdata, &[0, 3]);
        let load = Load::start(&server, &[CHANGES]);
        for _ in 0..6 {
            let now = Salvaged::of(&copy.pgdata, &[0, 3]);
            assert_ne!(now.account.outcome, Outcome::Damaged, "{}", now.ran.out);
            let frozen = "clinic/public.frozen.csv";
            assert!(now.files.get(frozen) == before.files.get(frozen));
            let ids = now.column("clinic/public.docs.csv");
            let once: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(once.len(), ids.len(), "a row came twice");
        }
        assert!(load.stop() > 0);
        server.stop(StopMode::Fast).expect("a stop");
    }
}

#[test]
fn a_page_overwritten_under_a_server_is_a_loss_of_its_table() {
    let (copy, server) = started(18, Checksums::On, &StartOptions::default());
    let path = value(&server, "SELECT pg_relation_filepath('public.frozen')");
    overwrite(&copy.pgdata.join(&path), 8192 + 6000);
    let salvaged = Salvaged::of(&copy.pgdata, &[1]);
    assert!(
        salvaged.ran.out.starts_with("DAMAGED (running)  "),
        "{}",
        salvaged.ran.out
    );
    let hurt = salvaged.account.tables.iter();
    let hurt = hurt.filter(|table| !table.places.is_empty());
    let hurt: Vec<_> = hurt
        .map(|table| {
            (
                &*table.table,
                table.places.iter().map(|own| own.block).collect(),
            )
        })
        .collect();
    let places: BTreeSet<u32> = hurt
        .iter()
        .flat_map(|(_, own): &(_, Vec<u32>)| own.clone())
        .collect();
    assert_eq!((hurt.len(), hurt[0].0), (1, "frozen"));
    assert_eq!(places, BTreeSet::from([1]));
}

#[test]
fn what_does_not_go_with_a_running_server_is_refused() {
    let (copy, server) = started(15, Checksums::On, &as_primary());
    let target = pgclinic_servers::ConnectionTarget::of(&server, "clinic").to_string();
    let to_itself = [
        "salvage",
        text(&copy.pgdata),
        "--database",
        "clinic",
        "--to",
        &target,
    ];
    let refused = pgclinic(&to_itself).exits(2);
    assert!(
        refused.err.contains("go into a directory"),
        "{}",
        refused.err
    );
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let recover = [
        "salvage",
        text(&copy.pgdata),
        "--recover",
        "--to",
        text(&out),
    ];
    let refused = pgclinic(&recover).exits(2);
    assert!(refused.err.contains("is running on"), "{}", refused.err);
}

#[track_caller]
fn diff(a: &Path, b: &Path, exit: u8) -> DiffDocument {
    let ran = pgclinic(&["diff", text(a), text(b), "--format", "json"]).exits(exit);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

#[test]
fn a_running_primary_and_its_backup_are_explained_by_wal() {
    let (copy, server) = started(18, Checksums::On, &as_primary());
    let scratch = tempfile::tempdir().expect("a directory");
    let backup = scratch.path().join("backup");
    streamed_backup(&server, &backup, None);
    let load = Load::start(&server, &[CHANGES]);
    for _ in 0..4 {
        let document = diff(&copy.pgdata, &backup, 0);
        assert!(matches!(
            document.verdict,
            DiffVerdict::Same | DiffVerdict::Explained
        ));
        let state = document.a.state.as_deref().unwrap_or_default();
        assert!(state.starts_with("running"), "{state}");
        diff(&backup, &copy.pgdata, 0);
    }
    assert!(load.stop() > 0);
    let path = value(&server, "SELECT pg_relation_filepath('public.frozen')");
    overwrite(&copy.pgdata.join(&path), 8192 + 6000);
    let document = diff(&copy.pgdata, &backup, 1);
    let fork = document.forks.first().expect("a fork");
    assert_eq!(fork.relation.as_deref(), Some("frozen"));
    let told: Vec<_> = fork
        .blocks
        .iter()
        .map(|own| (own.block, own.difference, own.copy))
        .collect();
    assert_eq!(told, [(1, Difference::Unsound, Some(Copy::A))]);
}

/// Few buffers and many checkpoints on both, so that pages reach both disks at different times.
#[test]
fn a_primary_and_its_standby_at_work_are_explained_by_wal() {
    let installation = all_majors().pop().expect("the newest");
    let seeded = seed(&installation, Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let senders = busy().with("max_wal_senders", "4");
    let primary = first.start_with(&senders.with("wal_keep_size", "1GB"));
    let primary = primary.expect("a primary");
    let follower = standby(&second, &primary, busy());
    let load = Load::start(&primary, &[CHANGES]);
    for _ in 0..6 {
        for (a, b) in [(&first, &second), (&second, &first)] {
            diff(&a.pgdata, &b.pgdata, 0);
        }
    }
    assert!(load.stop() > 0);
    let mut session = primary.connect("clinic").expect("a session");
    catch_up(&mut session, &follower);
    let path = value(&primary, "SELECT pg_relation_filepath('public.frozen')");
    overwrite(&second.pgdata.join(&path), 8192 + 6000);
    let document = diff(&first.pgdata, &second.pgdata, 1);
    let told: Vec<_> = document
        .forks
        .iter()
        .filter(|fork| fork.relation.as_deref() == Some("frozen"))
        .flat_map(|fork| &fork.blocks)
        .map(|own| (own.block, own.difference, own.copy))
        .collect();
    assert_eq!(told, [(1, Difference::Unsound, Some(Copy::B))]);
}

fn copy_of_18() -> TempCopy {
    copy_of(&seed(
        &all_majors().pop().expect("the newest"),
        Checksums::On,
    ))
}

#[test]
fn figures_of_a_server_that_restarts_are_told_without_an_error() {
    let copy = copy_of_18();
    while_it_restarts(&copy, || {
        for _ in 0..5 {
            let document = measure(&copy.pgdata, &[0, 3]);
            for own in &document.relations {
                assert_eq!(own.pages_not_measured, 0, "{}", own.name());
            }
            assert!(document.relations.len() > 10);
        }
    });
}

#[test]
fn rows_of_a_server_that_restarts_are_not_lost() {
    let copy = copy_of_18();
    let before = Salvaged::of(&copy.pgdata, &[0, 3]);
    while_it_restarts(&copy, || {
        for _ in 0..5 {
            let now = Salvaged::of(&copy.pgdata, &[0, 3]);
            assert_ne!(now.account.outcome, Outcome::Damaged, "{}", now.ran.out);
            let frozen = "clinic/public.frozen.csv";
            assert!(now.files.get(frozen) == before.files.get(frozen));
        }
    });
}

#[test]
fn a_copy_of_a_server_that_restarts_does_not_contradict_it() {
    let copy = copy_of_18();
    let scratch = tempfile::tempdir().expect("a directory");
    let backup = scratch.path().join("backup");
    let mut server = copy.start_with(&as_primary()).expect("a server");
    streamed_backup(&server, &backup, None);
    server.stop(StopMode::Fast).expect("a stop");
    while_it_restarts(&copy, || {
        for _ in 0..5 {
            for (a, b) in [(&copy.pgdata, &backup), (&backup, &copy.pgdata)] {
                let ran = pgclinic(&["diff", text(a), text(b)]);
                assert!(matches!(ran.exit, 0 | 3), "{}{}", ran.out, ran.err);
            }
        }
    });
}
