//! A salvage from a running server that refuses some of its pages, and that crashes in between.

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use common::{copied, options};
use pgclinic_diagnose::Progress;
use pgclinic_rows::{Account, salvage_live};
use pgclinic_servers::{Checksums, Server, Session, StopMode, Target};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, seed, server};

/// Kills a backend when the first table is done, once: the postmaster then ends all others and starts again.
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

fn salvaged(server: &Server, destination: &Path, progress: &dyn Progress) -> Account {
    let options = options(destination, "copy");
    salvage_live(&Target::of(server, "clinic"), &options, progress).expect("a salvage")
}

fn refused_pages_are_read_from_the_files(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let expected = copied(&running, "clinic", "");
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
    let folder = tempfile::tempdir().expect("a folder");
    let destination = folder.path().join("out");
    let account = salvaged(&running, &destination, &Quiet);
    let table = |name: &str| {
        let mut tables = account.tables.iter();
        tables
            .find(|table| table.table == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(table("orders").damaged_pages, 2);
    assert_eq!(table("orders").rows.written, 2880);
    assert!(table("docs").rows.partial > 0, "{:?}", table("docs"));
    let log = destination.join("clinic/sales.orders.copy.errors.log");
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains("invalid page in block 5"), "{log}");

    let count = |name: &str| expected.get(name).map_or(0, Vec::len) as u64;
    assert_eq!(table("docs").rows.written, count("clinic/public.docs"));
    let mut whole = expected.clone();
    whole.remove("clinic/public.docs");
    common::compare(&destination, "copy", &whole);
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
    let folder = tempfile::tempdir().expect("a folder");
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
