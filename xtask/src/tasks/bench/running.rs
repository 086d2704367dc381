//! `pgclinic check` on the data directory of a server at work: its speed beside that on the stopped one, and what the server
//! loses by it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::check::check_words;
use super::cluster::{self, Recipe};
use super::measure::{self, Cache, Sample};
use super::table::{Contestant, Table, machine, median};
use crate::args::Args;
use crate::postgres::{self, Server, Tools};
use crate::shell;
use crate::task::Outcome;

/// The load fits in them, so that what the check reads takes nothing from it but time of disk and processors.
const SETTINGS: &[&str] = &["shared_buffers=512MB", "max_wal_size=4GB", "autovacuum=off"];
/// Some 300 MB.
const SCALE: &str = "20";

struct Bench {
    tools: Tools,
    cluster: PathBuf,
    pgclinic: PathBuf,
    runs: u64,
    seconds: u64,
    rate: String,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 5)?.max(1);
    let seconds = args.number("--seconds", 30)?.max(1);
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
        seconds,
        rate,
    };
    for cache in [Cache::Warm, Cache::Cold] {
        println!("{}", bench.speed(cache)?);
    }
    println!("{}", bench.throughput()?);
    Ok(())
}

/// What the server did in one run of the load, and what the checks beside it read.
struct Beside {
    transactions: f64,
    bytes: f64,
}

/// A run alone and one beside a check, one right behind the other: how fast a shared machine is changes within minutes.
struct Pair {
    /// Transactions beside the check, of those alone.
    of_alone: f64,
    transactions: f64,
    /// Bytes a second that the check read.
    rate: f64,
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

    /// Transactions a second beside checks from the disk, and beside such at a limited rate, of those without a check.
    fn throughput(&self) -> Result<String, String> {
        let alone = measure::run(&mut self.check("pages", &[]), Cache::Cold)?;
        let disk = bytes_below(&self.cluster)? as f64 / alone.seconds;
        let server = self.tools.start(&self.cluster, SETTINGS)?;
        let mut init = server.client("pgbench");
        init.args(["-i", "-q", "-U", "postgres", "-s", SCALE, "postgres"]);
        shell::capture(&mut init)?;
        let limited = ["--rate", self.rate.as_str()];
        // What two runs alone differ by is no loss.
        let arms: [(&str, Option<&[&str]>); 3] = [
            ("nothing", None),
            ("check --level pages, again and again", Some(&[])),
            ("the same with --rate", Some(&limited)),
        ];
        let mut pairs: Vec<Vec<Pair>> = arms.iter().map(|_| Vec::new()).collect();
        for number in 0..self.runs {
            for ((_, check), own) in arms.iter().zip(&mut pairs) {
                own.push(self.pair(&server, *check, number % 2 == 0)?);
            }
        }
        server.stop()?;
        Ok(self.lines(&arms.map(|(name, _)| name), &pairs, disk))
    }

    fn pair(
        &self,
        server: &Server<'_>,
        check: Option<&[&str]>,
        is_alone_first: bool,
    ) -> Result<Pair, String> {
        let before = is_alone_first.then(|| self.beside(server, None));
        let beside = self.beside(server, check)?;
        let alone = before.unwrap_or_else(|| self.beside(server, None))?;
        Ok(Pair {
            of_alone: beside.transactions / alone.transactions,
            transactions: beside.transactions,
            rate: beside.bytes / self.seconds as f64,
        })
    }

    fn lines(&self, names: &[&str], pairs: &[Vec<Pair>], disk: f64) -> String {
        let sorted = |own: &[Pair], figure: fn(&Pair) -> f64| {
            let mut figures: Vec<f64> = own.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let mut text = format!(
            "{}\n\npgbench at scale {SCALE} with 4 clients for {} s, {} pairs of each in turns; --rate {}.\n\n",
            machine(),
            self.seconds,
            self.runs,
            self.rate
        );
        text.push_str("| beside | transactions a second | of those alone, by pairs | least and most | read by the check, MB/s | of what it reads alone |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|\n");
        for (name, own) in names.iter().zip(pairs) {
            let ratios = sorted(own, |pair| pair.of_alone);
            let rate = median(&sorted(own, |pair| pair.rate));
            let _infallible = writeln!(
                text,
                "| {name} | {:.0} | {:.3} | {:.3} to {:.3} | {:.0} | {:.3} |",
                median(&sorted(own, |pair| pair.transactions)),
                median(&ratios),
                ratios.first().unwrap_or(&f64::NAN),
                ratios.last().unwrap_or(&f64::NAN),
                rate / 1e6,
                rate / disk
            );
        }
        text
    }

    /// One run of the load, with checks beside it until it ends.
    fn beside(&self, server: &Server<'_>, check: Option<&[&str]>) -> Result<Beside, String> {
        measure::drop_caches()?;
        let mut load = server.client("pgbench");
        load.args(["-U", "postgres", "-n", "-c", "4", "-j", "2", "-T"]);
        load.arg(self.seconds.to_string()).arg("postgres");
        load.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut load = load.spawn().map_err(|error| format!("pgbench: {error}"))?;
        let mut bytes = 0.0;
        if let Some(more) = check {
            while is_at_work(&mut load)? {
                bytes += self.read_beside(&mut load, more)?;
            }
        }
        let output = load
            .wait_with_output()
            .map_err(|error| format!("pgbench: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let tps = text.lines().find_map(|line| line.strip_prefix("tps = "));
        let tps = tps.and_then(|rest| rest.split(' ').next()?.parse().ok());
        Ok(Beside {
            transactions: tps.ok_or_else(|| format!("pgbench told no transactions:\n{text}"))?,
            bytes,
        })
    }

    /// A check, ended with the load; gives the bytes that it read. What it brings into the page cache goes out again, so that the next
    /// one reads from the disk as well.
    fn read_beside(&self, load: &mut Child, more: &[&str]) -> Result<f64, String> {
        let start = Instant::now();
        let mut command = self.check("pages", more);
        command.stdout(Stdio::null());
        let mut check = command
            .spawn()
            .map_err(|error| format!("pgclinic: {error}"))?;
        let status = PathBuf::from(format!("/proc/{}/io", check.id()));
        let mut read = 0.0;
        let step = std::time::Duration::from_millis(50);
        while is_at_work(&mut check)? {
            read = bytes_read(&status).unwrap_or(read);
            if !is_at_work(load)? {
                check.kill().map_err(|error| format!("pgclinic: {error}"))?;
            }
            std::thread::sleep(step);
        }
        println!(
            "beside: {:.1} s, {:.0} MB",
            start.elapsed().as_secs_f64(),
            read / 1e6
        );
        Ok(read)
    }
}

fn is_at_work(child: &mut Child) -> Result<bool, String> {
    let ended = child
        .try_wait()
        .map_err(|error| format!("a process: {error}"))?;
    Ok(ended.is_none())
}

/// Bytes that a process has read, from the disk or not: the caches were dropped.
fn bytes_read(io: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(io).ok()?;
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
