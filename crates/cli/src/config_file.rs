//! `pgclinic.toml`: options that are given with every run of a command. What the command line has
//! goes before them, and a file of one's own before that of the machine.
//!
//! ```toml
//! [check]
//! fail-on = ["damage", "incomplete"]
//!
//! ["heal checksums"]
//! jobs = 2
//! ```
//!
//! The working directory is never looked into: whoever prepared it would choose options for others.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Arg, Command as ClapCommand};
use toml::{Table, Value};

use crate::exit::Failure;

/// Its name among the options of every command.
pub(crate) const OPTION: &str = "config";
/// What somebody says for one run, and never once for all.
const NEVER: [&str; 8] = [
    "accept",
    "apply",
    "config",
    "resume",
    "run",
    "this-is-not-production",
    "undo",
    "yes",
];

/// The option that names a file.
pub(crate) fn argument() -> Arg {
    Arg::new(OPTION)
        .long(OPTION)
        .global(true)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Options from this file instead of pgclinic.toml")
        .hide_short_help(true)
        .help_heading("Options")
}

/// Options of one command, by name, as words of a command line.
type Options = BTreeMap<String, Vec<String>>;

/// The command line with what the files add to it.
pub(crate) fn completed(
    mut words: Vec<OsString>,
    line: &ClapCommand,
    usual: &[PathBuf],
) -> Result<Vec<OsString>, Failure> {
    let Some(run) = CommandOfRun::of(&words, line) else {
        return Ok(words);
    };
    let mut options = Options::new();
    let named = named_file(&words);
    let files = named.as_ref().map_or(usual, std::slice::from_ref);
    for file in files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            // HOME may be another user's: what cannot be seen to be there is nobody's wish.
            Err(_) if named.is_none() && file.symlink_metadata().is_err() => continue,
            Err(error) => return Err(wrong(file, &error)),
        };
        let tables: Table = toml::from_str(&text).map_err(|error| wrong(file, &error))?;
        for (name, table) in &tables {
            let own = options_of(name, table, line).map_err(|why| wrong(file, &why))?;
            if *name == run.name {
                options.extend(own);
            }
        }
    }
    let given = words.get(run.end..).unwrap_or_default();
    let is_free = |(name, _): &(String, Vec<String>)| !is_given(name, run.command, given);
    let added: Vec<OsString> = options
        .into_iter()
        .filter(is_free)
        .flat_map(|(_, words)| words)
        .map(OsString::from)
        .collect();
    words.splice(run.end..run.end, added);
    Ok(words)
}

fn wrong(file: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("{} cannot be used: {why}", file.display()))
}

/// What is run.
struct CommandOfRun<'a> {
    command: &'a ClapCommand,
    /// `heal checksums`.
    name: String,
    /// Where its options begin among the words.
    end: usize,
}

impl<'a> CommandOfRun<'a> {
    fn of(words: &[OsString], line: &'a ClapCommand) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut is_value = false;
        for (place, word) in words.iter().enumerate().skip(1) {
            let word = word.to_str().unwrap_or_default();
            if std::mem::take(&mut is_value) {
                continue;
            }
            if word.starts_with('-') {
                is_value = word == format!("--{OPTION}");
                if is_value {
                    continue;
                }
                break;
            }
            let above = found.as_ref().map_or(line, |own| own.command);
            let Some(command) = above.find_subcommand(word) else {
                break;
            };
            let name = found.map_or_else(|| word.to_owned(), |own| format!("{} {word}", own.name));
            found = Some(CommandOfRun {
                command,
                name,
                end: place + 1,
            });
        }
        found
    }
}

fn named_file(words: &[OsString]) -> Option<PathBuf> {
    let before = words.iter().take_while(|word| *word != "--");
    let mut words = before.map(OsString::as_os_str);
    let joined = format!("--{OPTION}=");
    while let Some(word) = words.next() {
        if word == OsStr::new(&format!("--{OPTION}")) {
            return words.next().map(PathBuf::from);
        }
        if let Some(file) = word.to_str().and_then(|word| word.strip_prefix(&joined)) {
            return Some(file.into());
        }
    }
    None
}

/// What a table says, held to the options that its command has.
fn options_of(name: &str, table: &Value, line: &ClapCommand) -> Result<Options, String> {
    let mut command = line;
    for word in name.split(' ') {
        let found = command.find_subcommand(word);
        command = found.ok_or_else(|| format!("there is no command {name}"))?;
    }
    let table = table
        .as_table()
        .ok_or_else(|| format!("{name} is no table of options"))?;
    let options = table.iter().map(|(option, value)| {
        let mut arguments = command.get_arguments();
        let argument = arguments.find(|own| own.get_long() == Some(option));
        let argument = argument.ok_or_else(|| format!("{name} has no option {option}"))?;
        if NEVER.contains(&option.as_str()) {
            return Err(format!("{option} is for one run, and not for a file"));
        }
        let words = words_of(option, value, argument)?;
        Ok((option.clone(), words))
    });
    options.collect()
}

/// `--level full`; of a list each value by itself.
fn words_of(option: &str, value: &Value, argument: &Arg) -> Result<Vec<String>, String> {
    let takes_values = argument.get_action().takes_values();
    let word = |value: &Value| match value {
        Value::String(text) => Ok(format!("--{option}={text}")),
        Value::Integer(number) => Ok(format!("--{option}={number}")),
        _ => Err(format!("{option} is neither a text, a number nor true")),
    };
    match value {
        Value::Boolean(is_set) if !takes_values => {
            Ok(is_set.then(|| format!("--{option}")).into_iter().collect())
        }
        _ if !takes_values => Err(format!("{option} is true or false")),
        Value::Array(values) => values.iter().map(word).collect(),
        value => Ok(vec![word(value)?]),
    }
}

/// The command line has this option itself.
fn is_given(name: &str, command: &ClapCommand, words: &[OsString]) -> bool {
    let mut arguments = command.get_arguments();
    let argument = arguments.find(|own| own.get_long() == Some(name));
    let short = argument.and_then(Arg::get_short);
    let before = words.iter().take_while(|word| *word != "--");
    let mut before = before.filter_map(|word| word.to_str());
    before.any(|word| match word.strip_prefix("--") {
        Some(long) => long.split('=').next() == Some(name),
        None => short.is_some_and(|short| word.starts_with('-') && word.contains(short)),
    })
}
