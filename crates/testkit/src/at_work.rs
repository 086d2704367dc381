//! Servers of the test database at work: asked, told what to do, and hurt behind their backs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_servers::{Checksums, Server, Session, SqlError, StartOptions, StopMode};

use crate::{TempCopy, all_majors, copy_of, seed};

/// The test database.
const DATABASE: &str = "clinic";

/// Files come, go and move; pages change.
pub const CHANGES: &str = "
DROP TABLE IF EXISTS public.fresh;
CREATE TABLE public.fresh AS SELECT i AS id, md5(i::text) AS what FROM generate_series(1, 5000) AS i;
CREATE INDEX ON public.fresh (what);
UPDATE public.docs SET id = id;
VACUUM FULL public.chains;
DELETE FROM public.measurements WHERE id % 7 = 0;
TRUNCATE public.fresh;
INSERT INTO public.fresh SELECT i, md5(i::text) FROM generate_series(1, 3000) AS i;
VACUUM public.docs;
REINDEX TABLE public.fresh;
VACUUM FULL pg_catalog.pg_class;
REINDEX TABLE pg_catalog.pg_attribute;
CHECKPOINT";

/// Few buffers and many checkpoints, so that pages reach the disk all the time.
pub fn busy() -> StartOptions {
    let busy = StartOptions::default().with("shared_buffers", "1MB");
    busy.with("max_wal_size", "4MB").with("autovacuum", "on")
}

/// A copy of the seed of this major, with its server at work on it.
pub fn started(major: u16, checksums: Checksums, options: &StartOptions) -> (TempCopy, Server) {
    let mut all = all_majors().into_iter();
    let installation = all.find(|one| one.major == major).expect("a major");
    let copy = copy_of(&seed(&installation, checksums));
    let server = copy.start_with(options).expect("a server");
    (copy, server)
}

/// Runs statements in the test database, one behind the other.
pub fn execute(server: &Server, sql: &str) {
    let mut session = connected(server);
    for statement in statements(sql) {
        session.execute(statement).expect(statement);
    }
}

/// The one value of a query in the test database.
pub fn value(server: &Server, sql: &str) -> String {
    let value = connected(server).query_value(sql).expect(sql);
    value.expect("a value")
}

/// What the catalogs of a cluster say of the test database.
pub fn clinic(cluster: &Cluster) -> Catalog {
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|own| own.name.as_deref() == Some(DATABASE));
    cluster.catalog(clinic.expect("the test database").oid)
}

/// Overwrites 64 bytes of a file, also under a server, which knows nothing of it.
pub fn overwrite(path: &Path, offset: u64) {
    let file = File::options().write(true).open(path).expect("a file");
    file.write_all_at(&[0x5a; 64], offset).expect("a write");
}

/// Sessions in the test database that run statements over and over until they are told to stop.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Load {
    /// A session for each script; every statement must succeed.
    pub fn start(server: &Server, scripts: &[&'static str]) -> Self {
        Self::holding(server, scripts, |statement, done| done.expect(statement))
    }

    /// The same with sessions that may stand in each other's way: a deadlock ends a statement and
    /// nothing else.
    pub fn start_rivals(server: &Server, scripts: &[&'static str]) -> Self {
        Self::holding(server, scripts, |_, _| ())
    }

    fn holding(server: &Server, scripts: &[&'static str], hold: Hold) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = |sql: &&'static str| {
            let (session, sql, stop) = (connected(server), *sql, Arc::clone(&stop));
            std::thread::spawn(move || turns(session, sql, &stop, hold))
        };
        let threads = scripts.iter().map(thread).collect();
        Load { stop, threads }
    }

    /// Ends it, and says how many statements were run.
    pub fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.threads.into_iter();
        ended.map(|thread| thread.join().expect("no panic")).sum()
    }
}

/// Does the work while the server on the copy is started, changes pages, and is stopped or killed,
/// over and over. Work that panics ends that too, so that its test fails instead of waiting.
pub fn while_it_restarts(copy: &TempCopy, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let restarts = scope.spawn(|| restarted(copy, &stop));
        let ending = EndsOnDrop(&stop);
        work();
        drop(ending);
        assert!(restarts.join().expect("no panic") > 0);
    });
}

struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn restarted(copy: &TempCopy, stop: &AtomicBool) -> u64 {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut server = copy.start_with(&busy()).expect("a server");
        execute(&server, "UPDATE public.docs SET id = id");
        match count % 3 {
            0 => server.stop(StopMode::Fast).expect("a stop"),
            1 => server.stop(StopMode::Immediate).expect("a stop"),
            _ => server.kill(),
        }
        count += 1;
    }
    count
}

/// What is asked of a statement's end.
type Hold = fn(&str, Result<(), SqlError>);

fn turns(mut session: Session, sql: &'static str, stop: &AtomicBool, hold: Hold) -> u64 {
    let mut done = 0;
    for statement in sql.split(';').cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        hold(statement, session.execute(statement));
        done += 1;
    }
    done
}

fn statements(sql: &str) -> impl Iterator<Item = &str> {
    let all = sql.split(';');
    all.filter(|statement| !statement.trim().is_empty())
}

fn connected(server: &Server) -> Session {
    server.connect(DATABASE).expect("a session")
}
