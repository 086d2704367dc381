//! A cluster that was not shut down in good order is no damaged one: what the files miss, the WAL
//! brings back.

use pgclinic_model::{CheckDocument, Severity, Verdict};

use crate::common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{check_json, count, pgclinic, text, told};
use pgclinic_servers::{Checksums, Server, Session, StartOptions, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, catch_up, copy_of, seed, server, standby};

/// Transactions that must lie between the last checkpoint and the end.
const XIDS: u64 = 20_000;

/// Each turn is a transaction: an insert, an update below a row lock of the same transaction, which
/// makes a multixact, now and then a delete.
const TURNS: &str = "
DO $$BEGIN
  FOR i IN 1..100000 LOOP
    INSERT INTO public.load VALUES (i, repeat(md5(i::text), 3));
    PERFORM 1 FROM public.load WHERE id = i / 2 FOR KEY SHARE;
    BEGIN
      UPDATE public.load SET what = what || 'x' WHERE id = i / 2;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    IF i % 7 = 0 THEN DELETE FROM public.load WHERE id = i - 5; END IF;
    COMMIT;
  END LOOP;
END$$";

/// Files come, go and move; nothing of it reaches a checkpoint.
const FILES: &str = "
CREATE TABLE public.fresh AS SELECT i AS id, md5(i::text) AS what FROM generate_series(1, 5000) AS i;
CREATE INDEX ON public.fresh (what);
VACUUM FULL public.chains;
TRUNCATE public.settled;
DROP TABLE public.docs;
DELETE FROM public.measurements WHERE id > 5000;
VACUUM public.measurements;
REINDEX TABLE public.frozen;
CREATE DATABASE late TEMPLATE template0";

fn number(session: &mut Session, sql: &str) -> u64 {
    let value = session.query_value(sql).expect(sql).expect("a value");
    value.parse().expect("a number")
}

fn run_files(server: &Server) {
    let mut session = server.connect("clinic").expect("a session");
    for statement in FILES.split(';') {
        session.execute(statement).expect(statement);
    }
}

fn options() -> StartOptions {
    // Few buffers, so that pages reach the disk long before a checkpoint.
    let quick = StartOptions::default().with("synchronous_commit", "off");
    quick
        .with("shared_buffers", "1MB")
        .with("max_wal_size", "4GB")
}

/// Kills the server while a session writes and another one holds a transaction open.
fn crash(copy: &TempCopy) {
    let mut server = copy.start_with(&options()).expect("a server");
    let mut watcher = server.connect("clinic").expect("a session");
    watcher
        .execute("CREATE TABLE public.load (id int PRIMARY KEY, what text); CHECKPOINT")
        .expect("a table");
    run_files(&server);
    let mut open = server.connect("clinic").expect("a session");
    open.execute(
        "BEGIN; UPDATE public.pruned SET n = n + 1; SAVEPOINT a; DELETE FROM public.aborted",
    )
    .expect("an open transaction");
    let next = "SELECT pg_snapshot_xmax(pg_current_snapshot())";
    let first = number(&mut watcher, next);
    let mut writer = server.connect("clinic").expect("a session");
    let load = std::thread::spawn(move || writer.execute(TURNS));
    let end = Instant::now() + Duration::from_secs(60);
    while number(&mut watcher, next) < first + XIDS {
        assert!(
            Instant::now() < end && !load.is_finished(),
            "the load is too slow"
        );
    }
    server.kill();
    let ended = load.join().expect("no panic");
    assert!(ended.is_err(), "the load was still running");
}

/// No damage, and the state told beside the verdict.
#[track_caller]
fn only_needs_recovery(pgdata: &Path) -> CheckDocument {
    let document = check_json(pgdata, 3);
    assert_eq!(document.verdict, Verdict::Incomplete, "{}", told(&document));
    assert_eq!(count(&document, Severity::Damage), 0, "{}", told(&document));
    assert!(document.needs_recovery);
    let words = pgclinic(&["check", text(pgdata)]).exits(3);
    assert!(
        words
            .first_line()
            .starts_with("INCOMPLETE (needs recovery)"),
        "{}",
        words.out
    );
    let pages = pgclinic(&["check", text(pgdata), "--level", "pages"]).exits(3);
    assert!(
        pages.first_line().contains("needs recovery"),
        "{}",
        pages.out
    );
    document
}

fn a_crash_is_no_damage(major: u16) {
    let installation = all_majors().into_iter().find(|one| one.major == major);
    let seeded = seed(&installation.expect("a major"), Checksums::On);
    let copy = copy_of(&seeded);
    crash(&copy);
    let document = only_needs_recovery(&copy.pgdata);
    assert_eq!(document.target.state.as_deref(), Some("in production"));
    let fresh = ["check", text(&copy.pgdata), "--relation", "public.fresh"];
    let fresh = pgclinic(&[&fresh[..], &["--format", "json"]].concat()).exits(3);
    let relations = fresh.document().coverage.relations;
    assert!(
        relations >= 2,
        "a table and its index, known by the WAL only: {relations}"
    );
    // What the check left alone, the server brings back.
    let mut server = copy.start().expect("recovery");
    server.stop(StopMode::Fast).expect("a stop");
    drop(server);
    let recovered = check_json(&copy.pgdata, 0);
    assert_eq!(recovered.verdict, Verdict::Healthy, "{}", told(&recovered));
}

#[test]
fn a_crash_of_13_is_no_damage() {
    a_crash_is_no_damage(13);
}

#[test]
fn a_crash_of_18_is_no_damage() {
    a_crash_is_no_damage(18);
}

#[test]
fn a_standby_that_was_stopped_in_good_order_is_no_damage() {
    let installation = all_majors().pop().expect("the newest");
    let seeded = seed(&installation, Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let senders = options()
        .with("max_wal_senders", "4")
        .with("wal_keep_size", "1GB");
    let mut primary = first.start_with(&senders).expect("a primary");
    let mut standby = standby(&second, &primary, options());
    let mut session = primary.connect("clinic").expect("a session");
    let load = TURNS.replace("100000", "3000");
    session
        .execute("CREATE TABLE public.load (id int PRIMARY KEY, what text)")
        .and_then(|()| session.execute(&load))
        .and_then(|()| session.execute("TRUNCATE public.load; CHECKPOINT"))
        .expect("load before the checkpoint that the standby begins from");
    run_files(&primary);
    session
        .execute(&TURNS.replace("100000", "10000"))
        .expect("load after it");
    catch_up(&mut session, &standby);
    standby.stop(StopMode::Fast).expect("a stop");
    let document = only_needs_recovery(&second.pgdata);
    assert_eq!(
        document.target.state.as_deref(),
        Some("shut down in recovery")
    );
    drop(session);
    primary.stop(StopMode::Fast).expect("a stop");
    check_json(&first.pgdata, 0);
}

/// A control file of an earlier moment is no sign that a server writes.
#[test]
fn an_older_control_file_is_damage_and_no_server_at_work() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let path = copy.pgdata.join("global/pg_control");
    let older = std::fs::read(&path).expect("a control file");
    let mut running = copy.start_with(&options()).expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let late = "CREATE TABLE public.late AS SELECT generate_series(1, 400) AS id";
    session.execute(late).expect("a table");
    session.execute("CHECKPOINT").expect("a checkpoint");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    std::fs::write(&path, older).expect("an older one");
    let document = check_json(&copy.pgdata, 1);
    let state = document.target.state.as_deref();
    assert!(
        !state.is_some_and(|state| state.contains("running")),
        "{state:?}"
    );
    let words = told(&document);
    assert!(words.contains("global/pg_control"), "{words}");
}
