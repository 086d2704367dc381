//! What a watched server pays: processor time of all its processes with `pgclinic watch` at its
//! defaults and without, in turns, by the counters and the statistics of the laboratory
//! (`schedstat` of each process, differences within pairs, an interval).

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use pgclinic_statistics::paired;

use super::table::machine;
use super::watched::{self, Watch};
use crate::args::Args;
use crate::postgres::{self, Server};
use crate::shell;
use crate::task::Outcome;

/// The interval errs this often.
const ALPHA: f64 = 0.05;
/// Part of one core that is looked for.
const LIMIT: f64 = 0.01;
/// Ticks a second of `/proc/PID/stat`.
const TICKS: f64 = 100.0;
/// Relations of an application, so that catalogs and statistics are not those of an empty server.
const TABLES: u32 = 500;
const FILL: &str = "DO $$ BEGIN FOR i IN 1..500 LOOP EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY, body text)', i); \
     EXECUTE format('INSERT INTO t%s SELECT i, repeat(''x'', 100) FROM generate_series(1, 200) i', i); END LOOP; END $$";

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let turns = args.number("--turns", 6)?.max(2);
    let seconds = args.number("--seconds", 60)?.max(1);
    let program = args.value("--pgclinic")?.map(PathBuf::from);
    args.finish()?;
    let program = program.map_or_else(super::check::build, Ok)?;

    let scratch = postgres::scratch("bench-overhead")?;
    let installations = watched::installations(2)?;
    println!("{}\n", machine());
    println!(
        "{TABLES} tables; {turns} turns of {seconds} s without and with `watch --listen` at its defaults, its start and first sample included; the \
         interval errs in {:.0} % of cases.\n",
        ALPHA * 100.0
    );
    println!(
        "| server | load | its processes without | more with `watch`, of one core | its interval | the session of `watch` alone |"
    );
    println!("|---|---|--:|--:|--:|--:|");
    let mut worst: f64 = 0.0;
    for (number, tools) in installations.iter().enumerate() {
        let folder = scratch.path().join(format!("s{number}"));
        let server = watched::start(tools, &folder, &[], 0)?;
        let bench = Bench {
            server: &server,
            program: &program,
            window: Duration::from_secs(seconds),
        };
        watched::execute(&server, "postgres", FILL)?;
        let version = watched::execute(&server, "postgres", "SHOW server_version")?;
        worst = worst.max(bench.row(&version, "none", turns)?);
        let mut load = bench.load()?;
        let row = bench.row(&version, "`pgbench`, 20 transactions a second", turns);
        let _ = load.kill();
        let _ = load.wait();
        worst = worst.max(row?);
        server.stop()?;
    }
    if worst < LIMIT {
        Ok(())
    } else {
        Err(format!(
            "{:.2} % of one core are not below {:.0} %",
            worst * 100.0,
            LIMIT * 100.0
        ))
    }
}

struct Bench<'a> {
    server: &'a Server<'a>,
    program: &'a std::path::Path,
    window: Duration,
}

/// Parts of one core.
struct Window {
    all: f64,
    session: f64,
}

impl Bench<'_> {
    /// Prints a row and gives the upper end of what is more.
    fn row(&self, version: &str, load: &str, turns: u64) -> Result<f64, String> {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        // A B, B A, A B …: what drifts hits both alike.
        for turn in 0..turns {
            let order = if turn % 2 == 0 {
                [false, true]
            } else {
                [true, false]
            };
            for is_watched in order {
                let window = self.window(is_watched)?;
                if is_watched { &mut with } else { &mut without }.push(window);
            }
        }
        let pairs = with.iter().zip(&without);
        let differences: Vec<f64> = pairs
            .map(|(with, without)| with.all - without.all)
            .collect();
        let found = paired::interval(&differences, None, ALPHA).ok_or("too few turns")?;
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64 * 100.0;
        let base = mean(&without.iter().map(|own| own.all).collect::<Vec<_>>());
        let session = mean(&with.iter().map(|own| own.session).collect::<Vec<_>>());
        println!(
            "| {version} | {load} | {base:.2} % | {:.2} % | {:.2} to {:.2} % | {session:.2} % |",
            found.value * 100.0,
            found.interval.low * 100.0,
            found.interval.high * 100.0
        );
        Ok(found.interval.high)
    }

    fn window(&self, is_watched: bool) -> Result<Window, String> {
        let postmaster = watched::postmaster(self.server.folder())?;
        let (before, begun) = (used(postmaster)?, Instant::now());
        let url = watched::url(self.server, "postgres");
        let watch = is_watched
            .then(|| Watch::start(self.program, &[url]))
            .transpose()?;
        std::thread::sleep(self.window);
        let after = used(postmaster)?;
        let seconds = begun.elapsed().as_secs_f64();
        let session = watch.as_ref().map_or(Ok(0.0), |_| self.session())?;
        Ok(Window {
            all: (after - before) / seconds,
            session: session / seconds,
        })
    }

    /// Seconds that the session of the watching program has used.
    fn session(&self) -> Result<f64, String> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pgclinic%'";
        let pids = watched::execute(self.server, "postgres", sql)?;
        let pids = pids.lines().filter_map(|line| line.parse().ok());
        Ok(pids.filter_map(nanoseconds_of).sum())
    }

    fn load(&self) -> Result<std::process::Child, String> {
        let mut fill = self.server.client("pgbench");
        shell::capture(fill.args(["-i", "-q", "-U", "postgres", "-s", "10", "postgres"]))?;
        let mut load = self.server.client("pgbench");
        load.args([
            "-U", "postgres", "-n", "-R", "20", "-T", "86400", "postgres",
        ]);
        let load = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        load.map_err(|error| format!("pgbench: {error}"))
    }
}

/// Processor seconds of a server: its process, those that it has now, and those that have ended.
fn used(postmaster: u32) -> Result<f64, String> {
    let file = format!("/proc/{postmaster}/stat");
    let stat = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let ended = ticks_of_ended(&stat).ok_or_else(|| format!("{file} has no times"))?;
    let children =
        std::fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"));
    let children = children.unwrap_or_default();
    let own = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    let now: f64 = own.chain([postmaster]).filter_map(nanoseconds_of).sum();
    Ok(now + ended / TICKS)
}

/// Fields 16 and 17, after the name in parentheses.
fn ticks_of_ended(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(13);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// In seconds; none of a process that has ended.
fn nanoseconds_of(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_ended_children_come_after_those_of_the_process() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 30 12 20 0 1 0 9 1 2";
        assert_eq!(ticks_of_ended(stat), Some(42.0));
    }
}
