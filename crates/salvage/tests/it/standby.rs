//! What recovery takes away until it ends, and what a file may be beside a regular one: neither is
//! a loss.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_salvage::{SalvageError, salvage, salvage_live};
use pgclinic_servers::{Checksums, ConnectionTarget, StartOptions, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{
    Quiet, TempCopy, as_primary, catch_up, copy_of, seed, server, standby, streamed_backup,
};

use crate::common::{options, salvaged, session};

const WORK: [&str; 4] = [
    "CREATE UNLOGGED TABLE public.fleeting (id int PRIMARY KEY, body text)",
    "INSERT INTO public.fleeting SELECT n, repeat(md5(n::text), 200) FROM generate_series(1, 300) n",
    "CREATE TABLE public.lasting (id int PRIMARY KEY)",
    "INSERT INTO public.lasting SELECT generate_series(1, 1000)",
];

fn primary_options() -> StartOptions {
    StartOptions::default()
        .with("max_wal_senders", "4")
        .with("wal_keep_size", "1GB")
}

fn postgres_of(copy: &TempCopy) -> SalvageReport {
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "csv");
    options.selection.databases = vec![pgclinic_model::Glob::new("postgres")];
    salvaged(&copy.pgdata, &options)
}

fn lasting_rows(account: &SalvageReport) -> u64 {
    let mut tables = account.tables.iter();
    let lasting = tables.find(|table| table.table == "lasting");
    lasting.expect("a table").rows.written
}

#[test]
fn a_standby_has_no_main_fork_of_an_unlogged_table_and_lacks_nothing() {
    let seeded = seed(&server(15), Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let mut primary = first.start_with(&primary_options()).expect("a primary");
    let mut standby = standby(&second, &primary, StartOptions::default());
    let mut session = session(&primary, "postgres");
    WORK.iter().for_each(|sql| session.execute(sql).expect(sql));
    catch_up(&mut session, &standby);
    let source = DataDirectory::open_beside_a_server(&second.pgdata).expect("a directory");
    let running = Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvage(
        &running,
        &options(&folder.path().join("out"), "csv"),
        &Quiet,
    );
    let account = account.expect("a destination");
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    let live = options(&folder.path().join("live"), "csv");
    let target = ConnectionTarget::of(&standby, "postgres");
    let account = salvage_live(&target, &live, &Quiet).expect("a salvage");
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    assert_eq!(lasting_rows(&account), 1000);
    let mut told = account.not_salvaged.iter();
    let told = told.any(|gap| gap.inherent && gap.what.ends_with("public.fleeting"));
    assert!(told, "{:?}", account.not_salvaged);
    standby.stop(StopMode::Fast).expect("stopped");
    let account = postgres_of(&second);
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    assert_eq!(lasting_rows(&account), 1000);
    drop(session);
    primary.stop(StopMode::Fast).expect("stopped");
    // A primary has it.
    let path = path_of(&first, "fleeting");
    std::fs::remove_file(first.pgdata.join(path)).expect("a file");
    assert_eq!(postgres_of(&first).outcome, Outcome::Damaged);
}

/// WAL on disk drops a table that the standby is to keep for another hour.
#[test]
fn a_standby_that_waits_is_not_whole_at_the_end_of_wal() {
    let seeded = seed(&server(15), Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let mut primary = first.start_with(&primary_options()).expect("a primary");
    let settings = second.pgdata.join("postgresql.auto.conf");
    std::fs::write(settings, "recovery_min_apply_delay = '1h'\n").expect("a setting");
    let mut standby = standby(&second, &primary, StartOptions::default());
    let mut writing = session(&primary, "clinic");
    writing.execute("DROP TABLE public.docs").expect("dropped");
    let end = writing.query_value("SELECT pg_current_wal_flush_lsn()");
    let end = end.expect("a position").expect("a position");
    let mut waiting = session(&standby, "clinic");
    let received = format!("SELECT pg_last_wal_receive_lsn() >= '{end}'");
    while waiting
        .query_value(&received)
        .expect("an answer")
        .as_deref()
        != Some("t")
    {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // The lock of DROP TABLE came, its commit waits.
    let rows = "SELECT count(*) FROM pg_class WHERE oid = 'public.docs'::regclass";
    let found = waiting.query_value(rows).expect("an answer");
    assert_eq!(found.as_deref(), Some("1"));
    drop((writing, waiting));
    standby.stop(StopMode::Fast).expect("stopped");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&second.pgdata, &options(&folder.path().join("out"), "csv"));
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let mut gaps = account.not_salvaged.iter();
    let told = gaps.any(|gap| gap.why.contains("recovery_min_apply_delay = '1h'"));
    assert!(told, "{:?}", account.not_salvaged);
    primary.stop(StopMode::Fast).expect("stopped");
}

/// No page and no index tells of a table's rows; the manifest does.
#[test]
fn a_backup_that_is_not_as_its_manifest_has_it_is_not_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut primary = copy.start_with(&as_primary()).expect("a server");
    let mut session = session(&primary, "postgres");
    let make = "CREATE TABLE public.keyless AS SELECT generate_series(1, 3000) AS id";
    session.execute(make).expect("a table");
    let path = session.query_value("SELECT pg_relation_filepath('public.keyless')");
    let path = path.expect("a path").expect("a path");
    let folder = tempfile::tempdir().expect("a directory");
    let backup = folder.path().join("backup");
    streamed_backup(&primary, &backup, None);
    drop(session);
    primary.stop(StopMode::Fast).expect("stopped");
    let account = salvaged(&backup, &options(&folder.path().join("whole"), "csv"));
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    let mut nothing = options(&folder.path().join("nothing"), "csv");
    nothing.selection.relations = vec![pgclinic_model::Glob::new("nosuch")];
    let refused = salvage(&pgclinic_testkit::open(&backup), &nothing, &Quiet);
    assert!(matches!(refused, Err(SalvageError::NothingSelected)));
    let file = backup.join(path);
    let bytes = std::fs::read(&file).expect("a file");
    let mut older = bytes.clone();
    older[8192..16384].copy_from_slice(&bytes[..8192]);
    for (name, hurt) in [("shorter", &bytes[..8192]), ("another", &older)] {
        std::fs::write(&file, hurt).expect("a write");
        let account = salvaged(&backup, &options(&folder.path().join(name), "csv"));
        let mut gaps = account.not_salvaged.iter();
        let told = gaps.any(|gap| gap.why.contains("backup_manifest") && !gap.inherent);
        assert!(told, "{name}: {:?}", account.not_salvaged);
        assert_ne!(account.outcome, Outcome::Whole, "{name}");
    }
    std::fs::write(&file, bytes).expect("as it was");
    let manifest = backup.join("backup_manifest");
    let words = std::fs::read(&manifest).expect("a manifest");
    for (name, hurt) in [
        ("zeros", vec![0; words.len()]),
        ("half", words[..words.len() / 2].into()),
    ] {
        std::fs::write(&manifest, hurt).expect("a write");
        let account = salvaged(&backup, &options(&folder.path().join(name), "csv"));
        assert_eq!(account.outcome, Outcome::Incomplete, "{name}: {account:#?}");
    }
}

/// The file of a table in `public` of `postgres`.
fn path_of(copy: &TempCopy, table: &str) -> String {
    let cluster = pgclinic_testkit::open(&copy.pgdata);
    let database = cluster.databases.values();
    let database = database
        .clone()
        .find(|own| own.name.as_deref() == Some("postgres"));
    let oid = database.expect("a database").oid;
    let catalog = cluster.catalog(oid);
    let relation = catalog.relations.values().find(|own| own.name == table);
    format!("base/{oid}/{}", relation.expect("a table").filenode)
}

#[test]
fn a_link_is_read_and_a_pipe_is_out_of_reach_stopped_and_crashed() {
    for stop in [StopMode::Fast, StopMode::Immediate] {
        let copy = copy_of(&seed(&server(15), Checksums::Off));
        let mut running = copy.start().expect("a server");
        let mut session = session(&running, "postgres");
        for sql in WORK
            .iter()
            .chain(&["CHECKPOINT", "INSERT INTO public.lasting VALUES (0)"])
        {
            session.execute(sql).expect(sql);
        }
        drop(session);
        running.stop(stop).expect("stopped");
        let file = copy.pgdata.join(path_of(&copy, "lasting"));
        let elsewhere = copy.pgdata.join("elsewhere");
        std::fs::rename(&file, &elsewhere).expect("moved");
        symlink(&elsewhere, &file).expect("a link");
        let account = postgres_of(&copy);
        assert_eq!(account.outcome, Outcome::Whole, "{stop:?} {account:#?}");
        assert_eq!(lasting_rows(&account), 1001);
        std::fs::remove_file(&file).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.expect("mkfifo").success());
        let account = postgres_of(&copy);
        assert_eq!(
            account.outcome,
            Outcome::Incomplete,
            "{stop:?} {account:#?}"
        );
    }
}
