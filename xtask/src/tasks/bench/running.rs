//! `pgclinic check` on the data directory of a server at work: its speed beside that on the stopped
//! one, and what the server loses by it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pgclinic_statistics::paired;

use super::check::check_words;
use super::cluster::{self, Recipe};
use super::measure::{self, Cache, Sample};
use super::table::{Contestant, Table, machine};
use crate::args::Args;
use crate::postgres::{self, Server, Tools};
use crate::shell;
use crate::task::Outcome;

/// The load fits in them, so that what the check reads takes nothing from it but time of disk and
/// processors.
const SETTINGS: &[&str] = &["shared_buffers=512MB", "max_wal_size=4GB", "autovacuum=off"];
/// Some 300 MB.
const SCALE: &str = "20";
/// Seconds: longer than any measurement.
const FOR_EVER: &str = "86400";

struct Bench {
    tools: Tools,
    cluster: PathBuf,
    pgclinic: PathBuf,
    runs: u64,
    turns: u64,
    seconds: u64,
    rate: String,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 5)?.max(1);
    let turns = args.number("--turns", 20)?.max(1);
    let seconds = args.number("--seconds", 2)?.max(1);
    let rate = args.value("--rate")?.unwrap_or_else(|| "50MB/s".into());
    let program = args.value("--pgclinic")?.map(PathBuf::from);
    args.finish()?;

    let tools = super::check::tools()?;
    let made = cluster::ensure(&tools, Recipe::Mixed { gib: size })?;
    let scratch = postgres::scratch("bench-running")?;
    postgres::give_to_server_user(scratch.path())?;
    let cluster = scratch.path().join("data");
    shell::capture(Command::new("cp").arg("-a").arg(&made).arg(&cluster))?;
    let bench = Bench {
        tools,
        cluster,
        pgclinic: match program {
            Some(path) => path,
            None => super::check::build()?,
        },
        runs,
        turns,
        seconds,
        rate,
    };
    for cache in [Cache::Warm, Cache::Cold] {
        println!("{}", bench.speed(cache)?);
    }
    println!("{}", bench.throughput()?);
    Ok(())
}

/// Transactions and bytes of a while.
#[derive(Default)]
struct Window {
    seconds: f64,
    transactions: f64,
    /// Read by checks.
    bytes: f64,
}

impl std::ops::Add for Window {
    type Output = Window;

    fn add(self, other: Window) -> Window {
        Window {
            seconds: self.seconds + other.seconds,
            transactions: self.transactions + other.transactions,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Window {
    fn rate(&self) -> f64 {
        self.transactions / self.seconds
    }
}

/// Two windows beside a check, and one before and one behind them alone: how fast a shared machine
/// is changes within minutes.
struct Turn {
    alone: Window,
    beside: Window,
}

impl Bench {
    fn speed(&self, cache: Cache) -> Result<Table, String> {
        let mut contestants = Vec::new();
        for level in ["pages", "structure"] {
            let mut stopped = Contestant::new(&format!("pgclinic check --level {level}, stopped"));
            let mut running = Contestant::new(&format!("pgclinic check --level {level}, running"));
            for _ in 0..self.runs {
                stopped.samples.push(self.sample(level, cache)?);
                let server = self.tools.start(&self.cluster, SETTINGS)?;
                running.samples.push(self.sample(level, cache)?);
                server.stop()?;
            }
            contestants.extend([stopped, running]);
        }
        Ok(Table {
            bytes: bytes_below(&self.cluster)?,
            runs: self.runs,
            cache,
            contestants,
        })
    }

    fn sample(&self, level: &str, cache: Cache) -> Result<Sample, String> {
        measure::run(&mut self.check(level, &[]), cache)
    }

    fn check(&self, level: &str, more: &[&str]) -> Command {
        let mut command = Command::new(&self.pgclinic);
        check_words(&mut command, &self.cluster, level);
        command.args(more);
        command
    }

    /// Transactions a second beside checks from the disk, and beside such at a limited rate, of
    /// those without a check.
    fn throughput(&self) -> Result<String, String> {
        let alone = measure::run(&mut self.check("pages", &[]), Cache::Cold)?;
        let disk = bytes_below(&self.cluster)? as f64 / alone.seconds;
        let server = self.tools.start(&self.cluster, SETTINGS)?;
        let mut init = server.client("pgbench");
        init.args(["-i", "-q", "-U", "postgres", "-s", SCALE, "postgres"]);
        shell::capture(&mut init)?;
        let limited = ["--rate", self.rate.as_str()];
        // What windows alone differ by is no loss.
        let arms: [(&str, Option<&[&str]>); 3] = [
            ("nothing", None),
            ("check --level pages, again and again", Some(&[])),
            ("the same with --rate", Some(&limited)),
        ];
        let mut load = server.client("pgbench");
        load.args([
            "-U", "postgres", "-n", "-c", "4", "-j", "2", "-T", FOR_EVER, "postgres",
        ]);
        load.stdout(Stdio::null()).stderr(Stdio::null());
        let mut load = load.spawn().map_err(|error| format!("pgbench: {error}"))?;
        measure::drop_caches()?;
        let turns = self.turns(&server, &arms.map(|(_, check)| check));
        // The load ends with its server.
        server.stop()?;
        load.wait().map_err(|error| format!("pgbench: {error}"))?;
        Ok(self.lines(&arms.map(|(name, _)| name), &turns?, disk))
    }

    /// The turns of each arm.
    fn turns(
        &self,
        server: &Server<'_>,
        arms: &[Option<&[&str]>],
    ) -> Result<Vec<Vec<Turn>>, String> {
        let _until_the_load_has_its_pages = self.window(server, None)?;
        let mut turns: Vec<Vec<Turn>> = arms.iter().map(|_| Vec::new()).collect();
        let mut checks: Vec<Option<Paused<'_>>> =
            arms.iter().map(|more| self.paused(*more)).collect();
        for _ in 0..self.turns {
            for (check, own) in checks.iter_mut().zip(&mut turns) {
                let before = self.window(server, None)?;
                let beside =
                    self.window(server, check.as_mut())? + self.window(server, check.as_mut())?;
                let alone = before + self.window(server, None)?;
                own.push(Turn { alone, beside });
            }
        }
        Ok(turns)
    }

    fn paused<'a>(&'a self, more: Option<&'a [&'a str]>) -> Option<Paused<'a>> {
        more.map(|more| Paused {
            bench: self,
            more,
            at_work: None,
        })
    }

    fn lines(&self, names: &[&str], turns: &[Vec<Turn>], disk: f64) -> String {
        let mut text = format!(
            "{}\n\npgbench at scale {SCALE} with 4 clients all the time; {} turns of each, windows of {} s: alone, beside, beside, alone; --rate {}.\n\n",
            machine(),
            self.turns,
            self.seconds,
            self.rate
        );
        text.push_str("| beside | transactions a second | of those alone | 95 % | read by the check, MB/s | of what it reads alone |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|\n");
        for (name, own) in names.iter().zip(turns) {
            let ratios: Vec<f64> = own
                .iter()
                .map(|turn| (turn.beside.rate() / turn.alone.rate()).ln())
                .collect();
            let found = paired::interval(&ratios, None, 0.05).map(|found| found.map(f64::exp));
            let (value, low, high) = found.map_or((f64::NAN, f64::NAN, f64::NAN), |found| {
                (found.value, found.interval.low, found.interval.high)
            });
            let beside = own.iter().map(|turn| &turn.beside);
            let sum = |figure: fn(&Window) -> f64| beside.clone().map(figure).sum::<f64>();
            let seconds = sum(|window| window.seconds);
            let read = sum(|window| window.bytes) / seconds;
            let _infallible = writeln!(
                text,
                "| {name} | {:.0} | {value:.3} | {low:.3} to {high:.3} | {:.0} | {:.3} |",
                sum(|window| window.transactions) / seconds,
                read / 1e6,
                read / disk
            );
        }
        text
    }

    /// What is done in so many seconds, with checks one behind the other if there are any.
    fn window(
        &self,
        server: &Server<'_>,
        check: Option<&mut Paused<'_>>,
    ) -> Result<Window, String> {
        let (start, before) = (Instant::now(), last_transaction(server)?);
        let end = start + Duration::from_secs(self.seconds);
        let bytes = match check {
            None => {
                std::thread::sleep(end - Instant::now());
                0.0
            }
            Some(check) => check.work_until(end)?,
        };
        Ok(Window {
            transactions: last_transaction(server)? - before,
            seconds: start.elapsed().as_secs_f64(),
            bytes,
        })
    }
}

/// A check that is stopped by signal between its windows, so that its start is not measured in each
/// of them. Where it comes to its end another one begins.
struct Paused<'a> {
    bench: &'a Bench,
    more: &'a [&'a str],
    at_work: Option<Child>,
}

impl Paused<'_> {
    /// Lets it work until then; gives the bytes that it read meanwhile.
    fn work_until(&mut self, end: Instant) -> Result<f64, String> {
        let mut bytes = 0.0;
        while Instant::now() < end {
            let mut check = match self.at_work.take() {
                Some(check) => check,
                None => self.begin()?,
            };
            signal(&check, "CONT")?;
            let (before, mut read) = (bytes_read(&check), None);
            let mut goes_on = is_at_work(&mut check)?;
            while goes_on && Instant::now() < end {
                read = bytes_read(&check).or(read);
                std::thread::sleep(Duration::from_millis(20));
                goes_on = is_at_work(&mut check)?;
            }
            bytes += read.unwrap_or(0.0) - before.unwrap_or(0.0);
            if goes_on {
                signal(&check, "STOP")?;
                self.at_work = Some(check);
            }
        }
        Ok(bytes)
    }

    fn begin(&self) -> Result<Child, String> {
        let mut command = self.bench.check("pages", self.more);
        let spawned = command.stdout(Stdio::null()).spawn();
        spawned.map_err(|error| format!("pgclinic: {error}"))
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if let Some(check) = &mut self.at_work {
            // Where it is gone already nothing is left to end.
            let _gone = check.kill();
            let _ended = check.wait();
        }
    }
}

fn signal(process: &Child, name: &str) -> Result<(), String> {
    let mut kill = Command::new("kill");
    shell::capture(kill.arg(format!("-{name}")).arg(process.id().to_string())).map(drop)
}

/// Each transaction of the load takes a number.
fn last_transaction(server: &Server<'_>) -> Result<f64, String> {
    let mut ask = server.client("psql");
    ask.args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-c"]);
    let number = shell::capture(ask.arg("SELECT txid_snapshot_xmax(txid_current_snapshot())"))?;
    let number = number.trim();
    number
        .parse()
        .map_err(|_| format!("the server said {number:?}"))
}

fn is_at_work(child: &mut Child) -> Result<bool, String> {
    let ended = child
        .try_wait()
        .map_err(|error| format!("a process: {error}"))?;
    Ok(ended.is_none())
}

/// Bytes that a process has read, from the disk or not: the caches were dropped.
fn bytes_read(process: &Child) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{}/io", process.id())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "))?;
    line.trim().parse().ok()
}

fn bytes_below(folder: &Path) -> Result<u64, String> {
    let text = shell::capture(
        Command::new("du")
            .args(["-s", "-B1"])
            .arg(folder.join("base")),
    )?;
    let number = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("du said {text:?}"))
}
