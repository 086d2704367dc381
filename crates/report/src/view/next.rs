//! What to type next: at most three commands that run as they are printed.

use pgclinic_format::Fork;
use pgclinic_model::document::{Place, PlanStep, Target};
use pgclinic_model::plan::Safety;
use pgclinic_model::shell_word;

use super::{Block, Step, Steps, text, words};
use crate::words as say;

/// More is a plan, and has a place of its own.
const NEXT_MAX: usize = 3;
/// Words in commands of plans that stand for what only the reader knows.
const BLANKS: [&str; 4] = ["DIR", "COPY", "PGDATA", "TARGET"];

/// What begins a line for a shell.
const PROGRAMS: [&str; 9] = [
    "pgclinic",
    "cp",
    "mkdir",
    "initdb",
    "psql",
    "pg_dumpall",
    "pg_resetwal",
    "pg_basebackup",
    "vacuumdb",
];

/// A command, and a few words why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NextCommand {
    /// Why.
    pub(crate) why: String,
    /// As a shell takes it.
    pub(crate) command: String,
}

/// The commands of a first screen, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Next(Vec<NextCommand>);

impl Next {
    /// With one more, while there is room.
    pub(crate) fn and(mut self, why: impl Into<String>, command: impl Into<String>) -> Self {
        let command = command.into();
        let is_known = self.0.iter().any(|own| own.command == command);
        if self.0.len() < NEXT_MAX && !is_known {
            let why = why.into();
            self.0.push(NextCommand { why, command });
        }
        self
    }

    /// With one more where it can be said.
    pub(crate) fn and_maybe(self, why: impl Into<String>, command: Option<String>) -> Self {
        match command {
            Some(command) => self.and(why, command),
            None => self,
        }
    }

    /// With the first commands of a plan that a shell takes as they are. Those that prove a cure
    /// come after it, and no first screen knows of a cure.
    pub(crate) fn and_plan(self, plan: &[PlanStep]) -> Self {
        let steps = plan.iter().filter(|step| step.name != "check-again");
        let commands = steps.flat_map(|step| step.commands.iter().map(move |own| (step, own)));
        let ready = commands.filter(|(_, command)| is_ready(command));
        ready.fold(self, |next, (step, command)| {
            next.and(why_of(step), command)
        })
    }

    /// Under which number the command stands.
    pub(crate) fn number_of(&self, command: &str) -> Option<usize> {
        let at = self.0.iter().position(|own| own.command == command);
        at.map(|at| at + 1)
    }

    /// As numbered steps; nothing where there are none.
    pub(crate) fn steps(&self) -> Option<Steps> {
        let steps = (1..).zip(&self.0).map(|(number, own)| Step {
            label: format!("{number}."),
            words: words(&own.why),
            blocks: vec![Block::Command(own.command.clone())],
        });
        let steps: Vec<Step> = steps.collect();
        (!steps.is_empty()).then_some(Steps {
            title: "Next",
            column: 4,
            steps,
        })
    }
}

/// A shell takes it, and nothing in it is left to be filled in.
fn is_ready(command: &str) -> bool {
    let mut words = command.split(' ');
    let is_of_shell = matches!(words.next(), Some("pgclinic" | "cp"));
    is_of_shell && !words.any(|word| BLANKS.contains(&word))
}

/// What somebody types, to be copied; a sentence about what no command does is a paragraph.
pub(crate) fn command_or_words(command: &str) -> Block {
    if is_typed(command) {
        Block::Command(command.to_owned())
    } else {
        text(command)
    }
}

fn is_typed(command: &str) -> bool {
    let first = command.split(' ').next().unwrap_or_default();
    let is_sql = first.bytes().all(|letter| letter.is_ascii_uppercase()) && command.contains(';');
    let is_program = PROGRAMS.contains(&first) && !command.contains(", ");
    is_sql || is_program
}

/// The name of a step in a few words.
fn why_of(step: &PlanStep) -> String {
    match step.name.as_str() {
        "secure-a-copy" if step.why.starts_with("stop the server") => {
            "stop the server, then copy all of it: nothing but the copy is changed".into()
        }
        "secure-a-copy" => {
            "copy all of it while no server runs: nothing but the copy is changed".into()
        }
        "salvage-rows" => {
            "write out the rows that can still be read; it only reads the cluster".into()
        }
        "see-what-heals" => {
            "see what of it can be cured; nothing is written without consent".into()
        }
        name => {
            let name = name.replace('-', " ");
            match step.safety {
                Safety::Lossy => format!("{name}; it {}", say::safety(Safety::Lossy)),
                Safety::Exact | Safety::ShowOnly => name,
            }
        }
    }
}

/// `pgclinic check /srv/data --level full`.
pub(crate) fn check_in_full(target: &Target) -> String {
    format!("pgclinic check {} --level full", target.as_arguments())
}

/// The page of a place taken apart; nothing where no page of a relation is meant.
pub(crate) fn inspect(target: &Target, place: &Place) -> Option<String> {
    let block = place.block?;
    let mut command = format!("pgclinic inspect {}", target.as_arguments());
    if target.kind != "relation-file" {
        command.push_str(&relation(place)?);
    }
    command.push_str(&format!(" --block {block}"));
    match place.fork {
        None | Some(Fork::Main) => {}
        Some(fork) => command.push_str(&format!(" --fork {}", fork.name())),
    }
    Some(command)
}

/// ` --database shop --relation public.docs`; the number of the file where the name would not do.
pub(crate) fn relation(place: &Place) -> Option<String> {
    let is_plain = |name: &String| {
        let mut letters = name.bytes();
        letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
    };
    let database = place.database.as_ref();
    let database = database.map(|name| format!(" --database {}", shell_word(name)));
    let relation = match (&place.schema, &place.relation, place.filenode) {
        (Some(schema), Some(relation), _) if is_plain(schema) && is_plain(relation) => {
            format!(" --relation {schema}.{relation}")
        }
        (_, _, Some(filenode)) => format!(" --filenode {filenode}"),
        _ => return None,
    };
    Some(database.unwrap_or_default() + &relation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_no_command() {
        for command in [
            "cp -a /a /a.copy",
            "pgclinic check '/a b' --level full",
            "REINDEX INDEX a; -- it takes the table's word",
            "SELECT pg_truncate_visibility_map('a'); VACUUM a;",
        ] {
            assert!(is_typed(command), "{command}");
        }
        for sentence in [
            "copy the cluster first; then take base/5/16384 from a backup",
            "pg_basebackup -D DIR, or a full backup of your backup tool",
            "DROP and CREATE SEQUENCE a with its old options",
        ] {
            assert!(!is_typed(sentence), "{sentence}");
        }
    }

    #[test]
    fn what_is_left_to_be_filled_in_is_no_next_command() {
        assert!(is_ready("pgclinic salvage /a --to /a.salvaged"));
        assert!(!is_ready("pgclinic salvage /a --to DIR"));
        assert!(!is_ready("REINDEX INDEX a;"));
    }

    #[test]
    fn commands_take_names_that_a_shell_would_split() {
        let target = Target {
            spec: "/srv/a b + /srv/c".into(),
            kind: "backup-chain".into(),
            ..Target::default()
        };
        let place = Place {
            database: Some("o'n".into()),
            schema: Some("public".into()),
            relation: Some("a table".into()),
            filenode: Some(16_384),
            fork: Some(Fork::Vm),
            block: Some(7),
            ..Place::default()
        };
        assert_eq!(
            inspect(&target, &place).as_deref(),
            Some(
                "pgclinic inspect '/srv/a b' --incremental /srv/c --database 'o'\\''n' --filenode 16384 --block 7 --fork vm"
            )
        );
    }
}
