//! `pgclinic check` beside `pg_checksums -c` and `pg_amcheck -j2`, on the same files, in turns.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cluster::{self, Recipe};
use super::measure::{self, Cache, Sample};
use super::table::{Contestant, Table};
use crate::args::Args;
use crate::postgres::Tools;
use crate::task::Outcome;
use crate::{repository, shell};

/// The release that the bench cluster is made with.
const MAJOR: u32 = 15;

struct Bench {
    tools: Tools,
    cluster: PathBuf,
    pgclinic: PathBuf,
    cache: Cache,
    runs: u64,
    /// Level full and its peer too, which take longer.
    full: bool,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let given = args.value("--pgdata")?.map(PathBuf::from);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 5)?;
    let cache = if args.flag("--cold") {
        Cache::Cold
    } else {
        Cache::Warm
    };
    let rate = args.value("--rate")?;
    let full = args.flag("--full");
    args.finish()?;

    let tools = tools()?;
    let cluster = match given {
        Some(folder) => folder,
        None => cluster::ensure(&tools, Recipe::Mixed { gib: size })?,
    };
    let bench = Bench {
        tools,
        cluster,
        pgclinic: build()?,
        cache,
        runs: runs.max(1),
        full,
    };
    println!("{}", bench.table(rate.as_deref())?);
    Ok(())
}

/// The programs that the cluster is made with, and that compete.
pub(super) fn tools() -> Result<Tools, String> {
    Tools::of_major(MAJOR).ok_or_else(|| format!("PostgreSQL {MAJOR} is not installed"))
}

/// The program itself, built for speed.
pub(super) fn build() -> Result<PathBuf, String> {
    shell::run(&mut shell::command(
        "cargo",
        &["build", "--release", "-p", "pgclinic-cli"],
    ))?;
    Ok(repository::target().join("release/pgclinic"))
}

impl Bench {
    fn table(&self, rate: Option<&str>) -> Result<Table, String> {
        let bytes = self.warm_up()?;
        let mut checksums = Contestant::new("pg_checksums -c");
        let mut pages = Contestant::new("pgclinic check --level pages");
        let mut structure = Contestant::new("pgclinic check --level structure");
        let mut full = Contestant::new("pgclinic check --level full");
        let mut amcheck = Contestant::new("pg_amcheck -j2 --all");
        let deep = ["--heapallindexed", "--parent-check"];
        let mut deep_amcheck =
            Contestant::new("pg_amcheck -j2 --all --heapallindexed --parent-check");
        for _ in 0..self.runs {
            checksums
                .samples
                .push(self.sample(&mut self.pg_checksums())?);
            pages
                .samples
                .push(self.sample(&mut self.pgclinic("pages"))?);
            structure
                .samples
                .push(self.sample(&mut self.pgclinic("structure"))?);
            amcheck.samples.push(self.pg_amcheck(&[])?);
            if self.full {
                full.samples.push(self.sample(&mut self.pgclinic("full"))?);
                deep_amcheck.samples.push(self.pg_amcheck(&deep)?);
            }
        }
        let mut contestants = vec![checksums, pages, structure, amcheck];
        if self.full {
            contestants.extend([full, deep_amcheck]);
        }
        if let Some(rate) = rate {
            contestants.push(self.at_rate(rate)?);
        }
        Ok(Table {
            bytes,
            runs: self.runs,
            cache: self.cache,
            contestants,
        })
    }

    /// Reads everything once, unmeasured; gives the bytes of all pages.
    fn warm_up(&self) -> Result<u64, String> {
        let text = shell::capture(&mut self.pg_checksums())?;
        let blocks = text
            .lines()
            .find_map(|line| line.strip_prefix("Blocks scanned:"));
        let blocks = blocks.and_then(|number| number.trim().parse::<u64>().ok());
        blocks
            .map(|count| count * 8192)
            .ok_or_else(|| format!("pg_checksums did not count blocks:\n{text}"))
    }

    fn sample(&self, command: &mut Command) -> Result<Sample, String> {
        measure::run(command, self.cache)
    }

    fn pg_checksums(&self) -> Command {
        let mut command = self.tools.command("pg_checksums");
        command.args(["-c", "-D"]).arg(&self.cluster);
        command
    }

    fn pgclinic(&self, level: &str) -> Command {
        let mut command = Command::new(&self.pgclinic);
        check_words(&mut command, &self.cluster, level);
        command
    }

    /// The server runs for this alone, and its start and stop are not measured.
    fn pg_amcheck(&self, more: &[&str]) -> Result<Sample, String> {
        let server = self.tools.start(&self.cluster, &["autovacuum=off"])?;
        let sample = self.sample(
            server
                .client("pg_amcheck")
                .args(["-j2", "--all"])
                .args(more)
                .stderr(Stdio::null()),
        )?;
        server.stop()?;
        Ok(sample)
    }

    /// One run as a guest on a busy machine: idle I/O class and a limit.
    fn at_rate(&self, rate: &str) -> Result<Contestant, String> {
        let mut command = Command::new("ionice");
        command.arg("-c3").arg(&self.pgclinic);
        check_words(&mut command, &self.cluster, "pages");
        let mut contestant = Contestant::new(&format!(
            "ionice -c3 pgclinic check --level pages --rate {rate}"
        ));
        contestant
            .samples
            .push(self.sample(command.args(["--rate", rate]))?);
        Ok(contestant)
    }
}

pub(super) fn check_words(command: &mut Command, cluster: &Path, level: &str) {
    command
        .arg("check")
        .arg(cluster)
        .args(["--level", level, "--format", "json"]);
    command.args(["--output", "/dev/null", "--progress", "none"]);
}
