//! The cluster that is measured: made once, kept in a cache, stopped cleanly.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::postgres::{self, Tools};
use crate::shell::{self, at};
use crate::task::Outcome;

const CACHE: &str = "/var/cache/pgclinic/bench";
const FILL: &str = include_str!("fill.sql");
const FILL_LARGE_TABLE: &str = include_str!("fill_large_table.sql");
const FILL_LARGE_OBJECTS: &str = include_str!("fill_large_objects.sql");

/// Small rows and long values for each GiB of files: half of the bytes are small rows.
const ROWS_PER_GIB: u64 = 6_500_000;
const DOCS_PER_GIB: u64 = 75_000;

/// Loading is not what is measured: no syncs, no archive, little WAL left behind.
const SETTINGS: &[&str] = &[
    "fsync=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_wal_size=256MB",
    "min_wal_size=32MB",
    "shared_buffers=512MB",
    "maintenance_work_mem=512MB",
    "autovacuum=off",
];

/// What a cluster is filled with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Recipe {
    /// About so many GiB, half of them small rows, with btrees and long values.
    Mixed { gib: u64 },
    /// The same without data checksums.
    WithoutChecksums { gib: u64 },
    /// One table of so many million rows, some with long values, in 2 btrees.
    LargeTable { million: u64 },
    /// So many thousand large objects of 100 bytes, and nothing else.
    LargeObjects { thousand: u64 },
}

impl Recipe {
    fn name(self) -> String {
        match self {
            Recipe::Mixed { gib } => format!("pg15-{gib}G"),
            Recipe::WithoutChecksums { gib } => format!("pg15-{gib}G-off"),
            Recipe::LargeTable { million } => format!("pg15-{million}M-rows"),
            Recipe::LargeObjects { thousand } => format!("pg15-{thousand}k-objects"),
        }
    }

    fn script(self) -> &'static str {
        match self {
            Recipe::Mixed { .. } | Recipe::WithoutChecksums { .. } => FILL,
            Recipe::LargeTable { .. } => FILL_LARGE_TABLE,
            Recipe::LargeObjects { .. } => FILL_LARGE_OBJECTS,
        }
    }

    fn variables(self) -> Vec<String> {
        match self {
            Recipe::Mixed { gib } | Recipe::WithoutChecksums { gib } => vec![
                format!("rows={}", gib * ROWS_PER_GIB),
                format!("docs={}", gib * DOCS_PER_GIB),
            ],
            Recipe::LargeTable { million } => vec![format!("rows={}", million * 1_000_000)],
            Recipe::LargeObjects { thousand } => vec![format!("objects={}", thousand * 1000)],
        }
    }
}

/// Reads `2G` as 2 (GiB).
pub(super) fn size(text: &str) -> Result<u64, String> {
    let number = text
        .strip_suffix('G')
        .and_then(|digits| digits.parse().ok());
    number
        .filter(|gib| (1..=1024).contains(gib))
        .ok_or_else(|| format!("--size {text} is not like 2G"))
}

/// The folder of the cluster, made now if it is not there.
pub(super) fn ensure(tools: &Tools, recipe: Recipe) -> Result<PathBuf, String> {
    let cache = Path::new(CACHE);
    let finished = cache.join(recipe.name());
    if finished.exists() {
        return Ok(finished);
    }
    std::fs::create_dir_all(cache).map_err(at(cache))?;
    postgres::give_to_server_user(cache)?;
    let part = cache.join(format!("{}.part", recipe.name()));
    if part.exists() {
        std::fs::remove_dir_all(&part).map_err(at(&part))?;
    }
    println!("making the cluster {}", finished.display());
    make(tools, &part, recipe)?;
    std::fs::rename(&part, &finished).map_err(at(&finished))?;
    Ok(finished)
}

fn make(tools: &Tools, folder: &Path, recipe: Recipe) -> Outcome {
    match recipe {
        Recipe::WithoutChecksums { .. } => {
            tools.new_cluster_with(folder, &["-E", "UTF8", "--locale=C"])?;
        }
        _ => tools.new_cluster(folder)?,
    }
    let server = tools.start(folder, SETTINGS)?;
    fill(folder, server.client("psql"), recipe)?;
    server.stop()?;
    // The server wrote without syncing.
    shell::run(Command::new("sync").arg("-f").arg(folder))
}

fn fill(folder: &Path, mut psql: Command, recipe: Recipe) -> Outcome {
    let script = folder.with_extension("sql");
    std::fs::write(&script, recipe.script()).map_err(at(&script))?;
    psql.args(["-X", "-q", "-d", "postgres"]);
    for variable in recipe.variables() {
        psql.arg("-v").arg(variable);
    }
    psql.arg("-f").arg(&script);
    let outcome = shell::run(&mut psql);
    std::fs::remove_file(&script).map_err(at(&script))?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_gibibytes() {
        assert_eq!(size("2G"), Ok(2));
        assert_eq!(size("2"), Err("--size 2 is not like 2G".into()));
        assert_eq!(size("0G"), Err("--size 0G is not like 2G".into()));
    }

    #[test]
    fn the_usual_cluster_has_ten_million_rows_and_400_mb_of_long_values() {
        const { assert!(2 * ROWS_PER_GIB >= 10_000_000) };
        // A value of 2,048 bytes is cut in two, and the pages of the pieces take a third more than
        // the bytes.
        const { assert!(2 * DOCS_PER_GIB * 2048 * 4 / 3 >= 400_000_000) };
    }
}
