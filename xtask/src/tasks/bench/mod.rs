//! Side-by-side measurements on real files. Figures go to `docs/benchmarks.md` with the commands
//! that made them.

use crate::args::Args;
use crate::task::{Outcome, Task};

mod backups;
mod check;
mod checksums;
mod cluster;
mod load;
mod measure;
mod measures;
mod memory;
mod recovery;
mod running;
mod salvage;
mod sizes;
mod table;
mod watch_memory;
mod watch_overhead;
mod watched;

pub(crate) const TASK: Task = Task {
    name: "bench",
    summary: "bench check|salvage [--pgdata DIR] [--size 2G] [--runs N], salvage: [--objects 1000] (thousands), check: [--full] [--cold] [--rate 100MB/s], bench measure [--size 2G] [--runs 5], bench running [--size 2G] [--runs 5] [--turns 20] [--seconds 2] [--rate 50MB/s], bench backups [--size 2G] [--runs 5], bench checksums [--size 2G] [--runs 5] [--pgclinic FILE], bench recovery [--wal 5G], bench sizes, bench memory, bench load [--seconds 3] [--runs 20] [--program FILE], bench watch-memory [--step 10] [--samples 8640] [--pgclinic FILE], bench watch-overhead [--turns 6] [--seconds 60] [--pgclinic FILE]",
    in_ci: None,
    run,
};

fn run(words: &[String]) -> Outcome {
    match words.split_first() {
        Some((name, rest)) if name == "check" => check::run(rest),
        Some((name, rest)) if name == "checksums" => checksums::run(rest),
        Some((name, rest)) if name == "backups" => backups::run(rest),
        Some((name, rest)) if name == "measure" => measures::run(rest),
        Some((name, rest)) if name == "load" => load::run(rest),
        Some((name, rest)) if name == "salvage" => salvage::run(rest),
        Some((name, rest)) if name == "recovery" => recovery::run(rest),
        Some((name, rest)) if name == "running" => running::run(rest),
        Some((name, rest)) if name == "sizes" => sizes::run(rest),
        Some((name, rest)) if name == "memory" => memory::run(rest),
        Some((name, rest)) if name == "watch-memory" => watch_memory::run(rest),
        Some((name, rest)) if name == "watch-overhead" => watch_overhead::run(rest),
        Some((name, rest)) if name == "cluster" => make_cluster(rest),
        _ => Err("which one? There are: bench check, bench checksums, bench backups, bench measure, bench recovery, bench running, bench sizes, bench memory, bench load, bench salvage, bench watch-memory, bench watch-overhead, bench cluster (makes what is measured)".into()),
    }
}

fn make_cluster(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let size = cluster::size(args.value("--size")?.as_deref().unwrap_or("2G"))?;
    args.finish()?;
    let recipe = cluster::Recipe::Mixed { gib: size };
    println!("{}", cluster::ensure(&check::tools()?, recipe)?.display());
    Ok(())
}
