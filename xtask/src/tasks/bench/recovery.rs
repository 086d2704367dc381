//! A hundred blocks given back from a backup and much WAL: the time is that of one pass over it.

use super::cluster;
use crate::args::Args;
use crate::shell;
use crate::task::Outcome;

const TEST: &str = "block_history::many::a_hundred_blocks_cost_one_pass_over_the_wal";

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let gib = cluster::size(args.value("--wal")?.as_deref().unwrap_or("5G"))?;
    args.finish()?;
    let mut command = shell::test_of_package("pgclinic-cluster", TEST);
    shell::run(command.env("PGCLINIC_WAL_BYTES", (gib << 30).to_string()))
}
