//! `pgclinic measure TARGET`: exact figures of bloat and index layout, from the files.

use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_diagnose::{MeasureOptions, measure_cluster};
use pgclinic_report::Document;

use crate::args::{LoadArgs, SelectionArgs};
use crate::commands::Command;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::target;
use crate::world::World;

#[derive(Debug, Args)]
struct Arguments {
    /// A data directory whose server is stopped
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// See the module.
pub struct MeasureCommand;

impl Command for MeasureCommand {
    fn name(&self) -> &'static str {
        "measure"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Measures bloat and index layout exactly, from a stopped cluster's files")
            .after_help("Figures that pgstattuple, pgstatindex and bt_multi_page_stats give too carry their names and are equal to theirs. Exit code 0 everything was measured, 3 something could not be.")
    }

    fn run(&self, matches: &ArgMatches, world: &mut World<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        let cluster = target::open_cluster(&arguments.target, Some(&arguments.load))?;
        let options = MeasureOptions {
            threads: arguments.load.threads(),
            selection: arguments.selection.selection(),
            spec: target::spec_of(&arguments.target),
        };
        let bar = Bar::of_bytes(&arguments.output, world.terminal, &world.interrupted);
        let mut document = measure_cluster(&cluster, &options, &bar);
        bar.finish();
        document.elapsed_s = start.elapsed().as_secs_f64();
        if document.relations.is_empty() && !document.interrupted {
            let why = "Relations are written schema.name, * and ? are wild";
            let spec = &document.target.spec;
            return Err(Failure::new(format!(
                "no relation of {spec} was asked for. {why}"
            )));
        }
        let broken = document
            .relations
            .iter()
            .any(|own| own.pages_not_measured > 0);
        let exit = match (
            document.interrupted,
            broken || !document.coverage.not_checked.is_empty(),
        ) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::Incomplete,
            (false, false) => Exit::Healthy,
        };
        arguments
            .output
            .write(&Document::Measure(document), world)?;
        Ok(exit)
    }
}
