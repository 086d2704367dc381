//! The register of commands: each is one file here and one line below, in the order of `--help`.

use clap::{ArgMatches, Command as ClapCommand};
use pgclinic_format::registry;

use crate::env::Env;
use crate::exit::{Exit, Failure};

/// A command.
pub trait Command: Sync {
    /// What is typed.
    fn name(&self) -> &'static str;
    /// Its arguments with their help.
    fn arguments(&self) -> ClapCommand;
    /// Does it.
    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure>;
}

registry! {
    /// Every command.
    pub static COMMANDS: [Command] = [
        check::Check,
        inspect::Inspect,
        measure::MeasureCommand,
        diff::Diff,
        explain::Explain,
        salvage::Salvage,
        injure::Injure,
        drill::Drill,
        demo::Demo,
        heal::Heal,
        lab::Lab,
        watch::Watch,
        report::Report,
        man::ManPage,
        completions::Completions,
        generate_docs::GenerateDocs,
    ];
}
