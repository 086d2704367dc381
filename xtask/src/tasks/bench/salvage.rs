//! `pgclinic salvage` beside `pg_dump`, on the same tables, both into files that are not forced to
//! the disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cluster;
use super::measure::{self, Cache};
use super::table::{Contestant, Table};
use crate::args::Args;
use crate::postgres::{self, Tools};
use crate::shell::{self, at};
use crate::task::Outcome;

/// Forms that run beside `pg_dump`; what they write counts as the bytes of COPY text.
const FORMS: [&str; 4] = ["copy", "csv", "parquet", "arrow"];

/// Narrow rows, and long values out of line.
const TABLES: [&str; 2] = ["public.readings", "public.documents"];

struct Bench {
    tools: Tools,
    cluster: PathBuf,
    pgclinic: PathBuf,
    scratch: postgres::Scratch,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let given = args.value("--pgdata")?.map(PathBuf::from);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 3)?.max(1);
    let thousand = args.number("--objects", 1000)?;
    let program = args.value("--pgclinic")?.map(PathBuf::from);
    args.finish()?;

    let tools = super::check::tools()?;
    let cluster = match given {
        Some(folder) => folder,
        None => cluster::ensure(&tools, cluster::Recipe::Mixed { gib: size })?,
    };
    let scratch = postgres::scratch("bench-salvage")?;
    postgres::give_to_server_user(scratch.path())?;
    let bench = Bench {
        tools,
        cluster,
        pgclinic: match program {
            Some(path) => path,
            None => super::check::build()?,
        },
        scratch,
    };
    for table in TABLES {
        println!("{table}: {}", bench.table(table, runs)?);
    }
    match thousand {
        0 => Ok(()),
        _ => bench.objects(thousand),
    }
}

impl Bench {
    fn table(&self, table: &str, runs: u64) -> Result<Table, String> {
        let mut contestants = vec![Contestant::new("pg_dump --data-only")];
        let ours = FORMS.map(|form| Contestant::new(&format!("pgclinic salvage --format {form}")));
        contestants.extend(ours);
        let mut bytes = 0;
        for _ in 0..runs {
            let dump = self.pg_dump(table)?;
            let mut samples = vec![dump];
            for form in FORMS {
                let (sample, written) = self.salvage(table, form)?;
                if form == "copy" {
                    bytes = written;
                }
                samples.push(sample);
            }
            for (contestant, sample) in contestants.iter_mut().zip(samples) {
                contestant.samples.push(sample);
            }
        }
        Ok(Table {
            bytes,
            runs,
            cache: Cache::Warm,
            contestants,
        })
    }

    /// One run of each: the other one takes minutes for a million.
    fn objects(&self, thousand: u64) -> Outcome {
        let cluster = cluster::ensure(&self.tools, cluster::Recipe::LargeObjects { thousand })?;
        let mut dump = Contestant::new("pg_dump --format directory");
        let mut tar = Contestant::new("pgclinic salvage");
        dump.samples.push(self.dump_objects(&cluster)?);
        let folder = self.scratch.path().join("objects");
        let mut command = self.salvage_command(&cluster, &folder);
        command.args(["--database", "postgres", "--no-sync", "--quiet"]);
        tar.samples.push(measure::run(&mut command, Cache::Warm)?);
        let file = folder.join("postgres/large_objects.tar");
        let bytes = file.metadata().map_err(at(&file))?.len();
        remove(&folder)?;
        let table = Table {
            bytes,
            runs: 1,
            cache: Cache::Warm,
            contestants: vec![dump, tar],
        };
        println!("{thousand},000 large objects: {table}");
        Ok(())
    }

    fn dump_objects(&self, cluster: &Path) -> Result<measure::Sample, String> {
        let server = self.tools.start(cluster, &["autovacuum=off"])?;
        let folder = self.scratch.path().join("dump");
        let mut command = server.client("pg_dump");
        command.args(["--format", "directory", "--no-sync", "--compress", "0"]);
        command.args(["-d", "postgres", "-f"]).arg(&folder);
        let sample = measure::run(&mut command, Cache::Warm)?;
        server.stop()?;
        remove(&folder)?;
        Ok(sample)
    }

    fn salvage_command(&self, cluster: &Path, folder: &Path) -> Command {
        let mut command = Command::new(&self.pgclinic);
        command.arg("salvage").arg(cluster).arg("--to").arg(folder);
        command
    }

    /// The server runs for this alone, and its start and stop are not measured.
    fn pg_dump(&self, table: &str) -> Result<measure::Sample, String> {
        let server = self.tools.start(&self.cluster, &["autovacuum=off"])?;
        let file = self.scratch.path().join("dump.sql");
        let mut command = server.client("pg_dump");
        command
            .args([
                "--data-only",
                "--no-sync",
                "-d",
                "postgres",
                "-t",
                table,
                "-f",
            ])
            .arg(&file);
        let sample = measure::run(&mut command, Cache::Warm)?;
        server.stop()?;
        std::fs::remove_file(&file).map_err(at(&file))?;
        Ok(sample)
    }

    /// One run, and the bytes that it wrote.
    fn salvage(&self, table: &str, form: &str) -> Result<(measure::Sample, u64), String> {
        let folder = self.scratch.path().join("out");
        let mut command = self.salvage_command(&self.cluster, &folder);
        command.args([
            "--format",
            form,
            "--database",
            "postgres",
            "--relation",
            table,
        ]);
        command.args(["--no-sync", "--quiet"]);
        let sample = measure::run(&mut command, Cache::Warm)?;
        let file = folder.join(format!("postgres/{table}.{form}"));
        let bytes = file.metadata().map_err(at(&file))?.len();
        remove(&folder)?;
        Ok((sample, bytes))
    }
}

fn remove(folder: &Path) -> Outcome {
    shell::run(Command::new("rm").arg("-r").arg(folder))
}
