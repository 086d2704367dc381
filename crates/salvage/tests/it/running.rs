//! The rows of a cluster whose server works: between the moment in which the files were listed and
//! that in which they are read, something happens.

use pgclinic_cluster::{Cluster, LIVE_LIMITS, OpenOptions};
use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};
use pgclinic_model::{Glob, Progress};

use crate::common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use common::options;
use pgclinic_salvage::{SalvageOptions, salvage};
use pgclinic_servers::{Checksums, Server, Session};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, all_majors, copy_of, seed};
use std::os::unix::fs::FileExt;

/// Statements that run when a look has listed its files and has read none yet.
struct Meanwhile {
    session: Mutex<Session>,
    statements: Mutex<Vec<&'static str>>,
    /// A table is expected once a look, and more than once where it has long values: the first time
    /// counts.
    expected: Mutex<usize>,
}

impl Progress for Meanwhile {
    fn expect(&self, _bytes: u64) {
        *self.expected.lock().expect("no panic") += 1;
        let next = self.statements.lock().expect("no panic").pop();
        for statement in next.into_iter().flat_map(|sql| sql.split(';')) {
            let mut session = self.session.lock().expect("no panic");
            session.execute(statement).expect(statement);
        }
    }

    fn advance(&self, _bytes: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

fn started(major: u16) -> (TempCopy, Server) {
    let mut all = all_majors().into_iter();
    let installation = all.find(|one| one.major == major).expect("a major");
    let copy = copy_of(&seed(&installation, Checksums::On));
    let server = copy.start().expect("a server");
    (copy, server)
}

fn salvaged(
    pgdata: &Path,
    session: Session,
    deeds: &[&'static str],
    options: &SalvageOptions,
) -> SalvageReport {
    let source = DataDirectory::open_beside_a_server(pgdata).expect("a directory");
    let cluster = Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster");
    let meanwhile = Meanwhile {
        session: Mutex::new(session),
        statements: Mutex::new(deeds.iter().rev().copied().collect()),
        expected: Mutex::default(),
    };
    let account = salvage(&cluster, options, &meanwhile).expect("a destination");
    assert!(*meanwhile.expected.lock().expect("no panic") > 0);
    account
}

/// The salvage of `public.docs` alone.
fn docs_of(major: u16, deeds: &[&'static str]) -> (SalvageReport, usize, Vec<u8>) {
    let (copy, server) = started(major);
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let mut options = options(&out, "csv");
    options.selection.databases = vec![Glob::new("clinic")];
    options.selection.relations = vec![Glob::new("public.docs")];
    let session = server.connect("clinic").expect("a session");
    let account = salvaged(&copy.pgdata, session, deeds, &options);
    let csv = out.join("clinic/public.docs.csv");
    let bytes = std::fs::read(&csv).unwrap_or_default();
    let parts = std::fs::read_dir(out.join("clinic")).map_or(0, Iterator::count);
    (account, parts, bytes)
}

fn docs(account: &SalvageReport) -> &TableAccount {
    let [docs] = account.tables.as_slice() else {
        panic!("{} tables", account.tables.len());
    };
    docs
}

#[test]
fn a_table_that_is_dropped_meanwhile_is_accounted_for() {
    for major in [13, 18] {
        let deed = "DROP TABLE public.docs; CHECKPOINT";
        let (account, files, _) = docs_of(major, &[deed]);
        assert_eq!(
            account.outcome,
            Outcome::Whole,
            "{:?}",
            account.not_salvaged
        );
        assert!(account.tables.is_empty());
        let mut told = account.not_salvaged.iter();
        let told = told.find(|gap| gap.what == "table public.docs of database clinic");
        assert_eq!(told.expect("an entry").why, "dropped meanwhile");
        assert_eq!(files, 0, "nothing is left of its file");
    }
}

#[test]
fn tables_that_move_meanwhile_are_followed() {
    for major in [13, 18] {
        let (still, _, before) = docs_of(major, &[]);
        assert_eq!(still.outcome, Outcome::Whole);
        let rows = docs(&still).rows.written;
        assert!(rows > 100);
        for deed in [
            "VACUUM FULL public.docs; CHECKPOINT",
            "ALTER TABLE public.docs SET TABLESPACE annex; CHECKPOINT",
            "VACUUM FULL pg_catalog.pg_class; REINDEX TABLE pg_catalog.pg_class; CHECKPOINT",
        ] {
            let (account, files, bytes) = docs_of(major, &[deed]);
            assert_ne!(account.outcome, Outcome::Damaged, "{deed}: {account:?}");
            assert_eq!((docs(&account).rows.written, files), (rows, 1), "{deed}");
            let sorted = |bytes: &[u8]| {
                let mut lines: Vec<Vec<u8>> = bytes
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect();
                lines.sort();
                lines
            };
            assert!(sorted(&bytes) == sorted(&before), "{deed}");
        }
    }
}

#[test]
fn rows_are_those_of_one_moment_though_pages_are_of_later_ones() {
    for major in [13, 18] {
        let deed = "UPDATE public.docs SET title = title || ' later'; INSERT INTO public.docs (id, title, body) VALUES (-7, 'later', ''); CHECKPOINT";
        let (account, _, bytes) = docs_of(major, &[deed]);
        assert_eq!(account.outcome, Outcome::Incomplete, "{:?}", account.tables);
        assert!(docs(&account).changed_pages > 0);
        assert!(
            account
                .not_salvaged
                .iter()
                .any(|gap| gap.why.contains("the server wrote these pages"))
        );
        let (_, _, before) = docs_of(major, &[]);
        assert!(bytes == before, "as they were before the change");
    }
}

#[test]
fn a_cut_table_has_the_rows_of_a_newer_look() {
    let deed = "DELETE FROM public.docs WHERE id > 10; VACUUM public.docs; CHECKPOINT";
    let (account, _, _) = docs_of(15, &[deed]);
    assert_ne!(account.outcome, Outcome::Damaged, "{account:?}");
    assert_eq!(docs(&account).rows.lost, 0);
}

#[test]
fn a_table_that_moves_at_every_look_is_unsettled_and_not_damaged() {
    let deeds = ["VACUUM FULL public.docs; CHECKPOINT"; LIVE_LIMITS.rounds as usize];
    let (account, _, _) = docs_of(18, &deeds);
    assert_eq!(account.outcome, Outcome::Incomplete, "{:?}", account.tables);
    assert!(docs(&account).unsettled);
}

/// A table that no VACUUM has counted yet: its index alone knows what it lost.
#[test]
fn what_an_index_knows_is_missed_of_a_table_that_nobody_counted() {
    for (checksums, loses) in [
        (Checksums::On, true),
        (Checksums::Off, true),
        (Checksums::On, false),
    ] {
        let mut all = all_majors().into_iter();
        let installation = all.find(|one| one.major == 15).expect("15");
        let copy = copy_of(&seed(&installation, checksums));
        let server = copy.start().expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        for table in ["shorter", "zeroed"] {
            let make = format!(
                "CREATE TABLE public.{table} (id int PRIMARY KEY, what text) WITH (autovacuum_enabled = off)"
            );
            session.execute(&make).expect("a table");
            let fill = format!(
                "INSERT INTO public.{table} SELECT g, repeat('x', 200) FROM generate_series(1, 3400) AS g"
            );
            session.execute(&fill).expect("100 blocks");
        }
        session.execute("CHECKPOINT").expect("a checkpoint");
        let mut file_of = |table: &str| {
            let sql = format!("SELECT pg_relation_filepath('public.{table}')");
            let path = session.query_value(&sql).expect("a path").expect("a file");
            let mut options = std::fs::File::options();
            options
                .write(true)
                .open(copy.pgdata.join(path))
                .expect("its file")
        };
        let (shorter, zeroed) = (file_of("shorter"), file_of("zeroed"));
        if loses {
            shorter.set_len(8192 * 60).expect("cut");
            zeroed.write_all_at(&[0; 8192], 8192 * 50).expect("zeroed");
        }
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = options(&folder.path().join("out"), "csv");
        options.selection.databases = vec![Glob::new("clinic")];
        options.selection.relations = vec![Glob::new("public.shorter"), Glob::new("public.zeroed")];
        let account = salvaged(&copy.pgdata, session, &[], &options);
        let lost: Vec<_> = account
            .tables
            .iter()
            .map(|table| (&*table.table, table.rows.lost_known))
            .collect();
        let (outcome, expected) = if loses {
            (Outcome::Damaged, [("shorter", 40 * 34), ("zeroed", 34)])
        } else {
            (Outcome::Whole, [("shorter", 0), ("zeroed", 0)])
        };
        assert_eq!(account.outcome, outcome, "{:?}", account.not_salvaged);
        assert_eq!(lost, expected);
    }
}
