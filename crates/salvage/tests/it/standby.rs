//! What recovery takes away until it ends, and what a file may be beside a regular one: neither is
//! a loss.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_salvage::salvage;
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{Quiet, TempCopy, catch_up, copy_of, seed, server, standby};

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
