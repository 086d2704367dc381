//! What `watch` does beside its statements, on real servers: the scrub of the files, the server's
//! log, and an endpoint that others reach.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pgclinic_model::document::{LoggedMessage, SignState, WatchDocument, WatchedTarget};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StartOptions};
use pgclinic_testkit::{copy_of, execute, overwrite, seed, started, value};
use pgclinic_watch::{Thoroughness, WatchOptions, Watcher};

use crate::common::{pgclinic, text, url};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgclinic");
/// For what takes a second on a machine that has nothing else to do.
/// A scrub takes what others leave of a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Overwrites a part of the second page of a table, while the server does not have it in memory.
pub(crate) fn damage(server: &Server, pgdata: &Path) -> String {
    let docs = value(server, "SELECT pg_relation_filepath('public.docs')");
    execute(server, "CHECKPOINT");
    overwrite(&pgdata.join(&docs), 8192 + 4000);
    docs
}

/// A table whose file ends within a block, as a truncation or a full disk leaves it.
fn half_a_block(server: &Server, pgdata: &Path) -> &'static str {
    execute(
        server,
        "CREATE TABLE torn AS SELECT generate_series(1, 1000) AS id",
    );
    execute(server, "CHECKPOINT");
    let file = value(server, "SELECT pg_relation_filepath('torn')");
    let file = OpenOptions::new().append(true).open(pgdata.join(file));
    let written = file.and_then(|mut file| file.write_all(&[0; 100]));
    written.expect("a file");
    "public.torn\"} 100"
}

/// The program as somebody starts it, ended on drop.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Running {
    pub(crate) fn new(words: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let stderr = child.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(stderr).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line.contains("://")));
        let line = line.expect("an address");
        let (_, rest) = line.split_once("://").expect("an address");
        let address = rest.split('/').next().and_then(|own| own.parse().ok());
        // Whatever it says after that has somebody who reads it.
        std::thread::spawn(move || lines.for_each(drop));
        Running {
            child,
            address: address.expect("an address"),
        }
    }

    /// What is served under this path, once it is there and this holds.
    pub(crate) fn until(&self, path: &str, holds: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let body = get(self.address, path);
            if holds(&body) {
                return body;
            }
            assert!(Instant::now() < end, "{body}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _asked = Command::new("kill").arg(pid).status();
        let _ended = self.child.wait();
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    // An older protocol, in which no answer comes in chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    body.unwrap_or_default()
}

fn only(json: &str) -> WatchedTarget {
    let document: WatchDocument = serde_json::from_str(json).expect(json);
    document.targets.into_iter().next().expect("a server")
}

fn state(target: &WatchedTarget, name: &str) -> SignState {
    let found = target.signs.iter().find(|own| own.name == name);
    found.unwrap_or_else(|| panic!("{name}")).state
}

#[test]
fn a_scrub_finds_the_damaged_page_that_nobody_reads() {
    let (copy, server) = started(15, Checksums::On, &StartOptions::default());
    let url = url(&server, "postgres");
    let path = damage(&server, &copy.pgdata);
    let torn = half_a_block(&server, &copy.pgdata);
    let states = tempfile::tempdir().expect("a directory");
    let words = ["watch", &url, "--listen", "127.0.0.1:0", "--interval", "1"];
    let scrub = ["--scrub", "1GB/s", "--state", text(states.path())];
    let words = [&words[..], &scrub].concat();
    let running = Running::new(&words);
    let first = running.until("/json", |body| body.contains("scrub-last-complete"));
    assert!(state(&only(&first), "scrub-last-complete") >= SignState::Ok);
    let damaged = "pgclinic_scrub_damage{server=";
    let metrics = running.until("/metrics", |body| body.contains(damaged));
    assert!(
        metrics.contains("rule=\"page-checksum\"") || metrics.contains("rule="),
        "{metrics}"
    );
    assert!(
        metrics.contains("pgclinic_scrub_unread_bytes{"),
        "{metrics}"
    );
    let partial = metrics
        .lines()
        .find(|line| line.contains("_scrub_partial_block_bytes{"));
    assert!(
        partial.is_some_and(|line| line.ends_with(torn)),
        "{metrics}"
    );
    let own = only(&get(running.address, "/json"));
    assert_eq!(state(&own, "scrub-damage"), SignState::Critical);
    assert_eq!(state(&own, "scrub-partial-blocks"), SignState::Warning);
    assert_eq!(state(&own, "scrub-last-complete"), SignState::Ok);
    let page = own
        .damaged_pages
        .iter()
        .find(|own| own.place.block.is_some())
        .expect("a page");
    assert_eq!(
        (page.place.path.as_str(), page.place.block),
        (path.as_str(), Some(1))
    );
    let command = page.command.as_deref().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(words.first(), Some(&"inspect"));
    assert!(get(running.address, "/").contains("<i>--relation</i> public.docs <i>--block</i> 1<"));
    pgclinic(&words).exits(0);
    drop(running);

    // It is known after a restart, and a scrub that is not due does not begin.
    let again = Running::new(&words_again(&url, text(states.path())));
    let json = again.until("/json", |body| body.contains("scrub-last-complete"));
    assert_eq!(state(&only(&json), "scrub-damage"), SignState::Critical);
    assert_eq!(state(&only(&json), "scrub-last-complete"), SignState::Ok);
}

fn words_again<'a>(url: &'a str, states: &'a str) -> [&'a str; 10] {
    let [listen, address, interval, second] = ["--listen", "127.0.0.1:0", "--interval", "1"];
    [
        "watch", url, listen, address, interval, second, "--scrub", "1MB/s", "--state", states,
    ]
}

#[test]
fn files_of_another_server_are_not_scrubbed_and_that_is_a_warning() {
    let (_copy, server) = started(15, Checksums::On, &StartOptions::default());
    execute(&server, "CREATE ROLE nobody_here LOGIN");
    let url = url(&server, "nobody_here");
    let states = tempfile::tempdir().expect("a directory");
    let running = Running::new(&words_again(&url, text(states.path())));
    let json = running.until("/json", |body| body.contains("scrub-reading"));
    let own = only(&json);
    let sign = own
        .signs
        .iter()
        .find(|own| own.name == "scrub-reading")
        .expect("a sign");
    assert_eq!(
        (sign.state, sign.headline),
        (SignState::Warning, Some(0.0)),
        "{sign:?}"
    );
    let why = sign.finding.as_deref().unwrap_or_default();
    assert!(why.contains("may not know data_directory"), "{why}");
}

#[test]
fn dead_bytes_and_catalogs_are_measured_in_the_files_of_a_copy() {
    // Two copies of one cluster: the server has one of them, the other is as old as a backup.
    let seeded = seed(&pgclinic_testkit::server(15), Checksums::On);
    let (own, copy) = (copy_of(&seeded), copy_of(&seeded));
    let server = own.start().expect("a server");
    let url = url(&server, "postgres");
    let states = tempfile::tempdir().expect("a directory");
    let words = ["watch", &url, "--listen", "127.0.0.1:0", "--interval", "1"];
    let measure = [
        "--measure",
        "1GB/s",
        "--state",
        text(states.path()),
        "--files",
    ];
    let running = Running::new(&[&words[..], &measure, &[text(&copy.pgdata)]].concat());
    let attribute = "pgclinic_measured_catalog_bytes{";
    let metrics = running.until("/metrics", |body| body.contains(attribute));
    assert!(
        metrics.contains("pg_catalog.pg_attribute\",part=\"other\"}")
            || metrics.contains("part=\"other\",relation=\"clinic.pg_catalog.pg_attribute\"}"),
        "{metrics}"
    );
    assert!(
        metrics.contains("pgclinic_measured_dead_bytes{"),
        "{metrics}"
    );
    assert!(
        metrics.contains("pgclinic_measured_age_seconds{"),
        "{metrics}"
    );
    assert!(
        metrics.contains("pgclinic_measured_toast_bytes{"),
        "{metrics}"
    );
    let own = only(&get(running.address, "/json"));
    let age = own.signs.iter().find(|own| own.name == "measured-age");
    let why = age.and_then(|own| own.finding.as_deref());
    assert!(
        why.is_some_and(|why| why.contains("hours old when they were measured")),
        "{why:?}"
    );
}

fn logged<'a>(target: &'a WatchedTarget, name: &str) -> &'a LoggedMessage {
    let found = target.logged.iter().find(|own| own.message == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", target.logged))
}

#[test]
fn messages_about_damage_are_counted_in_every_format_of_a_log() {
    for format in ["stderr", "csvlog", "jsonlog"] {
        let settings = StartOptions::default()
            .with("logging_collector", "on")
            .with("log_destination", format);
        let (copy, server) = started(15, Checksums::On, &settings);
        // The second one may not know where the files are, and reads through the server.
        execute(
            &server,
            "CREATE ROLE reader LOGIN; \
             GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean), pg_current_logfile(), pg_ls_logdir() TO reader",
        );
        let watcher = |user: &str| {
            let mut target = ConnectionTarget::of(&server, "clinic");
            target.user = user.to_owned();
            Watcher::new(target, WatchOptions::default())
        };
        let mut watchers = ["postgres", "reader"].map(watcher);
        for watcher in &mut watchers {
            let own = watcher.sample(Thoroughness::All);
            assert_eq!(
                state(&own, "logged-messages"),
                SignState::Ok,
                "{format} {own:?}"
            );
        }
        let path = damage(&server, &copy.pgdata);
        let mut session = server.connect("clinic").expect("a session");
        for _ in 0..2 {
            let _damaged = session.query("SELECT * FROM public.docs");
        }
        for watcher in &mut watchers {
            let end = Instant::now() + PATIENCE;
            // The collector writes in a process of its own.
            let own = loop {
                let own = watcher.sample(Thoroughness::All);
                if own
                    .logged
                    .iter()
                    .any(|own| own.message == "invalid-page" && own.count == 2)
                {
                    break own;
                }
                assert!(Instant::now() < end, "{format}: {:?}", own.logged);
            };
            let page = logged(&own, "invalid-page");
            assert_eq!(page.path.as_deref(), Some(path.as_str()), "{format}");
            assert_eq!(page.block, Some(1), "{format}");
            assert!(page.last_time.is_some() && page.is_damage);
            assert_eq!(state(&own, "logged-messages"), SignState::Critical);
        }
    }
}

#[test]
fn a_log_that_cannot_be_read_says_why() {
    let (_copy, server) = started(15, Checksums::On, &StartOptions::default());
    let target = ConnectionTarget::of(&server, "clinic");
    let own = Watcher::new(target, WatchOptions::default()).sample(Thoroughness::All);
    let sign = own
        .signs
        .iter()
        .find(|own| own.name == "logged-messages")
        .expect("a sign");
    let why = sign.not_available.as_deref().unwrap_or_default();
    assert!(why.contains("logging_collector is off"), "{why}");
}

/// A certificate of localhost that is its own authority, if there is a program to make it.
pub(crate) fn certificate(cert: &str, key: &str) -> bool {
    let [request, of_curve] = [
        "req -x509 -newkey ec -nodes -days 2",
        "ec_paramgen_curve:prime256v1",
    ];
    let made = Command::new("openssl")
        .args(request.split(' '))
        .args(["-pkeyopt", of_curve, "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        // Usual programs make that of an authority, which is no server's.
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", key, "-out", cert])
        .output();
    made.is_ok_and(|made| made.status.success())
}

#[test]
fn others_are_served_with_a_token_over_tls_alone() {
    let (_copy, server) = started(15, Checksums::On, &StartOptions::default());
    let url = url(&server, "postgres");
    let home = tempfile::tempdir().expect("a directory");
    let file = |name: &str| home.path().join(name).to_str().expect("UTF-8").to_owned();
    let (cert, key, token) = (file("cert.pem"), file("key.pem"), file("token"));
    if !certificate(&cert, &key) {
        return crate::common::skipped("no openssl to make a certificate with");
    }
    std::fs::write(&token, "0123456789abcdef0123\n").expect("a file");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let words = ["watch", &url, "--interval", "1", "--listen", "0.0.0.0:0"];
    let refused = pgclinic(&[&words[..], &["--listen-token-file", &token]].concat()).exits(2);
    assert!(
        refused.err.contains("--listen-cert and --listen-key"),
        "{}",
        refused.err
    );
    let tls = [
        "--listen-cert",
        &cert,
        "--listen-key",
        &key,
        "--listen-token-file",
        &token,
    ];
    let running = Running::new(&[&words[..], &tls].concat());
    let port = running.address.port();
    let ask = |more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--cacert",
            &cert,
        ]);
        let ran = curl
            .args(more)
            .arg(format!("https://localhost:{port}/json"))
            .output();
        ran.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    let Ok(without) = ask(&[]) else {
        return crate::common::skipped("no curl to ask with");
    };
    assert_eq!(without, "401");
    assert_eq!(
        ask(&["-H", "Authorization: Bearer wrong-wrong-wrong"]).expect("an answer"),
        "401"
    );
    let bearer = ["-H", "Authorization: Bearer 0123456789abcdef0123"];
    let end = Instant::now() + PATIENCE;
    while ask(&bearer).expect("an answer") != "200" {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(
        ask(&["-u", "anybody:0123456789abcdef0123"]).expect("an answer"),
        "200"
    );
    let mut plain = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    plain
        .write_all(b"GET /json HTTP/1.1\r\n\r\n")
        .expect("a request");
    let mut answer = Vec::new();
    let _reset = plain.read_to_end(&mut answer);
    assert!(
        !answer.starts_with(b"HTTP/1.1 200"),
        "in clear text nothing is served"
    );
}
