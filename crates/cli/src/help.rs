//! The shape of help: one line for each argument and command under `-h`, the detail under `--help`,
//! both at most
//! [`COLUMNS_MAX`] wide.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

/// The width of a terminal that nobody has made wider.
pub(crate) const COLUMNS_MAX: usize = 80;

/// Puts the values that an argument takes into its one line, and what each of them means into its
/// detail.
///
/// Clap would print `[possible values: …]` after the default, which rarely fits. An argument that
/// hides its values has them in its detail alone, and one that hides its default has that there
/// too.
pub(crate) fn with_choices(command: Command) -> Command {
    command
        .mut_args(choices_in_line)
        .mut_subcommands(with_choices)
}

fn choices_in_line(argument: Arg) -> Arg {
    let takes_value = argument.get_action().takes_values();
    let values: Vec<PossibleValue> = argument.get_possible_values();
    if !takes_value || values.is_empty() {
        return argument;
    }
    let short = argument.get_help().map(ToString::to_string);
    let short = short.unwrap_or_default();
    let long = argument.get_long_help().map(ToString::to_string);
    let detail = long.unwrap_or_else(|| short.clone());
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let names: Vec<&str> = shown.map(PossibleValue::get_name).collect();
    let in_line = if argument.is_hide_possible_values_set() {
        short
    } else {
        format!("{short}: {}", names.join(", "))
    };
    let detail = format!("{detail}\n\n{}", meanings(&argument, &values));
    argument
        .hide_possible_values(true)
        .help(in_line)
        .long_help(detail)
}

/// A list of the values, each with its meaning where it has one.
fn meanings(argument: &Arg, values: &[PossibleValue]) -> String {
    let mut text = String::from("Values:");
    for value in values {
        text.push_str(&format!("\n- {}", value.get_name()));
        if let Some(meaning) = value.get_help() {
            text.push_str(&format!(": {meaning}"));
        }
    }
    if argument.is_hide_default_value_set() {
        let default = argument.get_default_values().iter();
        let default: Vec<_> = default.map(|value| value.to_string_lossy()).collect();
        text.push_str(&format!("\n\n[default: {}]", default.join(",")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line;

    /// Every command with the words that lead to it, hidden ones and clap's own `help` apart.
    fn commands(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        let shown = |own: &&Command| !own.is_hide_set() && own.get_name() != "help";
        for own in command.get_subcommands().filter(shown) {
            commands(own, &format!("{path} {}", own.get_name()), found);
        }
    }

    fn all_commands() -> Vec<(String, Command)> {
        let mut root = command_line();
        root.build();
        let mut found = Vec::new();
        commands(&root, "pgclinic", &mut found);
        assert!(found.len() > 15, "only {} commands were found", found.len());
        found
    }

    #[test]
    fn help_is_at_most_80_columns_wide() {
        let mut wide = Vec::new();
        for (path, mut command) in all_commands() {
            let helps = [command.render_help(), command.render_long_help()];
            let lines = helps.iter().map(ToString::to_string);
            for line in lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
                if line.chars().count() > COLUMNS_MAX {
                    wide.push(format!("{path}: {line}"));
                }
            }
        }
        assert!(wide.is_empty(), "{}", wide.join("\n"));
    }

    #[test]
    fn short_help_gives_each_argument_and_command_one_line() {
        // Clap indents what it wraps, and help below its argument, by ten blanks or more.
        let wrapped = " ".repeat(10);
        let mut long = Vec::new();
        for (path, mut command) in all_commands() {
            let text = command.render_help().to_string();
            let lines = text.lines().filter(|line| line.starts_with(&wrapped));
            long.extend(lines.map(|line| format!("{path}: {line}")));
        }
        assert!(long.is_empty(), "{}", long.join("\n"));
    }

    #[test]
    fn nothing_that_is_written_in_lines_is_wrapped() {
        let mut wide = Vec::new();
        for (path, command) in all_commands() {
            let own = [command.get_about(), command.get_long_about()];
            let after = [command.get_after_help(), command.get_after_long_help()];
            for text in own.into_iter().chain(after).flatten() {
                let text = text.to_string();
                let lines = text
                    .lines()
                    .filter(|line| line.chars().count() > COLUMNS_MAX);
                wide.extend(lines.map(|line| format!("{path}: {line}")));
            }
        }
        assert!(wide.is_empty(), "{}", wide.join("\n"));
    }

    #[test]
    fn every_command_and_argument_has_help() {
        let mut silent = Vec::new();
        for (path, command) in all_commands() {
            if command.get_about().is_none() {
                silent.push(path.clone());
            }
            let mute = command
                .get_arguments()
                .filter(|own| own.get_help().is_none());
            silent.extend(mute.map(|own| format!("{path} {}", own.get_id())));
        }
        assert!(silent.is_empty(), "{}", silent.join("\n"));
    }

    #[test]
    fn a_target_that_may_be_left_out_is_shown_so() {
        let readers = crate::READERS.map(|name| format!("pgclinic {name}"));
        let all = all_commands().into_iter();
        for (path, mut command) in all.filter(|(path, _)| readers.contains(path)) {
            let text = command.render_long_help().to_string();
            assert!(text.contains("[TARGET]"), "{path}: {text}");
            assert!(!text.contains("<TARGET>"), "{path}: {text}");
            assert!(text.contains("it is $PGDATA."), "{path}: {text}");
        }
    }

    #[test]
    fn values_stand_in_the_line_and_their_meanings_in_the_detail() {
        let (_, mut check) = all_commands()
            .into_iter()
            .find(|(path, _)| path == "pgclinic check")
            .expect("the command");
        let short = check.render_help().to_string();
        assert!(
            short.contains("Depth: pages, structure, full [default: structure]"),
            "{short}"
        );
        let long = check.render_long_help().to_string();
        assert!(long.contains("- pages: Checksums, page headers"), "{long}");
        assert!(
            long.contains("[default: damage,incomplete,recovery]"),
            "{long}"
        );
    }
}
