//! The peak of memory of `check --level full` on a large table, for several limits.

use std::path::Path;
use std::process::Command;

use super::check;
use super::cluster::{self, Recipe};
use super::measure::{self, Cache};
use crate::args::Args;
use crate::task::Outcome;

/// Limits in MiB that are tried.
const LIMITS: [u64; 4] = [256, 64, 16, 4];

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let million = args.number("--million-rows", 20)?.max(1);
    args.finish()?;
    let (tools, pgclinic) = (check::tools()?, check::build()?);
    let folder = cluster::ensure(&tools, Recipe::LargeTable { million })?;
    println!("| `--memory` | s | peak memory |");
    println!("|--:|--:|--:|");
    for limit in LIMITS {
        println!("{}", row(&pgclinic, &folder, limit)?);
    }
    Ok(())
}

fn row(pgclinic: &Path, folder: &Path, limit: u64) -> Result<String, String> {
    let mut command = Command::new(pgclinic);
    check::check_words(&mut command, folder, "full");
    command.arg("--memory").arg(format!("{limit}MiB"));
    let sample = measure::run(&mut command, Cache::Warm)?;
    let (seconds, peak) = (sample.seconds, sample.peak_bytes >> 20);
    Ok(format!("| {limit} MiB | {seconds:.2} | {peak} MiB |"))
}
