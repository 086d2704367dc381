//! `pgclinic completions SHELL`: a script that lets a shell complete commands and options.

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use clap_complete::{Shell, generate};

use crate::command_line;
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
struct Arguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: ShellName,
}

/// The command `completions`.
pub struct Completions;

impl Command for Completions {
    fn name(&self) -> &'static str {
        "completions"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Writes a script that completes commands and options")
            .after_help(
                "bash: pgclinic completions bash > /etc/bash_completion.d/pgclinic\n\
                 zsh:  pgclinic completions zsh > \"${fpath[1]}/_pgclinic\"\n\
                 fish: pgclinic completions fish > ~/.config/fish/completions/pgclinic.fish",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let shell = match Arguments::from_arg_matches(matches)?.shell {
            ShellName::Bash => Shell::Bash,
            ShellName::Zsh => Shell::Zsh,
            ShellName::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        generate(shell, &mut command_line(), "pgclinic", &mut script);
        world.write(&script)?;
        Ok(Exit::Healthy)
    }
}
