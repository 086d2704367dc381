//! `pgclinic diff A B`: two copies of one cluster, block by block.

use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_diagnose::document::DiffVerdict;
use pgclinic_diagnose::{DiffOptions, diff_clusters};
use pgclinic_report::Document;

use crate::args::{ChainArgs, LoadArgs, SelectionArgs};
use crate::beside_a_server::{self, BesideAServer};
use crate::commands::Command;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::target::{self, Opening};
use crate::world::World;

#[derive(Debug, Args)]
struct Arguments {
    /// One copy: a data directory, whose server may be running, or a base backup (a folder, or base.tar)
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other one
    #[arg(value_name = "B")]
    b: PathBuf,
    /// The incremental backups that build on A, oldest first
    #[arg(long, value_name = "DIR")]
    incremental_a: Vec<PathBuf>,
    /// The incremental backups that build on B, oldest first
    #[arg(long, value_name = "DIR")]
    incremental_b: Vec<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// See the module.
pub struct Diff;

impl Command for Diff {
    fn name(&self) -> &'static str {
        "diff"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Compares two copies of one cluster block by block: which is older, which is sound, and whether WAL explains it")
            .after_help("Copies are a primary and its standby, a cluster and its backup, two snapshots; servers may be at work on them. Nothing is written to either. Exit code 0 the same, or explained by WAL; 1 a contradiction or an unsound copy; 3 something could not be compared.")
    }

    fn run(&self, matches: &ArgMatches, world: &mut World<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        let chain = |links: &[PathBuf]| ChainArgs {
            incremental: links.to_vec(),
        };
        let chain_a = chain(&arguments.incremental_a);
        let chain_b = chain(&arguments.incremental_b);
        let open = |path, chain| {
            let opening = Opening::new(world, Some(&arguments.load)).with_chain(chain);
            target::open_cluster(path, opening.reading_again())
        };
        let a = open(&arguments.a, &chain_a)?;
        let b = open(&arguments.b, &chain_b)?;
        beside_a_server::let_others_go_first(a.is_running() || b.is_running(), world);
        let options = DiffOptions {
            threads: arguments.load.threads(),
            selection: arguments.selection.selection(),
            spec_a: target::spec_of_chain(&arguments.a, &chain_a),
            spec_b: target::spec_of_chain(&arguments.b, &chain_b),
        };
        let bar = Bar::of_bytes(&arguments.output, world.terminal, &world.interrupted);
        let beside = BesideAServer::new(&world.interrupted, None);
        let compared = diff_clusters(&a, &b, &options, &bar, &beside);
        bar.finish();
        let mut document = compared?;
        document.elapsed_s = start.elapsed().as_secs_f64();
        if !options.selection.is_everything()
            && document.coverage.blocks == 0
            && document.forks.is_empty()
        {
            let why = "Relations are written schema.name, * and ? are wild";
            return Err(Failure::new(format!(
                "the selection matches nothing in either copy. {why}"
            )));
        }
        let exit = match document.verdict {
            _ if document.interrupted => Exit::Interrupted,
            DiffVerdict::Same | DiffVerdict::Explained => Exit::Healthy,
            DiffVerdict::Contradictory => Exit::Damaged,
            DiffVerdict::Incomplete => Exit::Incomplete,
        };
        arguments.output.write(&Document::Diff(document), world)?;
        Ok(exit)
    }
}
