//! Crashed clusters without what the last checkpoint wrote of transactions, and clusters with the
//! control file of another one: one finding names the file, and nobody else is accused.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::roots;
use pgclinic_cluster::{Cluster, ControlState};
use pgclinic_model::Level;
use pgclinic_model::document::{CheckDocument, FileKind};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_source::{Overlay, OverlayPatch, read_all};
use pgclinic_testkit::{TempCopy, checked, copy_of, directory, seed, server};

/// Rows with hint bits of transactions that ended before the checkpoint.
const STATEMENTS: [&str; 6] = [
    "CREATE TABLE public.still (id int, what text)",
    "DO $$BEGIN FOR i IN 1..300 LOOP INSERT INTO public.still SELECT n, repeat('x', 300) FROM generate_series(1, 10) AS n; COMMIT; END LOOP; END$$",
    "SELECT count(*) FROM public.still",
    "CHECKPOINT",
    "CREATE TABLE public.later AS SELECT i AS id FROM generate_series(1, 2000) AS i",
    "SELECT count(*) FROM public.later",
];

fn run(server: &Server) {
    let mut session = server.connect("clinic").expect("a session");
    for statement in STATEMENTS {
        session.query(statement).expect(statement);
    }
}

fn crashed(major: u16) -> TempCopy {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut server = copy.start().expect("a seed starts");
    run(&server);
    server.kill();
    copy
}

static CRASHED: LazyLock<TempCopy> = LazyLock::new(|| crashed(15));

fn found(pgdata: &Path, patches: Vec<OverlayPatch>, level: Level) -> CheckDocument {
    let overlay = Overlay::new(directory(pgdata), patches).expect("plain paths");
    let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
    checked(&cluster, level)
}

fn filled(pgdata: &Path, path: &str, byte: u8) -> OverlayPatch {
    let len = read_all(directory(pgdata).as_ref(), path, 1 << 20).expect("a small file");
    OverlayPatch::Bytes {
        path: path.into(),
        offset: 0,
        bytes: vec![byte; len.len()],
    }
}

#[test]
fn after_a_crash_the_commit_log_lags_and_is_right() {
    for level in [Level::Structure, Level::Full] {
        let document = found(&CRASHED.pgdata, Vec::new(), level);
        assert!(roots(&document).is_empty(), "{:?}", roots(&document));
    }
}

#[test]
fn a_commit_log_of_zeros_is_named_after_a_crash() {
    let patch = filled(&CRASHED.pgdata, "pg_xact/0000", 0);
    let document = found(&CRASHED.pgdata, vec![patch], Level::Structure);
    assert_eq!(roots(&document), [("slru-file-zeroed", "pg_xact/0000")]);
    assert!(document.relations.is_empty(), "{:?}", document.relations);
}

/// Every transaction rolled back, it says.
#[test]
fn a_commit_log_that_rows_deny_is_named_after_a_crash() {
    let patch = filled(&CRASHED.pgdata, "pg_xact/0000", 0xAA);
    let document = found(&CRASHED.pgdata, vec![patch], Level::Structure);
    let wanted = [("transaction-status-contradicted", "pg_xact/0000")];
    assert_eq!(roots(&document), wanted);
    assert!(document.relations.is_empty(), "{:?}", document.relations);
}

/// The control file of another cluster of the same major, and what is found with it.
#[track_caller]
fn with_control_file_of_another(pgdata: &Path, other: &Path) -> CheckDocument {
    let path = "global/pg_control";
    let bytes = read_all(directory(other).as_ref(), path, 1 << 16).expect("a control file");
    let patch = OverlayPatch::Bytes {
        path: path.into(),
        offset: 0,
        bytes,
    };
    let overlay = Overlay::new(directory(pgdata), vec![patch]).expect("plain paths");
    let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
    assert!(matches!(cluster.control, ControlState::Foreign { .. }));
    checked(&cluster, Level::Structure)
}

#[track_caller]
fn the_control_file_alone_is_wrong(document: &CheckDocument) {
    let wanted = [("control-file-inconsistent", "global/pg_control")];
    assert_eq!(roots(document), wanted);
    assert!(document.relations.is_empty(), "{:?}", document.relations);
    let named = |step: &&pgclinic_model::document::PlanStep| {
        let names = step.relations.iter().map(|own| own.name.as_str());
        names.eq(["global/pg_control"])
    };
    let first = document.plan.iter().find(|step| !step.relations.is_empty());
    assert!(
        first.is_some_and(|step| named(&step)),
        "{:?}",
        document.plan
    );
    let of_files = |kind| {
        document
            .findings
            .iter()
            .filter(move |own| own.place.kind == kind)
    };
    assert_eq!(of_files(FileKind::Wal).count(), 0);
}

#[test]
fn the_control_file_of_another_cluster_is_the_root() {
    let other = seed(&server(15), Checksums::Off).pgdata;
    the_control_file_alone_is_wrong(&with_control_file_of_another(&CRASHED.pgdata, &other));
    let stopped = copy_of(&seed(&server(15), Checksums::On));
    let mut server = stopped.start().expect("a seed starts");
    run(&server);
    server.stop(StopMode::Fast).expect("it stops");
    the_control_file_alone_is_wrong(&with_control_file_of_another(&stopped.pgdata, &other));
}

/// Rows of many pages that deny `pg_xact`, more than findings are kept of, and each by its hint bit
/// and by the mark of its page: one finding with all of them, and each row once.
#[test]
fn many_rows_that_deny_the_log_are_counted_once_and_all() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut server = copy.start().expect("a seed starts");
    let mut session = server.connect("clinic").expect("a session");
    for statement in [
        "CREATE TABLE public.many (id int) WITH (autovacuum_enabled = off)",
        "INSERT INTO public.many SELECT n FROM generate_series(1, 20000) n",
        "SELECT count(*) FROM public.many",
        "VACUUM public.many",
    ] {
        session.query(statement).expect(statement);
    }
    let mut one = |sql: &str| {
        let value = session.query_value(sql).expect("an answer");
        value.expect("a value")
    };
    let path = copy
        .pgdata
        .join(one("SELECT pg_relation_filepath('public.many')"));
    let xid = one("SELECT min(xmin::text) FROM public.many");
    drop(session);
    server.stop(StopMode::Fast).expect("it stops");
    let mut bytes = std::fs::read(&path).expect("a table");
    let pages = bytes.len() / 8192;
    for page in bytes.chunks_exact_mut(8192) {
        let lower = usize::from(u16::from_le_bytes(*page[12..].first_chunk().expect("two")));
        for at in (24..lower).step_by(4) {
            let pointer = u32::from_le_bytes(*page[at..].first_chunk().expect("four"));
            let infomask = (pointer & 0x7FFF) as usize + 20;
            // HEAP_XMIN_COMMITTED goes, HEAP_XMIN_INVALID comes.
            page[infomask + 1] = page[infomask + 1] & !1 | 2;
        }
    }
    std::fs::write(&path, bytes).expect("written");
    let document = found(&copy.pgdata, Vec::new(), Level::Structure);
    let wanted = [("transaction-status-contradicted", "pg_xact/0000")];
    assert_eq!(roots(&document), wanted);
    let is_root = |own: &&pgclinic_model::Finding| own.rule == wanted[0].0;
    let root = document.findings.iter().find(is_root).expect("the root");
    let words = format!(
        "20,000 rows on {pages} pages of 1 relation deny what it says of 1 transaction, {xid}"
    );
    assert_eq!(root.message, words);
    assert_eq!(root.at_risk.rows, Some(20_000));
    let others = document.findings.iter().filter(|own| !is_root(own));
    let counted: u64 = others.filter_map(|own| own.at_risk.rows).sum();
    assert_eq!(counted, 0);
}
