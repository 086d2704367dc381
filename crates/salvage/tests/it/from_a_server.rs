//! A salvage from a running server that refuses some of its pages, and that crashes in between.

use pgclinic_model::document::SalvageReport;
use pgclinic_model::{Glob, Progress};

use crate::common;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use common::{Lines, copied, options, session};
use pgclinic_salvage::salvage_live;
use pgclinic_servers::{Checksums, ConnectionTarget, Server, Session, StopMode};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, seed, server};

/// Kills a backend when the first table is done, once: the postmaster then ends all others and
/// starts again.
struct Accident<'a> {
    server: &'a Server,
    victim: Mutex<Option<Session>>,
}

impl Progress for Accident<'_> {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {
        let Some(mut victim) = self.victim.lock().expect("one at a time").take() else {
            return;
        };
        let pid = victim
            .query_value("SELECT pg_backend_pid()")
            .expect("a process");
        assert_ne!(pid, Some(self.server.pid().to_string()));
        let killed = std::process::Command::new("kill")
            .args(["-9", &pid.expect("a number")])
            .status();
        assert!(killed.is_ok_and(|status| status.success()));
    }
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The file of a relation and bytes for a place in it.
fn hurt(copy: &TempCopy, path: &str, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(copy.pgdata.join(path));
    file.and_then(|file| file.write_all_at(bytes, at))
        .expect("hurt");
}

fn path_of(server: &Server, relation: &str) -> String {
    let mut session = server.connect("clinic").expect("a session");
    let path = session.query_value(&format!("SELECT pg_relation_filepath({relation})"));
    path.expect("a path").expect("a file")
}

const TOAST_OF_DOCS: &str =
    "(SELECT reltoastrelid FROM pg_class WHERE oid = 'public.docs'::regclass)";

fn salvaged(server: &Server, destination: &Path, progress: &dyn Progress) -> SalvageReport {
    salvaged_as("copy", server, destination, progress)
}

fn salvaged_as(
    form: &str,
    server: &Server,
    destination: &Path,
    progress: &dyn Progress,
) -> SalvageReport {
    let options = options(destination, form);
    salvage_live(&ConnectionTarget::of(server, "clinic"), &options, progress).expect("a salvage")
}

/// Holds tables as CSV, with the suspect rows beside them, to what the server gave.
#[track_caller]
fn compare_with_suspects(destination: &Path, expected: &BTreeMap<String, Lines>) {
    for (file, expected) in expected {
        let mut found = common::with_suspects(&destination.join(file));
        found.sort();
        let line = |line: &Vec<u8>| {
            String::from_utf8_lossy(line)
                .trim_end_matches('\n')
                .to_owned()
        };
        let mut expected: Vec<String> = expected.iter().map(line).collect();
        expected.sort();
        assert_eq!(found, expected, "{file}");
    }
}

fn refused_pages_are_read_from_the_files(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let expected = copied(&running, "clinic", "(FORMAT csv)");
    let (docs, orders) = (
        path_of(&running, "'public.docs'"),
        path_of(&running, "'sales.orders'"),
    );
    let toast = path_of(&running, TOAST_OF_DOCS);
    running.stop(StopMode::Fast).expect("stopped");
    // Wrong checksums: the rows are all there. A page of long values that is gone: they are not.
    hurt(&copy, &docs, 8192 + 8, &[0x12, 0x34]);
    hurt(&copy, &orders, 8, &[0x12, 0x34]);
    hurt(&copy, &orders, 5 * 8192 + 8, &[0x12, 0x34]);
    hurt(&copy, &toast, 2 * 8192, &[0; 8192]);

    let running = copy.start().expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged_as("csv", &running, &destination, &Quiet);
    let table = |name: &str| {
        let mut tables = account.tables.iter();
        tables
            .find(|table| table.table == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(table("orders").damaged_pages, 2);
    assert_eq!(table("orders").rows.written, 2880);
    assert!(table("docs").rows.partial > 0, "{:?}", table("docs"));
    let log = destination.join("clinic/sales.orders.csv.errors.log");
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains("invalid page in block 5"), "{log}");

    let count = |name: &str| expected.get(name).map_or(0, Vec::len) as u64;
    assert_eq!(table("docs").rows.written, count("clinic/public.docs"));
    let mut whole = expected.clone();
    whole.remove("clinic/public.docs");
    compare_with_suspects(&destination, &whole);
    assert!(table("orders").rows.suspect > 0, "{:?}", table("orders"));
    for setting in ["zero_damaged_pages", "ignore_checksum_failure"] {
        let mut session = running.connect("clinic").expect("a session");
        let value = session
            .query_value(&format!("SHOW {setting}"))
            .expect("a setting");
        assert_eq!(value.as_deref(), Some("off"));
    }
}

#[test]
fn of_13() {
    refused_pages_are_read_from_the_files(13);
}

#[test]
fn of_15() {
    refused_pages_are_read_from_the_files(15);
}

/// Long values behind a page of which nothing but the checksum is wrong: the server gives none of
/// them, and all are there.
#[test]
fn long_values_behind_a_wrong_checksum_are_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let expected = copied(&running, "clinic", "(FORMAT csv)");
    let toast = path_of(&running, TOAST_OF_DOCS);
    running.stop(StopMode::Fast).expect("stopped");
    hurt(&copy, &toast, 2 * 8192 + 8, &[0x12, 0x34]);

    let running = copy.start().expect("a server");
    let refused = session(&running, "clinic").query("SELECT length(d::text) FROM public.docs d");
    assert!(refused.is_err(), "the page holds values");
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged_as("csv", &running, &destination, &Quiet);
    compare_with_suspects(&destination, &expected);
    let mut tables = account.tables.iter();
    let docs = tables.find(|table| table.table == "docs").expect("docs");
    assert_eq!((docs.rows.partial, docs.rows.lost), (0, 0), "{docs:?}");
    let mut places = docs.places.iter();
    assert!(
        places.any(|place| place.in_toast && place.block == 2),
        "{docs:?}"
    );
}

/// Types that print their values as other types do: each value of the one is an error, each of the
/// other ends its backend.
const HURTING: &str = "\
CREATE TYPE sore; \
CREATE FUNCTION sore_in(cstring) RETURNS sore LANGUAGE internal IMMUTABLE STRICT AS 'int4in'; \
CREATE FUNCTION sore_out(sore) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'enum_out'; \
CREATE TYPE sore (INPUT = sore_in, OUTPUT = sore_out, INTERNALLENGTH = 4, PASSEDBYVALUE, ALIGNMENT = int4); \
CREATE TYPE fatal; \
CREATE FUNCTION fatal_in(cstring) RETURNS fatal LANGUAGE internal IMMUTABLE STRICT AS 'int8in'; \
CREATE FUNCTION fatal_out(fatal) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'; \
CREATE TYPE fatal (INPUT = fatal_in, OUTPUT = fatal_out, INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double); \
CREATE TABLE public.hurting (id int, sore sore, fatal fatal); \
INSERT INTO public.hurting SELECT i, CASE i WHEN 50 THEN '7'::sore END, CASE i WHEN 60 THEN '5'::fatal END \
  FROM generate_series(1, 100) i; \
CREATE ROLE visitor LOGIN; GRANT USAGE ON SCHEMA public TO visitor; GRANT SELECT ON public.hurting TO visitor";

/// Behind a row that the server refuses stands one that ends its backend. Who may read the files
/// has all rows; who may not has all but the last one. Nobody has a row twice.
#[test]
fn no_row_comes_twice_where_one_ends_its_backend() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    session(&running, "clinic")
        .execute(HURTING)
        .expect("a table");
    session(&running, "clinic")
        .execute("CHECKPOINT")
        .expect("a checkpoint");
    let folder = tempfile::tempdir().expect("a directory");
    let of = |user: &str| {
        let destination = folder.path().join(user);
        let mut options = options(&destination, "csv");
        options.selection.relations = vec![Glob::new("public.hurting")];
        let mut target = ConnectionTarget::of(&running, "clinic");
        target.user = user.into();
        let account = salvage_live(&target, &options, &Quiet).expect("a salvage");
        let rows = common::with_suspects(&destination.join("clinic/public.hurting"));
        let [table] = account.tables.as_slice() else {
            panic!("{account:?}");
        };
        (rows, table.clone())
    };
    let ids = |rows: &[String]| -> Vec<u32> {
        let id = |row: &String| row.split(',').next().and_then(|id| id.parse().ok());
        let mut ids: Vec<u32> = rows.iter().map(|row| id(row).expect("a number")).collect();
        ids.sort_unstable();
        ids
    };
    let (rows, table) = of("postgres");
    assert_eq!(ids(&rows), (1..=100).collect::<Vec<u32>>());
    assert_eq!((table.rows.written, table.rows.lost), (100, 0), "{table:?}");

    let (rows, table) = of("visitor");
    let but_one: Vec<u32> = (1..=100).filter(|id| *id != 60).collect();
    assert_eq!(ids(&rows), but_one);
    let counts = (
        table.rows.live,
        table.rows.written,
        table.rows.partial,
        table.rows.lost,
    );
    assert_eq!(counts, (99, 99, 1, 1), "{table:?}");
    let lost: Vec<(Option<u16>, Option<&str>)> = table
        .places
        .iter()
        .map(|place| (place.item, place.column.as_deref()))
        .collect();
    assert_eq!(
        lost,
        [(Some(50), Some("sore")), (Some(60), None)],
        "{table:?}"
    );
}

#[test]
fn a_server_that_crashes_in_between_is_waited_for() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let mut expected = copied(&running, "clinic", "");
    // What is unlogged is empty after a crash.
    expected.retain(|name, _| !name.ends_with("scratchpad"));
    let victim = running.connect("postgres").expect("a session");
    let accident = Accident {
        server: &running,
        victim: Mutex::new(Some(victim)),
    };
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&running, &destination, &accident);
    let notes = account.tables.iter().flat_map(|table| &table.notes);
    assert!(
        notes
            .clone()
            .any(|note| note.contains("connection was lost")),
        "{notes:?}"
    );
    common::compare(&destination, "copy", &expected);
}
