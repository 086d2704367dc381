//! The load generator on a real server, at the smallest scale. Speed is not asserted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pgclinic_lab::load::{
    ConnectionTarget, Driver, Length, Load, LoadResult, Measured, Pace, Protocol, Script, pgbench,
};
use pgclinic_servers::{InitOptions, Scratch, Server, StartOptions, initdb};
use pgclinic_testkit::{run_as, server};

/// A server with a table of counters.
struct Place {
    server: Server,
    _scratch: Scratch,
}

impl Place {
    fn make() -> Self {
        Self::for_connections(40)
    }

    fn for_connections(connections: u32) -> Self {
        let (run_as, installation) = (run_as(), server(15));
        let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
        let pgdata = scratch.folder("data").expect("a directory");
        let options = InitOptions {
            extra: vec!["--auth-host=scram-sha-256".to_owned()],
            ..InitOptions::default()
        };
        initdb(&installation, &run_as, &pgdata, &options).expect("a cluster");
        let start = StartOptions::default().with("max_connections", &connections.to_string());
        let server = Server::start(&installation, &run_as, &pgdata, &start).expect("a start");
        let place = Self {
            server,
            _scratch: scratch,
        };
        place.run("CREATE TABLE counter (id bigint PRIMARY KEY, number bigint NOT NULL)");
        place.run("INSERT INTO counter SELECT i, 0 FROM generate_series(0, 9) i");
        place
    }

    fn run(&self, sql: &str) -> String {
        let mut session = self.server.connect("postgres").expect("a session");
        let value = session.query_value(sql).expect(sql);
        value.unwrap_or_default()
    }

    fn load(&self, load: &Load) -> LoadResult {
        load.run(&ConnectionTarget::of(&self.server, "postgres"), &|| {})
    }

    fn measure(&self, load: &Load) -> Measured {
        match self.load(load) {
            LoadResult::Measured(measured) => *measured,
            LoadResult::Empty { why } => panic!("{why}"),
        }
    }
}

fn load(script: &str, clients: u32, rounds: u64) -> Load {
    let given = BTreeMap::from([("rows".to_owned(), 9)]);
    let script = Script::parse(script, &given).expect("a script");
    let mut load = Load::new(script, clients, Duration::ZERO);
    load.length = Length::Rounds(rounds);
    load
}

#[test]
fn a_load_does_what_its_script_says() {
    let place = Place::make();
    every_protocol_does_the_same(&place);
    errors_are_counted_and_leave_no_transaction_open(&place);
    what_is_late_is_charged_for_its_wait(&place);
    a_window_that_could_not_be_connected_is_empty(&place);
    what_never_ends_is_cancelled(&place);
    who_is_told_to_stop_does_not_wait_for_the_window(&place);
    pgbench_does_the_same_where_it_is_installed(&place);
}

fn every_protocol_does_the_same(place: &Place) {
    let script = "\\set id random(0, :rows)\nBEGIN;\nUPDATE counter SET number = number + 1 WHERE id = :id;\nEND;\n";
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        place.run("UPDATE counter SET number = 0");
        let mut load = load(script, 5, 20);
        load.protocol = protocol;
        let measured = place.measure(&load);
        assert_eq!(
            (measured.rounds, measured.failed),
            (100, 0),
            "{}",
            measured.trouble()
        );
        assert_eq!(place.run("SELECT sum(number) FROM counter"), "100");
        let recorded: u64 = measured.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(recorded, 100);
    }
}

fn errors_are_counted_and_leave_no_transaction_open(place: &Place) {
    let script = "BEGIN;\nINSERT INTO counter VALUES (:client_id, 0);\nEND;\n";
    let measured = place.measure(&load(script, 3, 4));
    assert_eq!((measured.rounds, measured.failed), (0, 12));
    assert_eq!(measured.errors["23505"].count, 12);
    let measured = place.measure(&load("\\set none 1 / (:rows - 9)\nSELECT :none;\n", 2, 3));
    assert_eq!(measured.errors["22012"].count, 6);
}

fn what_is_late_is_charged_for_its_wait(place: &Place) {
    // Each round takes longer than the time until the next is due, so the later ones wait for the
    // earlier ones.
    let mut load = load("SELECT pg_sleep(0.1);", 1, 0);
    load.length = Length::Window(Duration::from_millis(900));
    load.pace = Pace::Open { rate: 60.0 };
    let measured = place.measure(&load);
    assert!(measured.overdue > 0, "{measured:?}");
    let median = measured.latency.p50_ms.expect("a median");
    assert!(
        median > 150.0,
        "the median round waited for others too: {median} ms"
    );
    let recorded: u64 = measured.histogram.iter().map(|(_, count)| count).sum();
    assert_eq!(
        recorded,
        measured.rounds + measured.ended_late + measured.overdue
    );
}

fn a_window_that_could_not_be_connected_is_empty(place: &Place) {
    let too_many = load("SELECT 1;", 60, 1);
    let LoadResult::Empty { why } = place.load(&too_many) else {
        panic!("60 clients on 40 connections")
    };
    assert!(
        why.contains("not all of 60 clients") && why.contains("53300"),
        "{why}"
    );
    let nobody = ConnectionTarget {
        database: "nowhere".to_owned(),
        ..ConnectionTarget::of(&place.server, "postgres")
    };
    let LoadResult::Empty { why } = load("SELECT 1;", 1, 1).run(&nobody, &|| {}) else {
        panic!("a database that is not there")
    };
    assert!(why.contains("3D000"), "{why}");
}

/// How many sessions do not end by themselves. One whose statement is only parsed does not count:
/// it has not begun a round.
const SLEEPING: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE query LIKE 'SELECT pg_sleep(600)%' AND wait_event = 'PgSleep'";

fn what_never_ends_is_cancelled(place: &Place) {
    let mut load = load("SELECT pg_sleep(600);", 2, 0);
    load.length = Length::Window(Duration::from_millis(100));
    load.grace = Duration::from_millis(100);
    let measured = place.measure(&load);
    assert_eq!((measured.rounds, measured.abandoned), (0, 2));
    let gone = || place.run(SLEEPING) == "0";
    assert!((0..2000).any(|_| gone()), "the server still sleeps");
}

fn who_is_told_to_stop_does_not_wait_for_the_window(place: &Place) {
    let mut load = load("SELECT pg_sleep(600);", 1, 0);
    load.length = Length::Window(Duration::from_secs(3600));
    load.grace = Duration::from_millis(100);
    let measured = std::thread::scope(|scope| {
        let working = scope.spawn(|| place.measure(&load));
        while place.run(SLEEPING) == "0" {}
        load.stop.store(true, Ordering::Relaxed);
        working.join().expect("no panic")
    });
    assert_eq!((measured.rounds, measured.abandoned), (0, 1));
}

fn pgbench_does_the_same_where_it_is_installed(place: &Place) {
    let Some(program) = pgbench::find(place.server.installation()) else {
        return;
    };
    place.run("UPDATE counter SET number = 0");
    let script =
        "\\set id random(0, :rows)\nUPDATE counter SET number = number + 1 WHERE id = :id;\n";
    let target = ConnectionTarget::of(&place.server, "postgres");
    let mut mixed = load(script, 2, 50);
    mixed
        .scripts
        .extend(load("SELECT pg_sleep(0.05);", 2, 50).scripts);
    mixed.scripts[0].weight = 3;
    let seen = std::sync::Mutex::new(Vec::new());
    let begun = || {
        let clients =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgclinic-%'";
        seen.lock().expect("no panic").push(place.run(clients));
    };
    let result = pgbench::run(&program, &mixed, &target, &begun).expect("pgbench");
    let LoadResult::Measured(measured) = result else {
        panic!("{result:?}")
    };
    assert_eq!(measured.rounds, 100);
    assert!(
        measured.driver.starts_with("pgbench 1"),
        "{}",
        measured.driver
    );
    let drawn: u32 = place
        .run("SELECT sum(number) FROM counter")
        .parse()
        .expect("a number");
    assert_eq!(seen.into_inner().expect("no panic"), ["2"]);
    assert!(
        (60..90).contains(&drawn),
        "{drawn} of 100 with weight 3 of 4"
    );
    assert_eq!(
        PathBuf::from(&program).file_name(),
        Some("pgbench".as_ref())
    );
    assert_eq!(Driver::named("pgbench"), Some(Driver::Pgbench));
}

/// Passwords are asked for over TCP only, so the server needs a port of its own.
#[test]
fn a_password_is_proven_by_scram() {
    let (run_as, installation) = (run_as(), server(15));
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let pgdata = scratch.folder("data").expect("a directory");
    initdb(&installation, &run_as, &pgdata, &InitOptions::default()).expect("a cluster");
    let server =
        Server::start(&installation, &run_as, &pgdata, &StartOptions::default()).expect("a start");
    let mut session = server.connect("postgres").expect("a session");
    session
        .execute("CREATE ROLE ann LOGIN PASSWORD 'se cret'")
        .expect("a role");
    let rules = "local all ann scram-sha-256\nlocal all all trust\n";
    std::fs::write(pgdata.join("pg_hba.conf"), rules).expect("rules");
    session
        .execute("SELECT pg_reload_conf()")
        .expect("a reload");
    let target = |password: Option<&str>| ConnectionTarget {
        user: "ann".to_owned(),
        password: password.map(str::to_owned),
        ..ConnectionTarget::of(&server, "postgres")
    };
    let result = |password| load("SELECT 1;", 1, 3).run(&target(password), &|| {});
    // The postmaster reads the rules when its signal arrives.
    let asked = (0..2000).any(|_| matches!(result(None), LoadResult::Empty { .. }));
    assert!(asked, "the rules were never read");
    assert!(
        matches!(result(Some("se cret")), LoadResult::Measured(measured) if measured.rounds == 3)
    );
    let LoadResult::Empty { why } = result(Some("wrong")) else {
        panic!("a wrong password")
    };
    assert!(why.contains("28P01"), "{why}");
}

#[test]
fn the_clock_of_a_thousand_clients_starts_when_all_are_connected() {
    const CLIENTS: u32 = 1_050;
    let place = Place::for_connections(CLIENTS + 15);
    let mut load = load("SELECT 1;", CLIENTS, 2);
    load.connect_limit = Duration::from_secs(600);
    let at_the_start = Mutex::new(Vec::new());
    let watcher = Mutex::new(place.server.connect("postgres").expect("a session"));
    let begun = || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let mut watcher = watcher.lock().expect("nobody panics");
        let connected = watcher.query_value(sql).expect("a number");
        let mut told = at_the_start.lock().expect("nobody panics");
        told.push(connected.unwrap_or_default());
    };
    let measured = match load.run(&ConnectionTarget::of(&place.server, "postgres"), &begun) {
        LoadResult::Measured(measured) => measured,
        LoadResult::Empty { why } => panic!("{why}"),
    };
    let at_the_start = at_the_start.into_inner().expect("nobody panics");
    assert_eq!(at_the_start, [CLIENTS.to_string()], "once, with everybody");
    assert_eq!(measured.clients, CLIENTS);
    assert_eq!(
        measured.rounds,
        u64::from(CLIENTS) * 2,
        "{}",
        measured.trouble()
    );
    assert_eq!((measured.failed, measured.lost_clients), (0, 0));
}

#[test]
fn more_clients_than_the_server_lets_in_are_no_result() {
    let place = Place::for_connections(20);
    let LoadResult::Empty { why } = place.load(&load("SELECT 1;", 40, 1)) else {
        panic!("forty clients on twenty connections")
    };
    assert!(
        why.contains("not all of 40 clients could be connected") && why.contains("53300"),
        "{why}"
    );
}
