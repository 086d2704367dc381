//! pgbench and a rougher load with DDL, VACUUM and concurrent index builds beside it: stopped
//! cleanly, and killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::{Workshop, copy, sql, sql_file};
use crate::postgres::Server;
use crate::shell::{self, at};
use crate::task::Outcome;

pub(super) const RECIPE: Recipe = Recipe {
    name: "load",
    summary: "pgbench, every kind of index under load, DDL and VACUUM beside it: stopped, and killed",
    quick: true,
    make,
};

/// Autovacuum and checkpoints come often, so that the load meets them.
pub(in crate::tasks::corpus) const SETTINGS: &[&str] = &[
    "fsync=off",
    "max_prepared_transactions=4",
    "track_commit_timestamp=on",
    "autovacuum_naptime=1s",
    "checkpoint_timeout=30s",
    "max_wal_size=96MB",
    "min_wal_size=32MB",
    "shared_buffers=32MB",
    "log_min_messages=fatal",
    "log_min_error_statement=fatal",
];

const SETUP: &str = include_str!("setup.sql");
const MIXED: &str = include_str!("mixed.sql");
const LEFT_OPEN: &str = include_str!("left_open.sql");
const BESIDE: &str = include_str!("beside.sql");

/// How long each of the two loads works.
const LOAD: Duration = Duration::from_secs(20);
const LOAD_BEFORE_THE_KILL: Duration = Duration::from_secs(10);

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let tools = shop.installed()?;
    if !tools.has("pgbench") {
        return Err(Unmade::Lacking("no pgbench is installed".into()));
    }
    let scripts = Scripts::write(folder)?;
    let (stopped, killed) = (folder.join("stopped"), folder.join("killed"));
    tools.new_cluster(&stopped)?;
    let server = tools.start(&stopped, SETTINGS)?;
    prepare(&server, folder, 10)?;
    scripts.load(&server, LOAD)?;
    run(&server, folder, "left_open.sql", LEFT_OPEN)?;
    server.stop()?;

    copy(&stopped, &killed)?;
    let mut server = tools.start(&killed, SETTINGS)?;
    // Its locks would stop the load.
    sql(&server, "postgres", "ROLLBACK PREPARED 'left open'")?;
    let mut working = scripts.start(&server, LOAD_BEFORE_THE_KILL * 2)?;
    std::thread::sleep(LOAD_BEFORE_THE_KILL);
    server.kill()?;
    for child in &mut working {
        // They fail with their server, and that is meant.
        let _ = child.wait();
    }
    Ok(())
}

/// Statement by statement: some of them refuse to run in a transaction of many.
fn run(server: &Server<'_>, folder: &Path, name: &str, script: &str) -> Outcome {
    let file = folder.join(name);
    std::fs::write(&file, script).map_err(at(&file))?;
    sql_file(server, "postgres", &file)
}

/// The tables of pgbench at this scale, and one with every kind of index.
pub(in crate::tasks::corpus) fn prepare(server: &Server<'_>, folder: &Path, scale: u32) -> Outcome {
    let mut pgbench = server.client("pgbench");
    pgbench.args(["-i", "-q", "--foreign-keys", "-U", "postgres", "-s"]);
    shell::capture(pgbench.arg(scale.to_string()).arg("postgres"))?;
    run(server, folder, "setup.sql", SETUP)
}

/// The two loads as files that the servers' user can read.
pub(in crate::tasks::corpus) struct Scripts {
    mixed: PathBuf,
    beside: PathBuf,
}

impl Scripts {
    pub(in crate::tasks::corpus) fn write(folder: &Path) -> Result<Self, String> {
        let scripts = Self {
            mixed: folder.join("mixed.sql"),
            beside: folder.join("beside.sql"),
        };
        std::fs::write(&scripts.mixed, MIXED).map_err(at(&scripts.mixed))?;
        std::fs::write(&scripts.beside, BESIDE).map_err(at(&scripts.beside))?;
        Ok(scripts)
    }

    fn load(&self, server: &Server<'_>, time: Duration) -> Result<(), String> {
        for child in &mut self.start(server, time)? {
            // A deadlock ends a client, which is part of such a life.
            child.wait().map_err(|error| format!("pgbench: {error}"))?;
        }
        Ok(())
    }

    pub(in crate::tasks::corpus) fn start(
        &self,
        server: &Server<'_>,
        time: Duration,
    ) -> Result<[Child; 2], String> {
        let file = |path: &Path, weight: u32| format!("{}@{weight}", path.display());
        let many = [
            "-c",
            "8",
            "-j",
            "2",
            "-b",
            "tpcb-like@1",
            "-f",
            &file(&self.mixed, 2),
        ];
        let one = ["-c", "1", "-n", "-f", &file(&self.beside, 1)];
        Ok([start(server, time, &many)?, start(server, time, &one)?])
    }
}

fn start(server: &Server<'_>, time: Duration, arguments: &[&str]) -> Result<Child, String> {
    let mut pgbench: Command = server.client("pgbench");
    pgbench.args(["-U", "postgres", "--max-tries=20", "--random-seed=42", "-T"]);
    pgbench
        .arg(time.as_secs().to_string())
        .args(arguments)
        .arg("postgres");
    pgbench.stdout(Stdio::null()).stderr(Stdio::null());
    pgbench
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", shell::line(&pgbench)))
}
