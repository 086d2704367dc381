//! The server's log as `watch` reads it, on real servers: what users write into it, and files that
//! come and go between two samples.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pgclinic_model::document::{LoggedMessage, WatchedSign, WatchedTarget};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StartOptions};
use pgclinic_testkit::{execute, started, value};
use pgclinic_watch::{Thoroughness, WatchOptions, Watcher};

use crate::watch_background::{PATIENCE, damage};

fn watcher(server: &Server, user: &str) -> Watcher {
    let mut target = ConnectionTarget::of(server, "clinic");
    target.user = user.to_owned();
    Watcher::new(target, WatchOptions::default())
}

fn sign<'a>(target: &'a WatchedTarget, name: &str) -> &'a WatchedSign {
    let found = target.signs.iter().find(|own| own.name == name);
    found.unwrap_or_else(|| panic!("{name} of {:?}", target.unreachable))
}

fn invalid_page(target: &WatchedTarget) -> Option<&LoggedMessage> {
    target
        .logged
        .iter()
        .find(|own| own.message == "invalid-page")
}

/// Samples until this holds: the collector writes in a process of its own.
fn until(watcher: &mut Watcher, holds: impl Fn(&WatchedTarget) -> bool) -> WatchedTarget {
    let end = Instant::now() + PATIENCE;
    loop {
        let own = watcher.sample(Thoroughness::All);
        if holds(&own) {
            return own;
        }
        assert!(Instant::now() < end, "{:?}", own.logged);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn file_now(server: &Server, pgdata: &Path) -> PathBuf {
    pgdata.join(value(server, "SELECT pg_current_logfile()"))
}

/// Makes the server begin another file, whose name has the second.
fn rotate(server: &Server, pgdata: &Path) {
    let before = file_now(server, pgdata);
    let end = Instant::now() + PATIENCE;
    while file_now(server, pgdata) == before {
        execute(server, "SELECT pg_rotate_logfile()");
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(100));
    }
}

const RAISED: &str = "DO $$ BEGIN RAISE EXCEPTION 'invalid page in block 3 of relation base/5/16384' \
    USING ERRCODE = 'XX001'; END $$";

#[test]
fn two_rotations_within_an_interval_lose_nothing_and_what_users_raise_is_no_damage() {
    let settings = StartOptions::default().with("logging_collector", "on");
    let (copy, server) = started(15, Checksums::On, &settings);
    // The second one may not know where the files are, and reads through the server.
    execute(
        &server,
        "CREATE ROLE reader LOGIN; \
         GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean), pg_current_logfile(), pg_ls_logdir() TO reader",
    );
    let mut watchers = ["postgres", "reader"].map(|user| watcher(&server, user));
    for watcher in &mut watchers {
        assert!(invalid_page(&watcher.sample(Thoroughness::All)).is_none());
    }
    damage(&server, &copy.pgdata);
    let mut session = server.connect("clinic").expect("a session");
    let _raised = session.execute(RAISED);
    rotate(&server, &copy.pgdata);
    let _damaged = session.query("SELECT * FROM public.docs");
    let _raised = session.execute(RAISED);
    rotate(&server, &copy.pgdata);
    for watcher in &mut watchers {
        let own = until(watcher, |own| invalid_page(own).is_some());
        let page = invalid_page(&own).expect("a kind");
        assert_eq!((page.count, page.by_sqlstate), (1, false), "{page:?}");
        let why = sign(&own, "logged-messages").finding.clone();
        assert!(why.is_some_and(|why| why.contains("not verified")));
        assert_eq!(sign(&own, "log-gaps").headline, Some(0.0));
        assert_eq!(sign(&own, "log-unread-bytes").values[0].value, 0.0);
    }

    // Only what was read can be missed: the third file may be empty yet.
    let _damaged = session.query("SELECT * FROM public.docs");
    for watcher in &mut watchers {
        until(watcher, |own| {
            invalid_page(own).is_some_and(|page| page.count == 2)
        });
    }
    let now = File::options()
        .write(true)
        .open(file_now(&server, &copy.pgdata));
    now.expect("the log").set_len(0).expect("an empty log");
    for watcher in &mut watchers {
        let own = until(watcher, |own| sign(own, "log-gaps").values[0].value > 0.0);
        let why = sign(&own, "log-gaps").finding.clone().unwrap_or_default();
        assert!(why.contains("truncated before its end was read"), "{why}");
    }

    execute(&server, "ALTER SYSTEM SET log_min_messages = 'panic'");
    execute(&server, "SELECT pg_reload_conf()");
    let messages = |own: &WatchedTarget| sign(own, "logged-messages").not_available.clone();
    let own = until(&mut watchers[0], |own| messages(own).is_some());
    let why = messages(&own).unwrap_or_default();
    assert!(why.contains("log_min_messages is panic"), "{why}");
}
