//! `pgclinic man [COMMAND]`: the manual page, as troff.

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use clap_mangen::Man;

use crate::command_line;
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
struct Arguments {
    /// The command, such as check or lab run
    ///
    /// Without it the page is that of the program itself.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// The command `man`.
pub struct ManPage;

impl Command for ManPage {
    fn name(&self) -> &'static str {
        "man"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Writes the manual page of the program or of a command")
            .after_help("To read one: pgclinic man check | man -l -")
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let words = Arguments::from_arg_matches(matches)?.command;
        let mut command = command_line();
        command.build();
        let command = named(command, &words)?;
        Man::new(command).render(&mut world.stdout)?;
        Ok(Exit::Healthy)
    }
}

/// The command of these words, with the name that its page has: `pgclinic-lab-run`.
fn named(mut command: ClapCommand, words: &[String]) -> Result<ClapCommand, Failure> {
    let mut name = command.get_name().to_owned();
    for word in words {
        let found = command.find_subcommand(word).cloned();
        let known = |own: &ClapCommand| {
            let names = own.get_subcommands().filter(|own| !own.is_hide_set());
            let names: Vec<&str> = names.map(ClapCommand::get_name).collect();
            names.join(", ")
        };
        let unknown = || match known(&command) {
            names if names.is_empty() => format!("{name} has no commands"),
            names => format!("there is no command {word}: {name} has {names}"),
        };
        command = found.ok_or_else(|| Failure::new(unknown()))?;
        name = format!("{name}-{word}");
    }
    Ok(command.name(name.clone()).display_name(name))
}
