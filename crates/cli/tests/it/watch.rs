//! `watch` on real servers: each sign shows what was caused, and what cannot be read says why.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pgclinic_model::document::{SignState, SignValue, WatchDocument, WatchedSign, WatchedTarget};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StartOptions, StopMode};
use pgclinic_testkit::{
    Load, all_majors, as_primary, copy_of, execute, seed, server, standby, started, value,
};
use pgclinic_watch::{Thoroughness, WatchOptions, Watcher};

use crate::common::{Ran, pgclinic, skipped, text, url};
use crate::watch_background::{PATIENCE, damage};
use crate::watch_prometheus::promtool_accepts;

fn once(server: &Server, user: &str, more: &[&str]) -> Ran {
    let url = url(server, user);
    pgclinic(&[&["watch", &url, "--once"], more].concat())
}

fn document(text: &str) -> WatchDocument {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The only server of a document.
fn watched(ran: &Ran) -> WatchedTarget {
    let mut targets = document(&ran.out).targets;
    assert_eq!(targets.len(), 1, "{}", ran.err);
    targets.remove(0)
}

fn sign<'a>(target: &'a WatchedTarget, name: &str) -> &'a WatchedSign {
    let found = target.signs.iter().find(|own| own.name == name);
    found.unwrap_or_else(|| panic!("{name} of {:?}", target.unreachable))
}

/// The sum of a sign's values where a label is this.
fn sum(target: &WatchedTarget, name: &str, label: &str) -> f64 {
    let own = sign(target, name).values.iter();
    let own = own.filter(|own| own.labels.values().any(|value| value == label));
    own.map(|own| own.value).sum()
}

#[test]
fn every_major_is_read_and_what_it_lacks_is_named() {
    for installation in all_majors() {
        let major = installation.major;
        let copy = copy_of(&seed(&installation, Checksums::On));
        let mut server = copy.start_with(&StartOptions::default()).expect("a server");
        let ran = once(&server, "postgres", &["--format", "json"]).exits(0);
        let target = watched(&ran);
        assert_eq!(target.target.major, Some(major));
        for own in &target.signs {
            assert_eq!(
                own.not_available.is_some(),
                own.state == SignState::NotAvailable
            );
            let refused = own.not_available.as_deref().unwrap_or_default();
            assert!(
                !refused.starts_with("the server refused"),
                "{major} {}: {refused}",
                own.name
            );
        }
        let why = |name| {
            sign(&target, name)
                .not_available
                .clone()
                .unwrap_or_default()
        };
        assert_eq!(
            why("io-in-flight").contains("came with PostgreSQL 18"),
            major < 18,
            "{major}"
        );
        assert_eq!(
            why("io-reads").contains("came with PostgreSQL 16"),
            major < 16,
            "{major}"
        );
        assert_eq!(
            why("wal-records").contains("came with PostgreSQL 14"),
            major < 14,
            "{major}"
        );
        assert!(why("io-read-time").contains(if major < 16 {
            "came with"
        } else {
            "track_io_timing is off"
        }));
        assert_eq!(why("wal-bytes"), "");
        assert!(
            sign(&target, "wal-bytes").values[0].per_second.is_some(),
            "{major}"
        );
        assert!(
            sign(&target, "checkpoints-timed").values.len() == 1,
            "{major}"
        );
        assert!(
            sign(&target, "xid-age")
                .headline
                .is_some_and(|age| age > 0.0)
        );
        server.stop(StopMode::Fast).expect("a stop");
    }
}

#[test]
fn signs_show_what_was_caused() {
    let (copy, server) = started(18, Checksums::On, &as_primary().with("io_method", "worker"));
    let before = watched(&once(&server, "postgres", &["--format", "json"]));
    assert_eq!(sign(&before, "checksum-failures").state, SignState::Ok);

    let mut session = server.connect("clinic").expect("a session");
    session
        .execute("CREATE TABLE public.once_only (id int PRIMARY KEY)")
        .expect("a table");
    session
        .execute("INSERT INTO public.once_only VALUES (1)")
        .expect("a row");
    for _ in 0..1000 {
        let _duplicate = session.execute("INSERT INTO public.once_only VALUES (1)");
    }
    let tables = (0..40).map(|at| format!("CREATE TEMP TABLE t{at} (a int PRIMARY KEY, b text)"));
    for table in tables {
        session.execute(&table).expect("a table");
    }
    damage(&server, &copy.pgdata);
    let mut reader = server.connect("clinic").expect("a session");
    let _damaged = reader.query("SELECT * FROM public.docs");
    drop(reader);
    // Statistics are sent on when a session has nothing to do, or ends.
    session
        .execute("SELECT pg_stat_force_next_flush()")
        .expect("a flush");

    let ran = once(&server, "postgres", &["--format", "json"]).exits(1);
    let after = watched(&ran);
    let grown = |name: &str, label: &str| sum(&after, name, label) - sum(&before, name, label);
    assert!(grown("rollbacks", "clinic") >= 1000.0);
    assert!(grown("relations-created", "clinic") >= 80.0);
    assert!(sum(&after, "temporary-relations", "clinic") >= 80.0);
    assert!(grown("checksum-failures", "clinic") >= 1.0);
    let last = sign(&after, "checksum-last-failure");
    assert_eq!(last.state, SignState::Critical, "{last:?}");
    assert!(
        sign(&after, "io-workers")
            .values
            .iter()
            .map(|own| own.value)
            .sum::<f64>()
            >= 1.0
    );
    assert!(
        sign(&after, "io-reads")
            .values
            .iter()
            .any(|own| own.labels["backend_type"] == "client backend")
    );

    let line = once(&server, "postgres", &["--format", "nagios"])
        .exits(2)
        .out;
    assert!(
        line.starts_with("PGCLINIC CRITICAL - ") && line.contains("checksum-last-failure: "),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
    let text = once(&server, "postgres", &[]).exits(1).out;
    assert!(text.starts_with("CRITICAL  1 server, "), "{text}");
    assert!(
        text.contains("Pages on disk are not what the server wrote"),
        "{text}"
    );
}

#[test]
fn without_rights_signs_are_missing_and_never_zero() {
    let (_copy, server) = started(15, Checksums::On, &StartOptions::default());
    execute(
        &server,
        "CREATE ROLE nobody_here LOGIN; CREATE ROLE clerk LOGIN; GRANT pg_monitor TO clerk",
    );
    let _others = server.connect("clinic").expect("a session");
    let bare = watched(&once(&server, "nobody_here", &["--format", "json"]).exits(0));
    for name in [
        "connection-states",
        "oldest-transaction",
        "sessions-waiting-for-io",
        "backend-memory",
        "autovacuum-workers",
    ] {
        let own = sign(&bare, name);
        assert!(own.values.is_empty() && own.headline.is_none(), "{own:?}");
        assert!(
            own.not_available
                .as_deref()
                .is_some_and(|why| why.contains("pg_monitor")),
            "{own:?}"
        );
    }
    assert!(
        sign(&bare, "connections")
            .headline
            .is_some_and(|own| own >= 2.0)
    );
    let clerk = watched(&once(&server, "clerk", &["--format", "json"]).exits(0));
    assert!(
        sign(&clerk, "connection-states")
            .headline
            .is_some_and(|own| own >= 2.0)
    );
    let lacking = clerk
        .signs
        .iter()
        .filter_map(|own| own.not_available.as_deref());
    assert!(
        lacking.clone().all(|why| !why.contains("lacks pg_monitor")),
        "{:?}",
        lacking.collect::<Vec<_>>()
    );
}

#[test]
fn what_the_server_does_not_count_is_missing_and_never_zero() {
    let settings = StartOptions::default()
        .with("track_counts", "off")
        .with("track_activities", "off");
    let (_copy, server) = started(18, Checksums::On, &settings);
    let own = watched(&once(&server, "postgres", &["--format", "json"]).exits(0));
    for (name, setting) in [
        ("checksum-failures", "track_counts"),
        ("rollbacks", "track_counts"),
        ("relations-created", "track_counts"),
        ("oldest-transaction", "track_activities"),
    ] {
        let sign = sign(&own, name);
        let why = sign.not_available.as_deref().unwrap_or_default();
        assert!(
            why.starts_with(setting) && sign.headline.is_none(),
            "{sign:?}"
        );
    }
    let advised = sign(&own, "settings-advised");
    assert_eq!(advised.state, SignState::Warning, "{advised:?}");
}

#[test]
fn what_a_lock_keeps_from_being_read_is_unknown() {
    let (_copy, server) = started(
        15,
        Checksums::On,
        &StartOptions::default().with("fsync", "on"),
    );
    let mut holder = server.connect("clinic").expect("a session");
    holder
        .execute("BEGIN; LOCK TABLE pg_catalog.pg_largeobject IN ACCESS EXCLUSIVE MODE")
        .expect("a lock");
    let own = watched(&once(&server, "postgres", &["--format", "json"]).exits(3));
    let bytes = sign(&own, "catalog-bytes");
    assert_eq!(bytes.state, SignState::Unknown, "{bytes:?}");
    assert!(bytes.headline.is_none() && own.complete_at.is_none());
    let line = once(&server, "postgres", &["--format", "nagios"])
        .exits(3)
        .out;
    assert!(line.starts_with("PGCLINIC UNKNOWN - "), "{line}");
}

#[test]
fn a_standby_and_a_server_that_is_gone_say_so() {
    let (copy, mut primary) = started(15, Checksums::On, &as_primary());
    let other = copy_of(&seed(&server(15), Checksums::On));
    let mut follower = standby(&other, &primary, StartOptions::default());
    let own = watched(&once(&follower, "postgres", &["--format", "json"]).exits(0));
    assert_eq!(own.is_standby, Some(true));
    let records = sign(&own, "wal-records").not_available.as_deref();
    assert!(
        records.is_some_and(|why| why.contains("standby")),
        "{records:?}"
    );
    assert!(sign(&own, "wal-bytes").not_available.is_none());
    follower.stop(StopMode::Fast).expect("a stop");

    let both = [url(&primary, "postgres"), url(&follower, "postgres")];
    let ran = pgclinic(&["watch", &both[0], &both[1], "--once", "--format", "json"]).exits(3);
    let found = document(&ran.out);
    assert!(found.targets[0].unreachable.is_none() && found.targets[1].unreachable.is_some());
    assert!(found.targets[1].signs.is_empty());
    primary.stop(StopMode::Fast).expect("a stop");
    let ran = pgclinic(&["watch", &both[0], "--once", "--format", "prometheus"]).exits(2);
    assert!(ran.out.contains("\npgclinic_up{server="), "{}", ran.out);
    assert!(!ran.out.contains("pgclinic_xid_age"), "{}", ran.out);
    drop(copy);
}

#[test]
fn a_restart_between_two_samples_gives_no_rates() {
    let (copy, mut first) = started(15, Checksums::On, &StartOptions::default());
    let target = ConnectionTarget::of(&first, "clinic");
    let options = pgclinic_watch::WatchOptions::default();
    let mut watcher = pgclinic_watch::Watcher::new(target, options.clone());
    let all = pgclinic_watch::Thoroughness::All;
    watcher.sample(all);
    assert!(sign(&watcher.sample(all), "commits").no_rates.is_none());
    let sessions = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
    assert_eq!(value(&first, sessions), "1");
    let again = watcher.sample(all);
    assert_eq!(again.unreachable, None, "another session is opened");
    assert!(sign(&again, "commits").no_rates.is_none());
    first.stop(StopMode::Immediate).expect("a stop");
    assert!(watcher.sample(all).unreachable.is_some());
    let second = copy.start_with(&StartOptions::default()).expect("a server");
    // A server of tests has a directory of its own for its socket; the watcher asks the old one.
    let socket = ".s.PGSQL.5432";
    let asked = first.socket_folder().join(socket);
    let _gone_already = std::fs::remove_file(&asked);
    std::os::unix::fs::symlink(second.socket_folder().join(socket), asked).expect("a link");
    let restarted = watcher.sample(all);
    let commits = sign(&restarted, "commits");
    assert!(
        commits.values.iter().all(|own| own.per_second.is_none()),
        "{commits:?}"
    );
    assert!(
        commits
            .no_rates
            .as_deref()
            .is_some_and(|why| why.contains("restarted")),
        "{commits:?}"
    );
    assert_eq!(sign(&restarted, "server-started").state, SignState::Warning);
}

/// A table whose name is a script, a label's end and a terminal's command.
pub(crate) const HOSTILE: &str = "</script><script>alert(1)</script>\" 1\n\\\u{1b}[2J";

#[test]
fn the_endpoint_serves_metrics_and_a_page_whatever_tables_are_called() {
    let (_copy, server) = started(18, Checksums::On, &as_primary());
    let mut session = server.connect("clinic").expect("a session");
    let name = HOSTILE.replace('"', "\"\"");
    session
        .execute(&format!(
            "CREATE TABLE \"{name}\" AS SELECT 1 AS a FROM generate_series(1, 20000)"
        ))
        .expect("a table");
    session
        .execute(&format!("DELETE FROM \"{name}\""))
        .expect("dead rows");
    session
        .execute("CREATE DATABASE \"all\"")
        .expect("a database that is not all of them");
    session
        .execute("SELECT pg_stat_force_next_flush()")
        .expect("a flush");
    let url = url(&server, "postgres");
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let listen = [
                "--listen",
                "127.0.0.1:0",
                "--interval",
                "1",
                "--samples",
                "4",
            ];
            let words = [&["watch", &url], &listen[..]].concat();
            crate::common::pgclinic_saying(&words, sender).exits(0)
        });
        let line = receiver
            .recv_timeout(Duration::from_secs(10))
            .expect("an address");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address: SocketAddr = address
            .and_then(|own| own.parse().ok())
            .expect("an address");
        served(address);
    });
}

fn served(address: SocketAddr) {
    let mut metrics = String::new();
    for _ in 0..40 {
        metrics = get(address, "/metrics", "text/plain");
        if metrics.starts_with("HTTP/1.1 200") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let (head, body) = metrics.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    let scrape = prometheus_parse::Scrape::parse(body.lines().map(|line| Ok(line.to_owned())))
        .expect("metrics");
    let named = |name: &'static str| scrape.samples.iter().filter(move |own| own.metric == name);
    assert_eq!(named("pgclinic_up").count(), 1);
    assert!(
        named("pgclinic_rollbacks_total")
            .all(|own| matches!(own.value, prometheus_parse::Value::Counter(_)))
    );
    let of_all = |own: &&prometheus_parse::Sample| own.labels.get("database") == Some("all");
    assert_eq!(named("pgclinic_rollbacks_total").filter(of_all).count(), 1);
    // That parser takes no label with a brace; promtool does, where it is installed.
    let escaped = r#"relation="public.</script><script>alert(1)</script>\" 1\\n\\\\u{1b}[2J"}"#;
    assert!(body.contains(escaped), "{body}");
    promtool_accepts(body);
    assert!(!body.contains('\u{1b}'), "a terminal would obey");

    let open = get(
        address,
        "/metrics",
        "application/openmetrics-text;version=1.0.0",
    );
    assert!(open.contains("application/openmetrics-text; version=1.0.0"));
    assert!(open.ends_with("# EOF\n") && open.contains("# TYPE pgclinic_rollbacks counter"));

    let page = get(address, "/", "text/html");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert(1)"));
    let (_, html) = page.split_once("\r\n\r\n").expect("a head");
    assert!(
        html.contains("<details") && html.contains("default-src &#39;none&#39;")
            || html.contains("default-src 'none'")
    );
    assert!(
        !html.contains("src=\"http") && !html.contains("href=\"http"),
        "no outside requests"
    );
    for (path, status) in [("/etc/passwd", "404"), ("/metrics/", "404")] {
        assert!(get(address, path, "*/*").starts_with(&format!("HTTP/1.1 {status}")));
    }
    let foreign = ask(address, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
    assert!(ask(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
}

fn get(address: SocketAddr, path: &str, accept: &str) -> String {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n"),
    )
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn of_many_servers_each_sign_says_once_what_it_means() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start().expect("a server");
    let databases = ["d1", "d2", "d3", "d4", "d5", "d6"];
    let mut session = server.connect("postgres").expect("a session");
    for name in databases {
        let create = format!("CREATE DATABASE {name}");
        session.execute(&create).expect("a database");
    }
    let own = url(&server, "postgres");
    let urls = databases.map(|name| own.replace("/clinic?", &format!("/{name}?")));
    let page = |servers: usize| {
        let urls = urls.iter().take(servers).map(String::as_str);
        let words = ["watch", "--once", "--format", "html"];
        pgclinic(&words.into_iter().chain(urls).collect::<Vec<_>>())
            .exits(0)
            .out
    };
    let (meaning, place) = ("<dt>settled by</dt>", "id=\"meaning-connections\"");
    let link = "href=\"#meaning-connections\">meaning";
    let (one, six) = (page(1), page(6));
    let signs = one.matches(meaning).count();
    assert!(signs > 40, "{signs}");
    assert_eq!(six.matches(meaning).count(), signs);
    let found = [&one, &six].map(|own| (own.matches(place).count(), own.matches(link).count()));
    assert_eq!(found, [(0, 0), (1, 6)]);
    server.stop(StopMode::Fast).expect("a stop");
}

#[test]
fn other_machines_are_not_served_and_words_are_checked_first() {
    let url = "postgres://nobody@127.0.0.1:1/none";
    let refused = pgclinic(&["watch", url, "--listen", "0.0.0.0:9187"]).exits(2);
    assert!(
        refused
            .err
            .contains("--listen-token-file, and --listen-cert and --listen-key"),
        "{}",
        refused.err
    );
    pgclinic(&["watch", url, "--once", "--interval", "0"]).exits(2);
    pgclinic(&["watch", url, "--once", "--format", "sarif"]).exits(2);
    pgclinic(&["watch"]).exits(2);
    let rules = pgclinic(&["watch", "--rules"]).exits(0).out;
    assert!(
        rules.contains("alert: PgclinicChecksumFailures") && rules.contains("keep_firing_for: ")
    );
    let dashboard = pgclinic(&["watch", "--dashboard"]).exits(0).out;
    assert!(dashboard.starts_with('{') && dashboard.contains("pgclinic_xid_age"));
}

#[test]
fn what_would_go_wrong_later_is_refused_first() {
    let url = "postgres://nobody@127.0.0.1:1/none";
    let twice = pgclinic(&["watch", url, url, "--once"]).exits(2);
    assert!(twice.err.contains("is named twice"), "{}", twice.err);
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let inside = copy.pgdata.join("pg_log/state");
    let words = [
        "watch",
        url,
        "--samples",
        "1",
        "--scrub",
        "1GB/s",
        "--state",
    ];
    let refused = pgclinic(&[&words[..], &[text(&inside)]].concat()).exits(2);
    assert!(
        refused.err.contains("to which nothing is written"),
        "{}",
        refused.err
    );
    assert!(!copy.pgdata.join("pg_log").exists());
}

/// What a mark has of a sign: its figures with what they grew by.
fn marked<'a>(target: &'a WatchedTarget, name: &str, label: &str) -> &'a SignValue {
    let values = &sign(target, name).values;
    let found = values
        .iter()
        .find(|own| own.labels.values().any(|own| own == label));
    found.unwrap_or_else(|| panic!("{name} {label}: {values:?}"))
}

#[test]
fn two_marks_show_what_happened_between_them() {
    let (_copy, server) = started(18, Checksums::On, &StartOptions::default());
    let home = tempfile::tempdir().expect("a directory");
    let [before, after] = ["before.json", "after.json"].map(|name| home.path().join(name));
    let mark = |path: &Path| {
        once(
            &server,
            "postgres",
            &["--format", "json", "--output", text(path)],
        )
        .exits(0)
    };
    mark(&before);
    execute(&server, "SELECT pg_stat_reset_shared('io')");
    let mut session = server.connect("clinic").expect("a session");
    let work = "CREATE TABLE public.worked AS SELECT generate_series(1, 100000) AS a";
    session.execute(work).expect("a table");
    drop(session);
    mark(&after);
    let words = ["watch", "diff", text(&before), text(&after)];
    let own = watched(&pgclinic(&[&words[..], &["--format", "json"]].concat()).exits(0));
    let inserted = marked(&own, "rows-inserted", "clinic").growth;
    assert!(inserted.is_some_and(|own| own >= 100_000.0), "{inserted:?}");
    assert!(sign(&own, "rows-inserted").no_rates.is_none());
    let bytes = sign(&own, "io-extend-bytes");
    let why = bytes.no_rates.as_deref().unwrap_or_default();
    assert!(why.contains("reset between the two marks"), "{why}");
    let grown = bytes
        .values
        .iter()
        .filter_map(|own| own.growth)
        .sum::<f64>();
    assert!((3e6..1e9).contains(&grown), "{grown}");
    let page = pgclinic(&words).exits(0).out;
    assert!(page.contains("rows-inserted"), "{page}");
    pgclinic(&["watch", "diff", text(&before), "/nowhere"]).exits(2);
}

/// Samples until this holds: sessions hand in their counts when they end, and requests are short.
fn until(
    watcher: &mut Watcher,
    what: &str,
    holds: impl Fn(&WatchedTarget) -> bool,
) -> WatchedTarget {
    let end = Instant::now() + PATIENCE;
    loop {
        let own = watcher.sample(Thoroughness::All);
        if holds(&own) {
            return own;
        }
        assert!(Instant::now() < end, "{what}");
    }
}

#[test]
fn a_cold_scan_and_short_lived_tables_show() {
    for method in ["worker", "io_uring"] {
        let settings = as_primary().with("io_method", method);
        let settings = settings.with("shared_buffers", "1MB").with("fsync", "off");
        let copy = copy_of(&seed(&server(18), Checksums::On));
        let Ok(server) = copy.start_with(&settings) else {
            skipped("this server, or this kernel, has no io_uring");
            continue;
        };
        execute(
            &server,
            "CREATE TABLE public.cold_rows AS SELECT a, repeat('x', 500) AS b FROM generate_series(1, 60000) a",
        );
        let target = ConnectionTarget::of(&server, "clinic");
        let mut watcher = Watcher::new(target, WatchOptions::default());
        watcher.sample(Thoroughness::All);
        let loops = "DO $$ BEGIN FOR i IN 1..500 LOOP CREATE TEMP TABLE a (b int); DROP TABLE a; END LOOP; END $$";
        let mut session = server.connect("clinic").expect("a session");
        session.execute(loops).expect("short-lived tables");
        drop(session);
        let many = |own: &WatchedTarget| sign(own, "short-lived-tables").headline > Some(500.0);
        until(&mut watcher, "no table was short-lived", many);
        // Larger than shared buffers: each scan reads it from files.
        let scans = Load::start(&server, &["SELECT count(*) FROM public.cold_rows"]);
        let is_read = |own: &SignValue| own.labels["operation"] == "readv";
        let in_flight = |own: &WatchedTarget| {
            sign(own, "io-requests").values.iter().any(is_read)
                && sign(own, "io-in-flight-bytes").headline > Some(0.0)
        };
        let seen = until(&mut watcher, method, in_flight);
        scans.stop();
        let issuers = &sign(&seen, "io-issuers").values;
        let is_client = |own: &SignValue| own.labels["backend_type"] == "client backend";
        assert!(issuers.iter().any(is_client), "{issuers:?}");
        assert_eq!(
            sign(&seen, "io-workers").not_available.is_none(),
            method == "worker"
        );
    }
}

#[test]
fn what_a_command_did_is_shown() {
    let (_copy, server) = started(15, Checksums::On, &StartOptions::default());
    let url = url(&server, "postgres");
    let folder = server.socket_folder().display();
    let psql = format!(
        "psql -h {folder} -U postgres -qc 'CREATE TEMP TABLE a (b int PRIMARY KEY)' clinic"
    );
    let has_psql = Command::new("psql").arg("--version").output().is_ok();
    let command = if has_psql {
        psql.as_str()
    } else {
        skipped("no psql to create a table with");
        "echo nothing"
    };
    let ran = pgclinic(&["watch", &url, "--around", command, "--format", "json"]).exits(0);
    let own = watched(&ran);
    let grown = sign(&own, "relations-created").values[0].growth;
    let least = if has_psql { 2.0 } else { 0.0 };
    assert!(
        grown.is_some_and(|grown| grown >= least),
        "{grown:?} {}",
        ran.err
    );
}
