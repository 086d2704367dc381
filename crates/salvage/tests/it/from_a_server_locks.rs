//! Others hold locks that a salvage of a running server needs: it waits so long and no longer.

use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use pgclinic_model::Progress;
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_salvage::salvage_live;
use pgclinic_servers::{Checksums, ConnectOptions, ConnectionTarget, Server, Session};
use pgclinic_testkit::{Quiet, copy_of, seed, server};

use crate::common::{options, session};

/// What is waited for a lock, four times.
const WAIT: Duration = Duration::from_millis(300);

fn salvaged(server: &Server, progress: &dyn Progress) -> SalvageReport {
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "csv");
    options.lock_wait = WAIT;
    let target = ConnectionTarget::of(server, "clinic");
    salvage_live(&target, &options, progress).expect("a salvage")
}

#[test]
fn locks_of_others_leave_a_salvage_incomplete() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let mut other = session(&running, "clinic");
    // On the catalogs no session can even begin.
    other
        .execute("BEGIN; LOCK TABLE pg_catalog.pg_class IN ACCESS EXCLUSIVE MODE")
        .expect("a lock");
    let account = salvaged(&running, &Quiet);
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let why = &account.not_salvaged.first().expect("a reason").why;
    assert!(why.contains("another session holds a lock"), "{why}");
    // On a table, the others are written.
    other
        .execute("ROLLBACK; BEGIN; LOCK TABLE public.docs IN ACCESS EXCLUSIVE MODE")
        .expect("a lock");
    let account = salvaged(&running, &Quiet);
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let mut left: Vec<_> = account.tables.iter().collect();
    left.retain(|table| table.file.is_none());
    let [docs] = left.as_slice() else {
        panic!("{left:#?}");
    };
    assert_eq!(
        (&*docs.table, docs.rows.lost, docs.rows.written),
        ("docs", 0, 0)
    );
    assert!(docs.out_of_reach && account.totals.written > 0);
    other.execute("ROLLBACK").expect("free");
    let account = salvaged(&running, &Quiet);
    assert_ne!(account.outcome, Outcome::Damaged, "{account:#?}");
    assert!(account.tables.iter().all(|table| table.file.is_some()));
}

/// Begins VACUUM FULL of `pg_class` when the tables are known and none is read, and goes on when it
/// waits for the session that knows them.
struct Rewriting {
    server: ConnectionTarget,
    rewrite: Mutex<Option<JoinHandle<()>>>,
    watch: Mutex<Session>,
}

const WAITS: &str =
    "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted";

impl Progress for Rewriting {
    fn expect(&self, _bytes: u64) {
        let mut rewrite = self.rewrite.lock().expect("no panic");
        if rewrite.is_some() {
            return;
        }
        let mut watch = self.watch.lock().expect("no panic");
        let mut session = opened(&self.server);
        *rewrite = Some(std::thread::spawn(move || {
            let rewritten = session.execute("VACUUM FULL pg_catalog.pg_class");
            rewritten.expect("rewritten in the end");
        }));
        while watch.query_value(WAITS).expect("a count").as_deref() == Some("0") {}
    }

    fn advance(&self, _bytes: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

fn opened(target: &ConnectionTarget) -> Session {
    Session::open(target, &ConnectOptions::default()).expect("a session")
}

/// VACUUM FULL waits for the session that read the catalogs, and every session that begins for
/// VACUUM FULL.
#[test]
fn a_circle_through_the_salvage_itself_ends() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let target = ConnectionTarget::of(&running, "clinic");
    let mut watch = opened(&target);
    watch.query_value(WAITS).expect("known to the session");
    let rewriting = Rewriting {
        server: target,
        rewrite: Mutex::default(),
        watch: Mutex::new(watch),
    };
    let account = salvaged(&running, &rewriting);
    assert_ne!(account.outcome, Outcome::Damaged, "{account:#?}");
    assert!(account.tables.iter().all(|table| table.file.is_some()));
    let rewrite = rewriting.rewrite.into_inner().expect("no panic");
    rewrite.expect("begun").join().expect("it ended");
}
