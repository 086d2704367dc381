//! A server at work all the time, and `pgclinic check` again and again on everything that people
//! have of it: silent at every level, until a page is overwritten in its file.
//!
//! ```text
//! pgbench, DDL, VACUUM ──► server ──► data directory, stream over the network
//!                            ├──────► backups.rs: folders, archives, chains of increments
//!                            └──────► standby.rs: at work, and killed
//! ```

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::judge;
use super::recipe::Unmade;
use super::recipes::load::{SETTINGS, Scripts, prepare};
use super::workshop::sql;
use crate::postgres::{self, Scratch, Server, Tools};
use crate::shell::{self, at};

mod backups;
mod overwritten;
mod standby;

/// What backups and a standby take besides.
const SENDING: [&str; 1] = ["wal_keep_size=1GB"];
/// Incremental backups ask for it.
const SUMMARIES: &str = "summarize_wal=on";

/// How long the server works before it is killed.
const BEFORE_THE_KILL: Duration = Duration::from_secs(10);

/// Checks for so long, and gives the number of complaints.
pub(super) fn run(
    tools: Result<Tools, Unmade>,
    program: &Path,
    levels: &[&str],
    time: Duration,
) -> Result<usize, String> {
    let done = tools.and_then(|tools| {
        let work = Work::prepared(&tools, program, levels)?;
        Ok(work.all(time)?)
    });
    match done {
        Ok(complaints) => Ok(complaints),
        Err(Unmade::Lacking(what)) => {
            println!("{:<28} skipped: {what}", "running");
            Ok(0)
        }
        Err(Unmade::Failed(why)) => Err(why),
    }
}

/// A server with a load, and who looks at it.
struct Work<'t> {
    tools: &'t Tools,
    program: &'t Path,
    levels: &'t [&'t str],
    scratch: Scratch,
    scripts: Scripts,
}

impl<'t> Work<'t> {
    fn prepared(
        tools: &'t Tools,
        program: &'t Path,
        levels: &'t [&'t str],
    ) -> Result<Self, Unmade> {
        if !tools.has("pgbench") {
            let folder = tools.folder().display();
            return Err(Unmade::Lacking(format!("no pgbench in {folder}")));
        }
        let scratch = postgres::scratch("corpus-running")?;
        postgres::give_to_server_user(scratch.path())?;
        let scripts = Scripts::write(scratch.path())?;
        Ok(Self {
            tools,
            program,
            levels,
            scratch,
            scripts,
        })
    }

    fn cluster(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    fn settings(&self) -> Vec<&'static str> {
        let mut settings = [SETTINGS, &SENDING].concat();
        if backups::has_increments(self.tools) {
            settings.push(SUMMARIES);
        }
        settings
    }

    fn all(&self, time: Duration) -> Result<usize, String> {
        self.tools.new_cluster(&self.cluster())?;
        let server = self.tools.start(&self.cluster(), &self.settings())?;
        prepare(&server, self.scratch.path(), 10)?;
        for statement in overwritten::COLD {
            sql(&server, "postgres", statement)?;
        }
        let standby = standby::Standby::of(self, &server)?;
        let mut complaints = self.under_load(&server, standby, time)?;
        complaints += overwritten::told(self, &server)?;
        complaints += self.killed(server)?;
        Ok(complaints)
    }

    fn under_load(
        &self,
        server: &Server<'_>,
        mut standby: standby::Standby<'_>,
        time: Duration,
    ) -> Result<usize, String> {
        let mut working = self.scripts.start(server, time)?;
        let end = Instant::now() + time;
        let mut complaints = 0;
        while Instant::now() < end {
            complaints += self.silent_at_all_levels("running", &[&self.cluster()])?;
            complaints += self.silent("streamed", &[&url_of(server)], "pages")?;
            complaints += backups::all(self, server)?;
            complaints += standby.checked()?;
        }
        standby.stop()?;
        ended(&mut working)?;
        Ok(complaints)
    }

    /// The end of the machine under a load.
    fn killed(&self, mut server: Server<'_>) -> Result<usize, String> {
        let mut working = self.scripts.start(&server, BEFORE_THE_KILL * 2)?;
        std::thread::sleep(BEFORE_THE_KILL);
        server.kill()?;
        ended(&mut working)?;
        self.silent_at_all_levels("killed", &[&self.cluster()])
    }

    fn silent_at_all_levels(&self, what: &str, target: &[&Path]) -> Result<usize, String> {
        let each = self.levels.iter();
        each.map(|level| self.silent(what, target, level)).sum()
    }

    fn silent(&self, what: &str, target: &[&Path], level: &str) -> Result<usize, String> {
        let verdict = judge::check(self.program, target, level)?;
        println!("{what:<28} {level:<10} {}", verdict.line);
        for complaint in &verdict.complaints {
            println!("    {complaint}");
        }
        Ok(verdict.complaints.len())
    }

    /// What a copy that lives on and another one differ in is explained by WAL.
    fn explained(&self, what: &str, now: &Path, other: &Path) -> Result<usize, String> {
        let mut diff = Command::new(self.program);
        diff.args(["diff", "--progress", "none"]).args([now, other]);
        let output = shell::output(&mut diff)?;
        let words = String::from_utf8_lossy(&output.stdout);
        let first = words.lines().next().unwrap_or("no answer");
        println!("{what:<28} {:<10} {first}", "diff");
        if output.status.success() {
            return Ok(0);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        for line in words.lines().chain(said.lines()).skip(1).take(20) {
            println!("    {line}");
        }
        Ok(1)
    }
}

/// A deadlock ends a client, and so does the end of its server; both are part of such a life.
fn ended(working: &mut [Child]) -> Result<(), String> {
    for child in working {
        child.wait().map_err(|error| format!("pgbench: {error}"))?;
    }
    Ok(())
}

fn url_of(server: &Server<'_>) -> PathBuf {
    let folder = server.folder().display();
    PathBuf::from(format!("postgres://postgres@/postgres?host={folder}"))
}

/// Takes a backup with these options of `pg_basebackup`.
fn take(server: &Server<'_>, folder: &Path, options: &[&str]) -> Result<(), String> {
    let mut take = server.client("pg_basebackup");
    take.args(["-U", "postgres", "-c", "fast", "-X", "stream"]);
    shell::capture(take.args(options).arg("-D").arg(folder)).map(drop)
}

fn gone(folder: &Path) -> Result<(), String> {
    std::fs::remove_dir_all(folder).map_err(at(folder))
}
