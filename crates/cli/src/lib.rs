//! The command line: arguments, targets, progress, output, exit codes. What a command does is in
//! `commands/`, one file each.
#![forbid(unsafe_code)]

mod args;
mod articles;
mod asked_server;
mod beside_a_server;
mod collator;
pub mod commands;
mod config_file;
mod destination;
pub mod drill;
mod env;
mod exit;
mod foreseen;
mod help;
mod ignored_findings;
mod journal_beside;
mod machine;
mod manual_page;
mod near_names;
mod neighbours;
mod output;
mod privacy;
mod progress;
mod quiet_run;
mod run_state;
mod server_copy;
mod server_facts;
mod server_files;
mod status_line;
mod stillness;
mod stream;
mod target;
mod undetected_server;

pub use env::{Env, Terminal};
pub use exit::{Exit, Failure};
pub use status_line::StatusCode;

use std::ffi::OsStr;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command as ClapCommand};

/// The version, with the commit and its date, as `build.rs` found them.
const VERSION: &str = env!("PGCLINIC_VERSION");

/// The whole command line, for parsing, help and the manual.
pub fn command_line() -> ClapCommand {
    let root = ClapCommand::new("pgclinic")
        .version(VERSION)
        .about("The storage clinic for PostgreSQL 13-18: checks, explains, salvages, measures")
        .max_term_width(help::COLUMNS_MAX)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(config_file::argument())
        .after_help(
            "TARGET of check, inspect, measure and salvage is $PGDATA where none is given.\n\n\
             Exit codes: 0 healthy, 1 damaged, 2 could not work or wrong usage, 3 incomplete,\n\
             130 interrupted. --fail-on of check, salvage, measure and diff says which of\n\
             1 and 3 count.",
        );
    let commands = commands::COMMANDS.iter();
    let root = commands.fold(root, |root, command| root.subcommand(command.arguments()));
    help::with_choices(root)
}

/// Commands that only read, and so may work on a target that nobody named.
const READERS: [&str; 4] = ["check", "inspect", "measure", "salvage"];

/// Commands that only read take the data directory that other programs of the server take.
fn of_environment(mut line: ClapCommand, pgdata: Option<&OsStr>) -> ClapCommand {
    let Some(pgdata) = pgdata else {
        return line;
    };
    for name in READERS {
        line = line.mut_subcommand(name, |command| {
            command.mut_arg("target", |target| {
                let target = target.hide_default_value(true);
                target.default_value(pgdata.to_owned())
            })
        });
    }
    line
}

/// Help shows a target that may be left out, so that the parser lets it be missing.
fn lacks_target(name: &str, matches: &ArgMatches) -> bool {
    let is_own = matches.subcommand_name().is_none();
    READERS.contains(&name) && is_own && !matches.contains_id("target")
}

/// What a missing TARGET could have been taken from.
fn without_target(line: &mut ClapCommand, name: &str, world: &mut Env<'_>) -> Exit {
    let Some(command) = line.find_subcommand_mut(name) else {
        return Exit::Failed;
    };
    let why = "no TARGET is given, and PGDATA is not set";
    let exit = world.usage(&command.error(ErrorKind::MissingRequiredArgument, why));
    world.say(
        "TARGET is a data directory, a backup or postgres://…; check, inspect, measure and\n\
         salvage take $PGDATA where none is given, and it is not set here. A URL may leave\n\
         out what PGHOST, PGPORT, PGUSER, PGDATABASE or PGSERVICE say: postgres://",
    );
    exit
}

/// Runs one command line. Everything that a program may see or say comes in through `world`.
pub fn run(arguments: Vec<std::ffi::OsString>, world: &mut Env<'_>) -> Exit {
    let mut line = of_environment(command_line(), world.pgdata.as_deref());
    let arguments = match config_file::completed(arguments, &line, &world.config_files) {
        Ok(arguments) => arguments,
        Err(failure) => return world.failed(&failure),
    };
    let matches = match line.try_get_matches_from_mut(arguments) {
        Ok(matches) => matches,
        Err(error) => return world.usage(&error),
    };
    let Some((name, matches)) = matches.subcommand() else {
        return Exit::Failed;
    };
    if lacks_target(name, matches) {
        return without_target(&mut line, name, world);
    }
    let command = commands::COMMANDS
        .iter()
        .find(|command| command.name() == name);
    let Some(command) = command else {
        return Exit::Failed;
    };
    match command.run(matches, world) {
        Ok(exit) => exit,
        Err(failure) => world.failed(&failure),
    }
}
