//! `pgclinic measure` beside `pgstattuple` and `pgstatindex` over all relations of the same
//! cluster, and a sample of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::cluster;
use super::measure::{self, Cache, Sample};
use super::table::{Contestant, Table};
use crate::args::Args;
use crate::postgres::Tools;
use crate::shell;
use crate::task::Outcome;

/// Every relation with pages that the extension takes, and what a btree has beside it.
const QUESTION: &str = "
SELECT count(s.tuple_count) FROM pg_class AS c, pgstattuple(c.oid::regclass) AS s WHERE relkind IN ('r', 't', 'm') AND relpersistence = 'p';
SELECT count(s.tuple_count), count(i.leaf_pages) FROM pg_class AS c JOIN pg_am AS a ON a.oid = relam, pgstattuple(c.oid::regclass) AS s,
  pgstatindex(c.oid::regclass) AS i WHERE relkind = 'i' AND relpersistence = 'p' AND amname = 'btree'";

/// All of the bench cluster fits, so that the second answer is warm.
const SETTINGS: &[&str] = &["autovacuum=off", "shared_buffers=3GB"];

struct Bench {
    tools: Tools,
    cluster: PathBuf,
    pgclinic: PathBuf,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    let runs = args.number("--runs", 5)?.max(1);
    let program = args.value("--pgclinic")?.map(PathBuf::from);
    args.finish()?;

    let tools = super::check::tools()?;
    let bench = Bench {
        cluster: cluster::ensure(&tools, cluster::Recipe::Mixed { gib: size })?,
        tools,
        pgclinic: match program {
            Some(path) => path,
            None => super::check::build()?,
        },
    };
    println!("{}", bench.table(size << 30, runs)?);
    Ok(())
}

impl Bench {
    fn table(&self, bytes: u64, runs: u64) -> Result<Table, String> {
        let mut server = Contestant::new("pgstattuple and pgstatindex");
        let mut whole = Contestant::new("pgclinic measure");
        let mut sample = Contestant::new("pgclinic measure --sample 1%");
        for _ in 0..runs {
            server.samples.push(self.server()?);
            whole.samples.push(self.pgclinic(&[])?);
            sample.samples.push(self.pgclinic(&["--sample", "1%"])?);
        }
        Ok(Table {
            bytes,
            runs,
            cache: Cache::Warm,
            contestants: vec![server, whole, sample],
        })
    }

    /// The question is asked twice, and the second time is measured.
    fn server(&self) -> Result<Sample, String> {
        let server = self.tools.start(&self.cluster, SETTINGS)?;
        let psql = |sql: &str| {
            let mut command = server.client("psql");
            command.args(["-X", "-q", "-d", "postgres", "-c", sql]);
            command.stdout(Stdio::null());
            command
        };
        shell::run(&mut psql("CREATE EXTENSION IF NOT EXISTS pgstattuple"))?;
        shell::run(&mut psql(QUESTION))?;
        let sample = measure::run(&mut psql(QUESTION), Cache::Warm)?;
        shell::run(&mut psql("DROP EXTENSION pgstattuple"))?;
        server.stop()?;
        Ok(sample)
    }

    fn pgclinic(&self, more: &[&str]) -> Result<Sample, String> {
        let mut command = Command::new(&self.pgclinic);
        command.arg("measure").arg(&self.cluster).args(more);
        command.args(["--format", "json", "--output", "/dev/null"]);
        command.args(["--progress", "none"]);
        measure::run(&mut command, Cache::Warm)
    }
}
