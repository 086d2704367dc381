//! Against real servers of every major; the fetched ones come from the cache after the first run.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pgclinic_servers::{
    Checksums, ConnectOptions, Error, InitOptions, Installation, MAJORS, RunAs, Scratch, Server,
    SqlError, StartOptions, StopMode, Wanted, find, initdb, sweep, sweep_in,
};
use rustix::process::{Pid, Signal, kill_process};

fn installation(major: u16) -> Installation {
    let wanted = Wanted {
        major: Some(major),
        ..Wanted::default()
    };
    find(&wanted, &mut |_| {}).expect("a server of this major")
}

/// A small cluster of one major, in a scratch folder.
struct Small {
    installation: Installation,
    run_as: RunAs,
    pgdata: PathBuf,
    _scratch: Scratch,
}

impl Small {
    fn new(major: u16, base: Option<&Path>) -> Self {
        let (installation, run_as) = (installation(major), RunAs::new(None).expect("a user"));
        let scratch = Scratch::new(&run_as, base).expect("a scratch directory");
        let pgdata = scratch.folder("data").expect("a directory");
        let options = InitOptions {
            wal_segsize_mb: Some(1),
            ..InitOptions::default()
        };
        initdb(&installation, &run_as, &pgdata, &options).expect("a cluster");
        Self {
            installation,
            run_as,
            pgdata,
            _scratch: scratch,
        }
    }

    fn start(&self) -> Server {
        Server::start(
            &self.installation,
            &self.run_as,
            &self.pgdata,
            &StartOptions::default(),
        )
        .expect("a start")
    }
}

#[test]
fn every_major_starts_answers_and_stops() {
    for major in MAJORS {
        let small = Small::new(major, None);
        let mut server = small.start();
        let mut session = server.connect("postgres").expect("a session");
        let version = session
            .query_value("SHOW server_version_num")
            .expect("an answer")
            .expect("a value");
        assert!(version.starts_with(&major.to_string()), "{version}");
        assert_eq!(
            session
                .query_value("SHOW data_checksums")
                .expect("an answer")
                .as_deref(),
            Some("on")
        );
        let mut copied = Vec::new();
        let copy = "COPY (SELECT 1, NULL, 'a' || chr(9) || 'b') TO STDOUT";
        let bytes = session.copy_out(copy, &mut |bytes| copied.extend_from_slice(bytes));
        assert_eq!(bytes.expect("rows"), 10);
        assert_eq!(copied, b"1\t\\N\ta\\tb\n".as_slice().to_vec());
        server.stop(StopMode::Fast).expect("a stop");
        assert!(
            server.log().contains("database system is shut down"),
            "{}",
            server.log()
        );
        assert!(!small.pgdata.join("postmaster.pid").exists());
    }
}

#[test]
fn a_server_is_never_root_and_checksums_can_be_off() {
    let (installation, run_as) = (installation(18), RunAs::new(None).expect("a user"));
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let pgdata = scratch.path().join("made-by-initdb");
    let options = InitOptions {
        checksums: Checksums::Off,
        ..InitOptions::default()
    };
    initdb(&installation, &run_as, &pgdata, &options).expect("a cluster");
    let server =
        Server::start(&installation, &run_as, &pgdata, &StartOptions::default()).expect("a start");
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a status");
    let field = |name: &str| {
        status
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a field")
            .to_owned()
    };
    assert!(
        field("Uid:")
            .split_whitespace()
            .skip(1)
            .all(|uid| uid == run_as.uid.to_string()),
        "{status}"
    );
    assert!(
        !field("Groups:")
            .split_whitespace()
            .any(|group| group == "0"),
        "{status}"
    );
    let mut session = server.connect("postgres").expect("a session");
    assert_eq!(
        session
            .query_value("SHOW data_checksums")
            .expect("an answer")
            .as_deref(),
        Some("off")
    );
}

#[test]
fn messages_are_kept_and_read_like_in_psql() {
    let small = Small::new(15, None);
    let server = small.start();
    let mut session = server.connect("postgres").expect("a session");
    session
        .execute(
            "DO $$BEGIN RAISE WARNING 'careful' USING DETAIL = 'thin ice', HINT = 'walk'; END$$",
        )
        .expect("a warning");
    let messages = session.take_messages();
    let said: Vec<String> = messages.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1);
    assert!(
        said[0]
            .starts_with("WARNING:  careful\nDETAIL:  thin ice\nHINT:  walk\nCONTEXT:  PL/pgSQL"),
        "{said:?}"
    );
    let error = session
        .execute("SELECT 1; SELECT 1/0; SELECT 2")
        .unwrap_err();
    assert_eq!(
        error.message().expect("the server's message").sqlstate,
        "22012"
    );
    assert!(
        session.query("SELECT 1").is_ok(),
        "an ERROR does not end the session"
    );
    let refused = server.connect("nowhere").unwrap_err().to_string();
    assert_eq!(refused, "FATAL:  database \"nowhere\" does not exist");
}

#[test]
fn a_crashed_backend_is_gone_and_the_server_recovers() {
    let small = Small::new(18, None);
    let server = small.start();
    let mut session = server.connect("postgres").expect("a session");
    let mut bystander = server.connect("postgres").expect("a session");
    let pid = session
        .query_value("SELECT pg_backend_pid()")
        .expect("an answer")
        .expect("a pid");
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("a kill");
    assert!(matches!(session.query("SELECT 1"), Err(SqlError::Gone)));
    assert!(session.is_over() && matches!(session.query("SELECT 1"), Err(SqlError::Gone)));
    // Depending on who is quicker the other session hears the warning in words or just the silence.
    assert!(bystander.query("SELECT pg_sleep(5)").is_err() && bystander.is_over());
}

#[test]
fn no_statement_keeps_us_waiting() {
    let small = Small::new(15, None);
    let server = small.start();
    let wall = ConnectOptions {
        wall_limit: Duration::from_millis(200),
        ..ConnectOptions::default()
    };
    let mut session = server.connect_with("postgres", &wall).expect("a session");
    assert!(matches!(
        session.query("SELECT pg_sleep(60)"),
        Err(SqlError::TimedOut { .. })
    ));
    let own = ConnectOptions {
        statement_timeout: Some(Duration::from_millis(50)),
        ..ConnectOptions::default()
    };
    let mut session = server.connect_with("postgres", &own).expect("a session");
    let error = session
        .query("SELECT pg_sleep(60)")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "ERROR:  canceling statement due to statement timeout"
    );
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let small = Small::new(15, None);
    std::fs::write(
        small.pgdata.join("postgresql.conf"),
        "shared_buffers = many\n",
    )
    .expect("a write");
    let options = StartOptions::default().with("work_mem", "4MB");
    std::fs::remove_file(small.pgdata.join("global/pg_control")).expect("a removal");
    let error =
        Server::start(&small.installation, &small.run_as, &small.pgdata, &options).unwrap_err();
    let Error::NotStarted { log, .. } = &error else {
        panic!("another error: {error}")
    };
    assert!(log.contains("shared_buffers"), "{error}");
}

#[test]
fn a_killed_server_leaves_a_cluster_that_recovers_and_nothing_else() {
    let small = Small::new(15, None);
    let mut server = small.start();
    let mut session = server.connect("postgres").expect("a session");
    session
        .execute("CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")
        .expect("a table");
    let pid = server.pid();
    server.kill();
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    assert!(
        !segments
            .lines()
            .any(|line| line.split_whitespace().nth(4) == Some(&pid.to_string())),
        "{segments}"
    );
    let mut again = small.start();
    let mut session = again.connect("postgres").expect("a session");
    assert_eq!(
        session
            .query_value("SELECT count(*) FROM t")
            .expect("an answer")
            .as_deref(),
        Some("1000")
    );
    again.stop(StopMode::Fast).expect("a stop");
    assert!(server.log().contains("ready to accept connections"));
}

/// Not a test of its own: the next one runs it in a process that it kills.
#[test]
fn helper_that_is_killed() {
    let Some(base) = std::env::var_os("PGCLINIC_TEST_BASE") else {
        return;
    };
    let small = Small::new(15, Some(Path::new(&base)));
    let server = small.start();
    let mut out = std::io::stdout();
    let line = format!(
        "server {} {}",
        server.pid(),
        server.socket_folder().display()
    );
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("a line");
    std::io::stdin()
        .read_line(&mut String::new())
        .expect("the end of the input");
}

#[test]
fn after_kill_9_no_server_and_no_folder_stay() {
    let run_as = RunAs::new(None).expect("a user");
    let outer = Scratch::new(&run_as, None).expect("a scratch directory");
    let base = outer.folder("base").expect("a directory");
    let mut helper = Command::new(std::env::current_exe().expect("our path"))
        .args(["--exact", "real::helper_that_is_killed", "--nocapture"])
        .env("PGCLINIC_TEST_BASE", &base)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a helper");
    let lines = BufReader::new(helper.stdout.take().expect("its output")).lines();
    let said = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("server ")?.1.to_owned()));
    let said = said.expect("the helper's server");
    let (pid, sockets) = said.split_once(' ').expect("a pid and a directory");

    assert_eq!(
        sweep_in(&base).expect("a sweep").folders,
        0,
        "the living are left alone"
    );
    helper.kill().expect("a kill");
    helper.wait().expect("an end");
    assert_eq!(sweep_in(&base).expect("a sweep").folders, 1);
    sweep().expect("a sweep of the usual places");
    assert!(!Path::new(sockets).exists(), "{sockets} is still there");
    assert_eq!(std::fs::read_dir(&base).expect("a directory").count(), 0);
    let cwd = Path::new("/proc").join(pid).join("cwd");
    assert!(
        std::fs::read_link(cwd).is_err(),
        "postmaster {pid} still runs"
    );
}
