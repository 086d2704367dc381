//! What passes by once, beside what does nothing with it: archives and their decompressors, a
//! running server and `pg_basebackup`, two copies and reading both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::check::{build, check_words, tools};
use super::cluster::{self, Recipe};
use super::measure::{self, Cache, Sample};
use super::table::{Contestant, Table};
use crate::args::Args;
use crate::postgres::{self, Server, Tools};
use crate::shell::{self, at};
use crate::task::Outcome;

/// With which the server gives backups.
const SETTINGS: &[&str] = &["wal_level=replica", "max_wal_senders=4", "autovacuum=off"];

/// A packing as `pg_basebackup` names it, the end of the archive's name, and the program that
/// unpacks it.
const PACKINGS: [(&str, &str, &str); 3] = [
    ("gzip:1", "gz", "gzip"),
    ("lz4", "lz4", "lz4"),
    ("zstd:1", "zst", "zstd"),
];

/// A backup needs recovery, and two copies may differ with a reason: both are answers.
const ANSWERS: [i32; 2] = [0, 3];

struct Bench {
    tools: Tools,
    pgclinic: PathBuf,
    cluster: PathBuf,
    /// Where backups lie, beside the cluster.
    home: PathBuf,
    runs: u64,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 5)?.max(1);
    args.finish()?;
    let tools = tools()?;
    let cluster = cluster::ensure(&tools, Recipe::Mixed { gib: size })?;
    let home = cluster.with_extension("backups");
    let bench = Bench {
        tools,
        pgclinic: build()?,
        cluster,
        home,
        runs,
    };
    bench.prepare()?;
    let server = bench.tools.start(&bench.cluster, SETTINGS)?;
    println!("{}", bench.over_the_network(&server)?);
    server.stop()?;
    for packing in PACKINGS {
        println!("{}", bench.archive(packing)?);
    }
    println!("{}", bench.two_copies()?);
    Ok(())
}

impl Bench {
    /// Makes the backups that are not there yet.
    fn prepare(&self) -> Outcome {
        let wanted = PACKINGS.map(|(compress, ending, _)| (ending, Some(compress)));
        let wanted = wanted.into_iter().chain([("plain", None)]);
        let missing: Vec<_> = wanted
            .filter(|(name, _)| !self.home.join(name).is_dir())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.home).map_err(at(&self.home))?;
        postgres::give_to_server_user(&self.home)?;
        let server = self.tools.start(&self.cluster, SETTINGS)?;
        for (name, compress) in missing {
            let mut command = basebackup(&server);
            command
                .args(["-X", "fetch", "-D"])
                .arg(self.home.join(name));
            if let Some(compress) = compress {
                command.args(["-Ft", &format!("--compress={compress}")]);
            }
            shell::run(&mut command)?;
        }
        server.stop()
    }

    fn over_the_network(&self, server: &Server<'_>) -> Result<Table, String> {
        let mut theirs = Contestant::new("pg_basebackup -D - -Ft -X none > /dev/null");
        let mut ours = Contestant::new("pgclinic check postgres://…");
        let folder = server.folder().display();
        let url = format!("postgres://postgres@/postgres?host={folder}");
        for _ in 0..self.runs {
            let mut command = basebackup(server);
            command.args(["-D", "-", "-Ft", "-X", "none", "--no-manifest"]);
            theirs
                .samples
                .push(measure::run(&mut command, Cache::Warm)?);
            ours.samples.push(self.check(Path::new(&url))?);
        }
        self.table(bytes_below(&self.cluster)?, vec![theirs, ours])
    }

    fn archive(&self, (_, ending, program): (&str, &str, &str)) -> Result<Table, String> {
        let folder = self.home.join(ending);
        let base = folder.join(format!("base.tar.{ending}"));
        let mut theirs = Contestant::new(&format!("{program} -dc base.tar.{ending} > /dev/null"));
        let mut ours = Contestant::new("pgclinic check --level pages");
        for _ in 0..self.runs {
            let mut command = Command::new(program);
            theirs
                .samples
                .push(measure::run(command.arg("-dc").arg(&base), Cache::Warm)?);
            ours.samples.push(self.check(&base)?);
        }
        self.table(bytes_below(&self.cluster)?, vec![theirs, ours])
    }

    fn two_copies(&self) -> Result<Table, String> {
        let plain = self.home.join("plain");
        let mut theirs = Contestant::new("cat of all files of both > /dev/null");
        let mut ours = Contestant::new("pgclinic diff");
        for _ in 0..self.runs {
            let mut cat = Command::new("find");
            cat.arg(&self.cluster)
                .arg(&plain)
                .args(["-type", "f", "-exec", "cat", "{}", "+"]);
            theirs.samples.push(measure::run(&mut cat, Cache::Warm)?);
            let mut diff = Command::new(&self.pgclinic);
            diff.arg("diff").arg(&self.cluster).arg(&plain);
            diff.args(["--output", "/dev/null", "--progress", "none"]);
            ours.samples
                .push(measure::run_to(&mut diff, Cache::Warm, &ANSWERS)?);
        }
        let bytes = bytes_below(&self.cluster)? + bytes_below(&plain)?;
        self.table(bytes, vec![theirs, ours])
    }

    fn check(&self, target: &Path) -> Result<Sample, String> {
        let mut command = Command::new(&self.pgclinic);
        check_words(&mut command, target, "pages");
        measure::run_to(&mut command, Cache::Warm, &ANSWERS)
    }

    fn table(&self, bytes: u64, contestants: Vec<Contestant>) -> Result<Table, String> {
        Ok(Table {
            bytes,
            runs: self.runs,
            cache: Cache::Warm,
            contestants,
        })
    }
}

fn basebackup(server: &Server<'_>) -> Command {
    let mut command = server.client("pg_basebackup");
    command.args(["-U", "postgres", "--checkpoint=fast"]);
    command
}

/// Bytes of all files below a folder, write-ahead log left out.
fn bytes_below(folder: &Path) -> Result<u64, String> {
    let mut bytes = 0;
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let path = entry.map_err(at(&folder))?.path();
            let metadata = path.symlink_metadata().map_err(at(&path))?;
            if metadata.is_dir() && !path.ends_with("pg_wal") {
                left.push(path);
            } else if metadata.is_file() {
                bytes += metadata.len();
            }
        }
    }
    Ok(bytes)
}
