//! What PostgreSQL's own tests of recovery leave behind, made again on real servers: a record that
//! was given up, a redo point whose segment is lost, files that nobody will read again.

use std::path::Path;

use pgclinic_cluster::wal::Stop;
use pgclinic_model::{Level, Severity};
use pgclinic_servers::{Checksums, Session, StartOptions};
use pgclinic_testkit::{
    Seeded, all_majors, as_primary, checked, copy_of, open, run_as, seed, server,
};

/// Bytes of a segment of a seed's WAL.
const SEGMENT: u64 = 1 << 20;
/// Bytes of a message in the WAL besides its text: heads of the record, of its data and of the
/// message.
const MESSAGE_HEAD: u64 = 24 + 5 + 24 + 1;
/// Bytes that are left of a segment, so that the next two records do not fit.
const REST: u64 = 40;

/// All WAL is kept, and nobody else writes any.
fn options() -> StartOptions {
    let options = as_primary().with("autovacuum", "off");
    options.with("wal_keep_size", "1GB")
}

fn seed_of(major: u16) -> Seeded {
    let mut majors = all_majors().into_iter();
    let installation = majors.find(|one| one.major == major).expect("a major");
    seed(&installation, Checksums::On)
}

/// Rule and file of what is more than a note.
#[track_caller]
fn complaints(pgdata: &Path) -> Vec<(String, String)> {
    let document = checked(&open(pgdata), Level::Full);
    assert!(document.needs_recovery && document.coverage.is_balanced());
    let loud = document.findings.into_iter();
    let loud = loud.filter(|finding| finding.severity != Severity::Note);
    loud.map(|one| (one.rule, one.place.path)).collect()
}

fn value(session: &mut Session, sql: &str) -> String {
    session.query_value(sql).expect(sql).expect("a value")
}

/// Where the next record goes.
fn position(session: &mut Session) -> u64 {
    let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    value(session, sql).parse().expect("a number")
}

fn room(session: &mut Session) -> u64 {
    SEGMENT - position(session) % SEGMENT
}

/// A record goes on in a segment that is lost. The server gives it up and writes over it, and who
/// follows with older files reads past it.
fn a_record_is_given_up(major: u16) {
    let seeded = seed_of(major);
    let first = copy_of(&seeded);
    let mut server = first.start_with(&options()).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    session.execute("CHECKPOINT").expect("a checkpoint");
    let text = room(&mut session) + SEGMENT / 2;
    let emit = format!("SELECT pg_logical_emit_message(true, 'long', repeat('x', {text}))");
    session.execute(&emit).expect("a long record");
    let tail = "SELECT pg_walfile_name(pg_current_wal_insert_lsn())";
    let tail = value(&mut session, tail);
    server.kill();
    std::fs::remove_file(first.pgdata.join("pg_wal").join(tail)).expect("the last segment");
    assert_eq!(complaints(&first.pgdata), [], "{major}, truncated");
    let cut = open(&first.pgdata);
    let given_up = cut.replay().expect("it needs recovery").end.record;
    let follower = copy_of(&Seeded {
        pgdata: first.pgdata.clone(),
        ..seeded
    });

    let mut server = first.start_with(&options()).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let more = "CREATE TABLE public.behind (a text); INSERT INTO public.behind VALUES ('hello')";
    session.execute(more).expect("a table");
    let end = position(&mut session);
    server.kill();
    assert_eq!(complaints(&first.pgdata), [], "{major}, gone on");

    let mut copying = run_as().command(Path::new("/bin/cp"));
    copying.arg("-r").arg(first.pgdata.join("pg_wal/."));
    let copied = copying.arg(follower.pgdata.join("pg_wal")).status();
    assert!(copied.expect("cp").success());
    let cluster = open(&follower.pgdata);
    let replay = cluster.replay().expect("it needs recovery");
    assert_eq!(replay.start, cut.replay().expect("as before").start);
    assert!(replay.start < given_up && given_up < replay.end.record);
    assert_eq!((replay.stop, replay.end.record.0), (Stop::End, end));
    assert_eq!(complaints(&follower.pgdata), [], "{major}, followed");
    let server = follower.start_with(&options()).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    assert_eq!(value(&mut session, "SELECT a FROM public.behind"), "hello");
}

#[test]
fn a_record_is_given_up_by_13() {
    a_record_is_given_up(13);
}

#[test]
fn a_record_is_given_up_by_18() {
    a_record_is_given_up(18);
}

/// Makes a checkpoint whose redo point lies in one segment and whose record in the next; the first
/// one's name.
fn checkpoint_across_segments(session: &mut Session) -> String {
    const FILES: &str = "SELECT pg_walfile_name(redo_lsn), pg_walfile_name(checkpoint_lsn) FROM pg_control_checkpoint()";
    for _ in 0..50 {
        let text = match room(session) {
            left @ ..=48 => {
                session.execute("CHECKPOINT").expect("a checkpoint");
                let files = session.query(FILES).expect("two files");
                let [redo, record] = &*files[0] else {
                    panic!("{files:?}");
                };
                if redo != record {
                    return redo.clone().expect("a name");
                }
                left
            }
            left @ 49..=8000 => left.saturating_sub(MESSAGE_HEAD + REST),
            left => left - left / 8192 * 24 - 4000,
        };
        let emit = format!("SELECT pg_logical_emit_message(false, '', repeat('x', {text}))");
        session.execute(&emit).expect("a message");
    }
    panic!("no checkpoint lies across two segments");
}

/// A server of 13 starts without it all the same, and what was committed since the redo point is
/// lost.
#[test]
fn the_segment_of_the_redo_point_is_lost() {
    for major in [13, 18] {
        let copy = copy_of(&seed_of(major));
        let mut server = copy.start_with(&options()).expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        let file = checkpoint_across_segments(&mut session);
        server.kill();
        assert_eq!(complaints(&copy.pgdata), [], "{major}");
        let path = format!("pg_wal/{file}");
        std::fs::remove_file(copy.pgdata.join(&path)).expect("a segment");
        let lost = ("wal-segment-missing".to_owned(), path);
        assert_eq!(complaints(&copy.pgdata), [lost], "{major}");
    }
}

/// A database whose removal was interrupted, and what a crash leaves of unlogged and temporary
/// relations.
#[test]
fn files_that_nobody_will_read_again() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut server = copy.start_with(&options()).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    for sql in [
        "CREATE DATABASE half",
        "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'half'",
        "CREATE UNLOGGED TABLE public.loose (a int PRIMARY KEY, b text)",
        "INSERT INTO public.loose SELECT i, repeat('b', 900) FROM generate_series(1, 900) AS i",
        "CHECKPOINT",
    ] {
        session.execute(sql).expect(sql);
    }
    let half = value(
        &mut session,
        "SELECT 'base/' || oid FROM pg_database WHERE datname = 'half'",
    );
    let loose = value(&mut session, "SELECT pg_relation_filepath('public.loose')");
    server.kill();
    let half = copy.pgdata.join(half);
    for (at, entry) in std::fs::read_dir(&half).expect("a directory").enumerate() {
        let path = entry.expect("an entry").path();
        if at % 2 == 0 {
            std::fs::remove_file(path).expect("a file");
        }
    }
    let loose = copy.pgdata.join(loose);
    let other = loose.with_file_name("t3_77777");
    for path in [&loose, &other] {
        std::fs::write(path, [0xA5; 3 * 8192 + 100]).expect("a file");
    }
    assert_eq!(complaints(&copy.pgdata), []);
    std::fs::remove_dir_all(&half).expect("a directory");
    assert_eq!(complaints(&copy.pgdata), []);
}

/// Pages of an index that is being built reach its file before their WAL. Its transaction never
/// committed, and neither did that which gives a table or an index a new file: no row of `pg_class`
/// that counts names these files.
#[test]
fn files_of_unfinished_transactions_are_nobodys() {
    for major in [15, 18] {
        let copy = copy_of(&seed_of(major));
        let options = options()
            .with("wal_writer_delay", "10s")
            .with("wal_buffers", "64MB")
            .with("shared_buffers", "64MB");
        let mut server = copy.start_with(&options).expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        for sql in [
            "CREATE TABLE public.big AS SELECT i AS id, md5(i::text) AS what FROM generate_series(1, 30000) AS i",
            "CREATE INDEX big_what ON public.big (what)",
            "CHECKPOINT",
        ] {
            session.execute(sql).expect(sql);
        }
        let statements = [
            "BEGIN; CREATE INDEX ON public.big (what, id)",
            "BEGIN; REINDEX INDEX public.big_what",
        ];
        let mut open = Vec::new();
        for sql in statements {
            let mut own = server.connect("clinic").expect("a session");
            own.execute("SET lock_timeout = '5s'").expect("a setting");
            // The second one may have to wait for the first.
            let _begun = own.execute(sql);
            open.push(own);
        }
        server.kill();
        assert_eq!(complaints(&copy.pgdata), [], "{major}");
    }
}
