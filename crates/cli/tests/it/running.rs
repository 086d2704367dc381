//! `check` on the data directory of a server at work: silent under load, and not to what was hurt.

use pgclinic_model::{CheckDocument, Severity, Verdict};

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{count, hold_ledger, pgclinic, text, told};
use pgclinic_servers::{Checksums, Server};
use pgclinic_testkit::{Load, busy, copy_of, seed, started, while_it_restarts};

/// Files come, go and move.
const FILES: &str = "
DROP TABLE IF EXISTS public.fresh;
CREATE TABLE public.fresh AS SELECT i AS id, md5(i::text) AS what FROM generate_series(1, 5000) AS i;
CREATE INDEX ON public.fresh (what);
VACUUM FULL public.chains;
TRUNCATE public.fresh;
INSERT INTO public.fresh SELECT i, md5(i::text) FROM generate_series(1, 3000) AS i;
REINDEX TABLE public.fresh;
VACUUM FULL pg_catalog.pg_class;
REINDEX TABLE pg_catalog.pg_attribute;
CHECKPOINT";

/// Pages change.
const ROWS: &str = "
UPDATE public.docs SET id = id;
DELETE FROM public.measurements WHERE id % 7 = 0;
INSERT INTO public.measurements SELECT id + 6, a, b, taken, flag, code FROM public.measurements WHERE id % 7 = 1 ON CONFLICT DO NOTHING;
VACUUM public.docs";

#[track_caller]
fn check(pgdata: &Path, level: &str, exit: u8) -> CheckDocument {
    let ran = pgclinic(&["check", text(pgdata), "--level", level, "--format", "json"]);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{level}: {}\n{}", told(&document), ran.err);
    hold_ledger(&document);
    document
}

fn silent_under_load(major: u16, checksums: Checksums) {
    let (copy, server) = started(major, checksums, &busy());
    let load = Load::start_rivals(&server, &[FILES, ROWS]);
    for level in ["pages", "structure", "full", "pages", "structure"] {
        let document = check(&copy.pgdata, level, 0);
        assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
        assert_eq!(
            count(&document, Severity::Warning),
            0,
            "{}",
            told(&document)
        );
        let state = document.target.state.as_deref().unwrap_or_default();
        assert!(state.starts_with("running"), "{state}");
    }
    assert!(load.stop() > 0);
}

#[test]
fn a_server_of_13_under_load_is_healthy() {
    silent_under_load(13, Checksums::On);
}

#[test]
fn a_server_of_18_under_load_is_healthy() {
    silent_under_load(18, Checksums::On);
}

#[test]
fn a_server_without_checksums_under_load_is_healthy() {
    silent_under_load(16, Checksums::Off);
}

/// Some bytes of a table that nobody writes to.
#[test]
fn a_page_overwritten_under_load_is_found() {
    let (copy, server) = started(18, Checksums::On, &busy());
    let mut session = server.connect("clinic").expect("a session");
    let sql = "SELECT pg_relation_filepath('public.frozen')";
    let path = session.query_value(sql).expect(sql).expect("a path");
    let load = Load::start_rivals(&server, &[FILES, ROWS]);
    let mut options = std::fs::File::options();
    options.write(true);
    let file = options.open(copy.pgdata.join(&path)).expect("a file");
    file.write_all_at(&[7; 64], 8192 + 6000).expect("hurt");
    for level in ["pages", "structure", "full"] {
        let document = check(&copy.pgdata, level, 1);
        let found = document.findings.iter();
        let found = found.filter(|finding| finding.severity == Severity::Damage);
        let places: Vec<_> = found
            .map(|finding| (&*finding.place.path, finding.place.block))
            .collect();
        assert!(
            places.iter().all(|place| *place == (&*path, Some(1))),
            "{}",
            told(&document)
        );
        assert!(!places.is_empty());
        assert_eq!(document.relations.len(), 1);
    }
    load.stop();
}

#[test]
fn the_words_say_that_a_server_is_at_work() {
    let (copy, server) = started(18, Checksums::On, &busy());
    let ran = pgclinic(&["check", text(&copy.pgdata)]).exits(0);
    assert!(ran.first_line().starts_with("HEALTHY"), "{}", ran.out);
    assert!(ran.out.contains("a server is running"), "{}", ran.out);
    let state = copy.pgdata.join("../state");
    let going_on = ["check", text(&copy.pgdata), "--state", text(&state)];
    pgclinic(&going_on).exits(0);
    let ran = pgclinic(&[&going_on[..], &["--resume"]].concat()).exits(2);
    assert!(ran.err.contains("nothing is left to do"), "{}", ran.err);
    drop(server);
}

/// A server that restarts all the time is healthy at every moment, or cannot be looked at whole.
#[test]
fn a_server_that_restarts_meanwhile_is_no_damage() {
    let (copy, server) = started(18, Checksums::On, &busy());
    drop(server);
    while_it_restarts(&copy, || {
        for level in ["pages", "structure", "pages", "full"] {
            let ran = pgclinic(&[
                "check",
                text(&copy.pgdata),
                "--level",
                level,
                "--format",
                "json",
            ]);
            let document = ran.document();
            assert!(
                matches!(ran.exit, 0 | 3),
                "{}\n{}",
                told(&document),
                ran.err
            );
            assert_eq!(count(&document, Severity::Damage), 0, "{}", told(&document));
        }
    });
}

/// The server's own word stands in the finding; another cluster's server is not asked.
#[test]
fn the_server_is_asked_for_a_damaged_page() {
    let (copy, server) = started(18, Checksums::On, &busy());
    let mut session = server.connect("clinic").expect("a session");
    let sql = "SELECT pg_relation_filepath('public.frozen')";
    let path = session.query_value(sql).expect(sql).expect("a path");
    let url = |server: &Server| {
        format!(
            "postgres://postgres@:5432/postgres?host={}",
            text(server.socket_folder())
        )
    };
    let own = url(&server);
    let words = [
        "check",
        text(&copy.pgdata),
        "--level",
        "pages",
        "--format",
        "json",
        "--server",
        &own,
    ];
    pgclinic(&words).exits(0);
    let mut options = std::fs::File::options();
    options.write(true);
    let file = options.open(copy.pgdata.join(&path)).expect("a file");
    file.write_all_at(&[7; 64], 8192 + 6000).expect("hurt");
    let document = pgclinic(&words).exits(1).document();
    let damage = document.findings.first().expect("damage");
    assert_eq!(
        damage
            .facts
            .get("the_server")
            .and_then(|said| said.as_str()),
        Some("refuses the page")
    );
    let said = damage.server_says.as_deref().unwrap_or_default();
    assert!(
        said.contains("invalid page in block 1 of relation"),
        "{said}"
    );

    let (_other, stranger) = started(13, Checksums::On, &busy());
    let theirs = url(&stranger);
    let refused = pgclinic(&["check", text(&copy.pgdata), "--server", &theirs]).exits(2);
    assert!(
        refused.err.contains("is the server of the cluster"),
        "{}",
        refused.err
    );
    let (stopped, gone) = started(18, Checksums::On, &busy());
    drop(gone);
    let nobody = pgclinic(&["check", text(&stopped.pgdata), "--server", &own]).exits(2);
    assert!(nobody.err.contains("none is"), "{}", nobody.err);
}

/// What `/proc` says a process does: `T` is stopped.
fn state_of(child: &Child) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
    let stat = stat.expect("a process");
    let (_, behind) = stat.rsplit_once(") ").expect("a name in brackets");
    behind.chars().next().expect("a letter")
}

fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.arg(name).arg(child.id().to_string()).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn a_run_pauses_and_goes_on_by_signal() {
    let (copy, _server) = started(18, Checksums::On, &busy());
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgclinic"));
    command.args(["check", text(&copy.pgdata), "--rate", "10MB/s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().expect("the program");
    for _ in 0..3 {
        signal(&child, "-STOP");
        while state_of(&child) != 'T' {}
        signal(&child, "-CONT");
    }
    let output = child.wait_with_output().expect("an end");
    let words = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{words}");
    assert!(words.starts_with("HEALTHY (running)"), "{words}");
}

/// The classes of a process's work and of its reads, as `chrt` and `ionice` say them; nothing where
/// they cannot or the process is gone.
fn classes(process: u32) -> Option<[String; 2]> {
    let said = |program: &str| {
        let mut asked = Command::new(program);
        let output = asked.arg("-p").arg(process.to_string()).output().ok()?;
        let words = String::from_utf8_lossy(&output.stdout);
        let first = words.lines().next()?.rsplit(' ').next()?.to_owned();
        output.status.success().then_some(first)
    };
    Some([said("chrt")?, said("ionice")?])
}

fn may_be_idle() -> bool {
    let ran = |program: &str, words: &[&str]| {
        let ran = Command::new(program).args(words).arg("true").status();
        ran.is_ok_and(|status| status.success())
    };
    ran("chrt", &["-i", "0"]) && ran("ionice", &["-c", "3"])
}

/// The classes that the program's work and reads had while it looked at a data directory, without
/// repetition.
fn classes_of_a_run(pgdata: &Path, more: &[&str]) -> Vec<[String; 2]> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgclinic"));
    command.args(["check", text(pgdata), "--level", "pages"]);
    command.args(["--rate", "20MB/s"]);
    command
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("the program");
    let mut seen = Vec::new();
    while child.try_wait().expect("a child").is_none() {
        seen.extend(classes(child.id()));
        seen.dedup();
    }
    seen
}

#[test]
fn a_run_beside_a_server_works_and_reads_when_nobody_else_does() {
    if !may_be_idle() {
        eprintln!("chrt or ionice do not work here: nothing is compared");
        return;
    }
    let own = classes(std::process::id()).expect("classes");
    let idle = ["SCHED_IDLE", "idle"].map(str::to_owned);
    assert_ne!(own, idle);
    let (copy, server) = started(18, Checksums::On, &busy());
    let beside = classes_of_a_run(&copy.pgdata, &[]);
    assert!(beside.contains(&idle), "{beside:?}");
    let asked = classes_of_a_run(&copy.pgdata, &["--io-priority", "usual"]);
    assert!(asked.contains(&own) && !asked.contains(&idle), "{asked:?}");
    drop(server);
    let stopped = copy_of(&seed(&pgclinic_testkit::server(18), Checksums::On));
    let alone = classes_of_a_run(&stopped.pgdata, &[]);
    assert!(alone.contains(&own) && !alone.contains(&idle), "{alone:?}");
}
