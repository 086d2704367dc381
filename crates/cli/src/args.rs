//! Arguments that several commands share.

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pgclinic_format::Fork;
use pgclinic_model::{Glob, Selection};
use pgclinic_spill::MemoryPlan;

/// A fork by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ForkName {
    /// The relation's own pages
    Main,
    /// The free space map
    Fsm,
    /// The visibility map
    Vm,
    /// What an unlogged relation is reset to
    Init,
}

impl From<ForkName> for Fork {
    fn from(name: ForkName) -> Self {
        match name {
            ForkName::Main => Fork::Main,
            ForkName::Fsm => Fork::Fsm,
            ForkName::Vm => Fork::Vm,
            ForkName::Init => Fork::Init,
        }
    }
}

/// Which part of the target.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    /// Only databases of this name or OID; * and ? are wild
    #[arg(long, value_name = "NAME")]
    pub database: Vec<String>,
    /// Only this relation, as schema.name; * and ? are wild
    ///
    /// A name without a schema matches in every schema.
    #[arg(long, value_name = "NAME")]
    pub relation: Vec<String>,
    /// Only files with this relfilenumber
    #[arg(long, value_name = "NUMBER")]
    pub filenode: Vec<u32>,
    /// Only these forks
    #[arg(long, value_enum, value_name = "FORK")]
    pub fork: Vec<ForkName>,
    /// Only blocks 10..20 (without 20), 10.., ..20 or 10
    #[arg(long, value_name = "RANGE", value_parser = blocks)]
    pub blocks: Option<Range<u64>>,
}

impl SelectionArgs {
    /// For the walker.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            databases: self.database.iter().map(Glob::new).collect(),
            relations: self.relation.iter().map(Glob::new).collect(),
            filenodes: self.filenode.clone(),
            forks: self.fork.iter().map(|fork| Fork::from(*fork)).collect(),
            blocks: self.blocks.clone(),
        }
    }
}

fn blocks(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is no range of blocks; write 10..20, 10.., ..20 or 10");
    let number = |part: &str, empty: u64| {
        if part.is_empty() {
            Ok(empty)
        } else {
            part.parse::<u64>().map_err(|_| wrong())
        }
    };
    let range = match text.split_once("..") {
        Some((start, end)) => number(start, 0)?..number(end, u64::MAX)?,
        None => {
            let block = text.parse::<u64>().map_err(|_| wrong())?;
            block..block.saturating_add(1)
        }
    };
    if range.is_empty() {
        Err(format!("{text:?} holds no block"))
    } else {
        Ok(range)
    }
}

/// What builds on the target.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ChainArgs {
    /// An incremental backup on top of TARGET, oldest first
    ///
    /// TARGET is the full backup. Give the option once for each incremental backup, in the order in
    /// which pg_combinebackup takes them.
    #[arg(long = "incremental", value_name = "DIR")]
    pub incremental: Vec<PathBuf>,
}

impl ChainArgs {
    /// The target with what builds on it.
    pub(crate) fn behind<'a>(&'a self, target: &'a Path) -> Vec<&'a Path> {
        let links = self.incremental.iter().map(PathBuf::as_path);
        std::iter::once(target).chain(links).collect()
    }
}

/// Who is running on the target.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct RunningArgs {
    /// A server runs on these files, though none is visible
    ///
    /// For a server in a container, or on another host that shares the disk: its process cannot be
    /// seen from here.
    #[arg(long)]
    pub running: bool,
}

/// How work and reads stand beside those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum IoPriority {
    /// Idle while a server runs on the files
    Auto,
    /// After everybody else's
    Idle,
    /// As any program's
    Usual,
}

impl IoPriority {
    /// Others go first.
    pub(crate) fn is_idle(self, is_beside_a_server: bool) -> bool {
        match self {
            IoPriority::Auto => is_beside_a_server,
            IoPriority::Idle => true,
            IoPriority::Usual => false,
        }
    }
}

/// How fast to go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Threads; by default one for each processor
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Read no faster than this, such as 100MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<NonZeroU64>,
    /// Priority
    ///
    /// When the system does the work and the reads, beside those of other programs.
    #[arg(long, value_enum, value_name = "CLASS", default_value_t = IoPriority::Auto)]
    pub io_priority: IoPriority,
    /// Working memory
    ///
    /// Rows and index entries that are compared and do not fit are sorted on disk, in the directory
    /// of --spill-to.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MiB")]
    pub memory: NonZeroU64,
    /// Directory for what does not fit in --memory
    ///
    /// By default the system's directory for temporary files.
    #[arg(long, value_name = "DIR")]
    pub spill_to: Option<PathBuf>,
}

impl LoadArgs {
    /// Threads to use.
    pub(crate) fn threads(&self) -> NonZeroUsize {
        let machine = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(machine)
    }

    /// What `--memory` allows, and who holds how much of it.
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        MemoryPlan::new(self.memory.get())
    }

    /// Where to sort what does not fit in memory.
    pub(crate) fn spill_folder(&self, usual: &Path) -> PathBuf {
        self.spill_to.clone().unwrap_or_else(|| usual.to_owned())
    }
}

/// Bytes a second.
pub(crate) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let plain = text.strip_suffix("/s").unwrap_or(text).trim();
    bytes(plain).ok_or_else(|| format!("{text:?} is not a rate; write 100MB/s"))
}

/// An amount of memory.
pub(crate) fn size(text: &str) -> Result<NonZeroU64, String> {
    bytes(text.trim()).ok_or_else(|| format!("{text:?} is not a size; write 256MiB"))
}

/// A number with a unit; kB, MB, GB and TB are powers of 1000, kiB, MiB, GiB and TiB of 1024, as
/// are K, M, G and T, which are what other tools take them for.
fn bytes(text: &str) -> Option<NonZeroU64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..)?.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "k" | "K" | "kiB" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    let number: u64 = digits.trim().parse().ok()?;
    number.checked_mul(unit).and_then(NonZeroU64::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_blocks() {
        assert_eq!(blocks("10..20"), Ok(10..20));
        assert_eq!(blocks("7"), Ok(7..8));
        assert_eq!(blocks("..3"), Ok(0..3));
        assert!(blocks("5..5").is_err());
        assert!(blocks("x").is_err());
    }

    #[test]
    fn rates_have_units() {
        assert_eq!(rate("100MB/s").map(NonZeroU64::get), Ok(100_000_000));
        assert_eq!(rate("1GiB").map(NonZeroU64::get), Ok(1 << 30));
        let size = |text: &str| bytes(text).map(NonZeroU64::get);
        assert_eq!(
            (size("20G"), size("2TB")),
            (Some(20 << 30), Some(2_000_000_000_000))
        );
        assert_eq!((size("512k"), size("20Gb")), (Some(512 << 10), None));
        assert!(rate("0").is_err());
        assert!(rate("fast").is_err());
    }
}
