//! What files lack of what is measured is said, by the witnesses beside them.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_model::document::MeasureDocument;
use pgclinic_servers::{Server, StopMode};

use crate::running::{gaps, measured_at_rest, measured_quietly, started};

const PAGE: u64 = 8192;
const TABLE: &str = "CREATE TABLE public.lost AS SELECT i AS id, md5(i::text) AS word \
     FROM generate_series(1, 5000) i; VACUUM (ANALYZE) public.lost; CHECKPOINT";

fn value(server: &Server, sql: &str) -> String {
    let mut session = server.connect("clinic").expect("a session");
    session.query_value(sql).expect(sql).expect("a value")
}

/// The path of the table's file.
fn make_table(server: &Server) -> String {
    let mut session = server.connect("clinic").expect("a session");
    for statement in TABLE.split("; ") {
        session.execute(statement).expect(statement);
    }
    value(server, "SELECT pg_relation_filepath('public.lost')")
}

fn write(path: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    file.write_all_at(bytes, at).expect("written");
}

fn told(document: &MeasureDocument) -> Vec<(String, String)> {
    let gaps = gaps(document).into_iter();
    let gaps = gaps.filter(|(.., is_inherent)| !is_inherent);
    gaps.map(|(what, why, _)| (what.to_owned(), why.to_owned()))
        .collect()
}

#[test]
fn a_file_that_is_gone_beside_a_running_server_is_told() {
    let (copy, server) = started(15);
    let path = make_table(&server);
    assert_eq!(told(&measured_quietly(&copy.pgdata)), []);
    std::fs::remove_file(copy.pgdata.join(&path)).expect("removed");
    let what = format!("{path} (public.lost)");
    let expected = (what, "its file is missing".to_owned());
    assert_eq!(told(&measured_quietly(&copy.pgdata)), [expected]);
}

#[test]
fn losses_of_a_stopped_cluster_are_told() {
    let (copy, mut server) = started(15);
    let path = copy.pgdata.join(make_table(&server));
    let xid = value(&server, "SELECT xmin FROM public.lost LIMIT 1");
    let xid: u64 = xid.parse().expect("a number");
    server.stop(StopMode::Fast).expect("stopped");
    assert_eq!(told(&measured_at_rest(&copy.pgdata)), []);

    let whole = std::fs::read(&path).expect("a file");
    write(&path, 3 * PAGE, &[0; PAGE as usize]);
    let [(what, why)] = told(&measured_at_rest(&copy.pgdata))
        .try_into()
        .expect("one gap");
    assert_eq!(what, "rows of public.lost");
    assert!(why.starts_with("1 page of it is all zeros"), "{why}");

    std::fs::write(&path, &whole[..5 * PAGE as usize]).expect("truncated");
    let [(what, why)] = told(&measured_at_rest(&copy.pgdata))
        .try_into()
        .expect("one gap");
    assert_eq!(what, "the end of public.lost");
    assert!(why.contains("ends before block 5"), "{why}");
    std::fs::write(&path, &whole).expect("as it was");

    // Four transactions a byte: all of them rolled back.
    let status = copy.pgdata.join("pg_xact/0000");
    let was = std::fs::read(&status).expect("a file");
    write(&status, xid / 4, &[0b1010_1010]);
    let gaps = told(&measured_at_rest(&copy.pgdata));
    let denied = "which rows of database clinic are live";
    assert!(gaps.iter().any(|(what, _)| what == denied), "{gaps:#?}");
    std::fs::write(&status, was).expect("as it was");

    let mut server = copy.start().expect("a server");
    value(&server, "SELECT pg_current_xact_id()");
    server.stop(StopMode::Immediate).expect("stopped");
    for segment in std::fs::read_dir(copy.pgdata.join("pg_wal")).expect("a directory") {
        let path = segment.expect("an entry").path();
        if path.is_file() {
            std::fs::remove_file(path).expect("removed");
        }
    }
    let gaps = told(&measured_at_rest(&copy.pgdata));
    let wal = "changes since the last checkpoint";
    assert!(gaps.iter().any(|(what, _)| what == wal), "{gaps:#?}");
}

/// Who updated a row that others had locked, only pg_multixact knows.
#[test]
fn rows_whose_multixact_is_lost_are_told() {
    let (copy, mut server) = started(15);
    make_table(&server);
    let mut locker = server.connect("clinic").expect("a session");
    let lock = "BEGIN; ALTER TABLE public.lost ADD PRIMARY KEY (id); COMMIT; BEGIN; \
         SELECT id FROM public.lost WHERE id <= 7 FOR KEY SHARE";
    for statement in lock.split("; ") {
        locker.execute(statement).expect(statement);
    }
    let mut writer = server.connect("clinic").expect("a session");
    let update = "UPDATE public.lost SET word = word || '' WHERE id <= 7";
    writer.execute(update).expect(update);
    locker.execute("COMMIT").expect("an end");
    drop((locker, writer));
    server.stop(StopMode::Fast).expect("stopped");
    assert_eq!(told(&measured_at_rest(&copy.pgdata)), []);

    std::fs::remove_file(copy.pgdata.join("pg_multixact/offsets/0000")).expect("removed");
    let why = "the status of 7 rows is lost; they are counted as dead";
    let expected = ("rows of public.lost".to_owned(), why.to_owned());
    let gaps = told(&measured_at_rest(&copy.pgdata));
    assert!(gaps.contains(&expected), "{gaps:#?}");
}
