//! Cost and size: `pgclinic check` at each level over clusters of several sizes.

use std::path::Path;
use std::process::Command;

use super::cluster::{self, Recipe};
use super::measure::{self, Cache};
use super::{check, table};
use crate::args::Args;
use crate::task::Outcome;

const LEVELS: [&str; 3] = ["pages", "structure", "full"];

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let sizes = args.value("--sizes")?;
    let runs = args.number("--runs", 3)?.max(1);
    args.finish()?;
    let sizes: Vec<u64> = sizes
        .as_deref()
        .unwrap_or("1G,2G,4G,8G")
        .split(',')
        .map(cluster::size)
        .collect::<Result<_, _>>()?;

    let (tools, pgclinic) = (check::tools()?, check::build()?);
    println!("| cluster | level | median s | s a GiB | peak memory |");
    println!("|---|---|--:|--:|--:|");
    for gib in sizes {
        let folder = cluster::ensure(&tools, Recipe::Mixed { gib })?;
        for level in LEVELS {
            println!("{}", row(&pgclinic, &folder, level, (gib, runs))?);
        }
    }
    Ok(())
}

fn row(
    pgclinic: &Path,
    folder: &Path,
    level: &str,
    (gib, runs): (u64, u64),
) -> Result<String, String> {
    let (mut seconds, mut peak) = (Vec::new(), 0);
    // The first run brings the files into memory.
    for number in 0..=runs {
        let mut command = Command::new(pgclinic);
        check::check_words(&mut command, folder, level);
        let sample = measure::run(&mut command, Cache::Warm)?;
        peak = sample.peak_bytes.max(peak);
        if number > 0 {
            seconds.push(sample.seconds);
        }
    }
    seconds.sort_by(f64::total_cmp);
    let middle = table::median(&seconds);
    let a_gib = middle / gib as f64;
    let peak = peak >> 20;
    Ok(format!(
        "| {gib} GiB | {level} | {middle:.2} | {a_gib:.3} | {peak} MiB |"
    ))
}
