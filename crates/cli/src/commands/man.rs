//! `pgclinic man [COMMAND]`: the manual page, as troff.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};

use crate::command_line;
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::manual_page::manual_page;

#[derive(Debug, Args)]
struct Arguments {
    /// The command, such as check or lab run
    ///
    /// Without it the page is that of the program itself.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of the program and of all commands here
    ///
    /// As files of this directory, which is made where it is missing: pgclinic.1, pgclinic-check.1
    /// and so on.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    to: Option<PathBuf>,
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
        let arguments = Arguments::from_arg_matches(matches)?;
        let mut command = command_line();
        command.build();
        if let Some(folder) = &arguments.to {
            std::fs::create_dir_all(folder)?;
            write_all(&command, command.get_name(), folder)?;
            return Ok(Exit::Healthy);
        }
        let page = manual_page(named(command, &arguments.command)?)?;
        world.write(page.as_bytes())?;
        Ok(Exit::Healthy)
    }
}

/// The page of this command, and those of its commands.
fn write_all(command: &ClapCommand, name: &str, folder: &Path) -> Result<(), Failure> {
    let page = manual_page(with_name(command.clone(), name))?;
    std::fs::write(folder.join(format!("{name}.1")), page)?;
    let shown = command.get_subcommands().filter(|own| !own.is_hide_set());
    for own in shown.filter(|own| own.get_name() != "help") {
        write_all(own, &format!("{name}-{}", own.get_name()), folder)?;
    }
    Ok(())
}

fn with_name(command: ClapCommand, name: &str) -> ClapCommand {
    command.name(name.to_owned()).display_name(name.to_owned())
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
    Ok(with_name(command, &name))
}
