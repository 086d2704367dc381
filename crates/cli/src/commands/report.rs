//! `pgclinic report FILE`: a saved JSON document in another form.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_report::Document;

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;

#[derive(Debug, Args)]
struct Arguments {
    /// A document that pgclinic wrote with --format json
    #[arg(value_name = "FILE")]
    document: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// The command `report`.
pub struct Report;

impl Command for Report {
    fn name(&self) -> &'static str {
        "report"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Renders a saved JSON document as text or HTML")
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        arguments.output.refuse_path_early(&[])?;
        let path = &arguments.document;
        let bytes = std::fs::read(path)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        let mut document = Document::from_json(&bytes)?;
        arguments.output.privacy.redact(&mut document)?;
        Ok(arguments.output.give_again(&document, Exit::Healthy, world))
    }
}
