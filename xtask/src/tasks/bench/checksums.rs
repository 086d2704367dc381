//! `pgclinic heal checksums --enable` beside `pg_checksums --enable`, on copies of one cluster, in
//! turns.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::check;
use super::cluster::{self, Recipe};
use super::measure::{self, Cache, Sample};
use super::table::{Contestant, Table};
use crate::args::Args;
use crate::postgres::Tools;
use crate::shell;
use crate::task::Outcome;

struct Bench {
    tools: Tools,
    cluster: PathBuf,
    pgclinic: PathBuf,
    runs: u64,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 5)?;
    let given = args.value("--pgclinic")?.map(PathBuf::from);
    args.finish()?;
    let tools = check::tools()?;
    let bench = Bench {
        cluster: cluster::ensure(&tools, Recipe::WithoutChecksums { gib: size })?,
        tools,
        pgclinic: given.map_or_else(check::build, Ok)?,
        runs: runs.max(1),
    };
    println!("{}", bench.table()?);
    Ok(())
}

impl Bench {
    fn table(&self) -> Result<Table, String> {
        let programs = [Bench::pg_checksums, Bench::pgclinic];
        let names = ["pg_checksums --enable", "pgclinic heal checksums --enable"];
        let mut contestants: Vec<Contestant> = [" --no-sync", ""]
            .iter()
            .flat_map(|more| names.map(|name| Contestant::new(&format!("{name}{more}"))))
            .collect();
        for _ in 0..self.runs {
            for (number, contestant) in contestants.iter_mut().enumerate() {
                let mut command = programs[number % 2](self);
                command.args((number < 2).then_some("--no-sync"));
                contestant.samples.push(self.sample(&mut command)?);
            }
        }
        Ok(Table {
            bytes: self.bytes()?,
            runs: self.runs,
            cache: Cache::Warm,
            contestants,
        })
    }

    fn bytes(&self) -> Result<u64, String> {
        let said = shell::capture(Command::new("du").arg("-sb").arg(self.cluster.join("base")))?;
        let bytes = said.split_whitespace().next();
        bytes
            .and_then(|bytes| bytes.parse().ok())
            .ok_or_else(|| format!("du said {said}"))
    }

    fn copy(&self) -> PathBuf {
        self.cluster.with_extension("copy")
    }

    /// A run on a new copy, whose own pages are on the disk already.
    fn sample(&self, command: &mut Command) -> Result<Sample, String> {
        let copy = self.copy();
        remove(&copy)?;
        shell::run(Command::new("cp").arg("-a").arg(&self.cluster).arg(&copy))?;
        shell::run(Command::new("sync").arg("-f").arg(&copy))?;
        let sample = measure::run(command, Cache::Warm)?;
        shell::capture(
            self.tools
                .command("pg_checksums")
                .args(["--check", "-D"])
                .arg(&copy),
        )?;
        remove(&copy)?;
        Ok(sample)
    }

    fn pg_checksums(&self) -> Command {
        let mut command = self.tools.command("pg_checksums");
        command.args(["--enable", "-D"]).arg(self.copy());
        command
    }

    fn pgclinic(&self) -> Command {
        let mut command = Command::new(&self.pgclinic);
        command
            .args([
                "heal",
                "checksums",
                "--enable",
                "--progress",
                "none",
                "--journal",
            ])
            .arg(journal_of(&self.copy()))
            .arg(self.copy());
        command
    }
}

fn journal_of(copy: &Path) -> PathBuf {
    copy.with_extension("journal")
}

fn remove(copy: &Path) -> Outcome {
    let both = [copy.to_owned(), journal_of(copy)];
    shell::run(Command::new("rm").arg("-rf").args(both))
}
