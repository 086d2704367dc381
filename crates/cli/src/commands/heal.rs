//! `pgclinic heal`: repairs with a plan, a journal and an undo.

mod checksums;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};

const CHECKSUMS: &str = "checksums";

/// The command `heal`.
pub struct Heal;

impl Command for Heal {
    fn name(&self) -> &'static str {
        "heal"
    }

    fn arguments(&self) -> ClapCommand {
        let checksums = checksums::Arguments::augment_args(ClapCommand::new(CHECKSUMS))
            .about("Enables, disables or verifies data checksums of a stopped cluster")
            .after_help(checksums::AFTER_HELP);
        ClapCommand::new(self.name())
            .about("Heals a stopped cluster, with a journal that undoes it")
            .subcommand(checksums)
            .subcommand_required(true)
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        match matches.subcommand() {
            Some((CHECKSUMS, matches)) => {
                checksums::run(&checksums::Arguments::from_arg_matches(matches)?, world)
            }
            _ => Err(Failure::new("name what to heal; --help lists it")),
        }
    }
}
