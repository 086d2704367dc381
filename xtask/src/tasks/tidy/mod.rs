//! House rules that a compiler does not know. One file per rule, one line in the register.

use crate::args::Args;
use crate::repository::Tree;
use crate::task::{Outcome, Task};

pub(super) mod code;
pub(super) mod literals;

pub(crate) const TASK: Task = Task {
    name: "tidy",
    summary: "looks for what breaks the rules of the house; --list NAME shows what a ceiling counts, --lower writes ceilings that fell, --wrap PATH wraps wide comments below it",
    in_ci: Some(&[]),
    run,
};

/// A rule over the whole repository.
struct Rule {
    /// Kebab-case, for the complaint.
    name: &'static str,
    /// What it protects.
    why: &'static str,
    /// What breaks it.
    check: fn(&Tree) -> Vec<Complaint>,
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Complaint {
    path: String,
    /// From 1; 0 when the whole file is meant.
    line: usize,
    what: String,
}

impl Complaint {
    fn file(path: &str, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: 0,
            what: what.into(),
        }
    }

    fn line(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            what: what.into(),
        }
    }
}

/// Places by what they are called in `ceilings.txt`.
type Places = Vec<(String, Vec<Complaint>)>;

/// A habit that is being given up: its places are counted, and `ceilings.txt` says how many there
/// may be.
struct Count {
    /// What is gained where the last one goes.
    why: &'static str,
    /// The places by what they are called in `ceilings.txt`.
    places: fn(&Tree) -> Places,
}

macro_rules! registry {
    ($static:ident: [$type:ident] = $item:ident of [$($name:ident,)*]) => {
        $(mod $name;)*
        static $static: &[$type] = &[$($name::$item,)*];
    };
}

registry! {
    COUNTS: [Count] = COUNT of [
        comment_width,
        forbidden_words,
        module_only_docs,
    ]
}

registry! {
    RULES: [Rule] = RULE of [
        arrows_go_down,
        ceilings,
        decision_notes,
        file_length,
        leftovers,
        no_registry_hosts,
        no_unsafe,
        only_programs_talk,
        only_surgery_writes,
        orphan_files,
        unreleased_changes,
        whitespace,
    ]
}

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let listed = args.value("--list")?;
    let lowers = args.flag("--lower");
    let wraps = args.value("--wrap")?;
    args.finish()?;
    if let Some(start) = wraps {
        comment_width::wrap_below(&Tree::read()?, &start)?;
    }
    let tree = Tree::read()?;
    if let Some(name) = listed {
        print!("{}", ceilings::listed(&tree, &name)?);
        return Ok(());
    }
    if lowers {
        ceilings::lower(&tree)?;
    }
    let complaints = complaints(&Tree::read()?);
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(format!("the house is untidy\n{}", complaints.join("\n")))
    }
}

fn complaints(tree: &Tree) -> Vec<String> {
    let of_rule = |rule: &Rule| -> Vec<String> {
        let found = (rule.check)(tree);
        let line = |c: Complaint| {
            format!(
                "{}:{}: {} ({}: {})",
                c.path, c.line, c.what, rule.name, rule.why
            )
        };
        found.into_iter().map(line).collect()
    };
    RULES.iter().flat_map(of_rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let tree = Tree::read().expect("the repository can be read");
        assert!(
            tree.files.len() > 20,
            "only {} files were seen",
            tree.files.len()
        );
        let complaints = complaints(&tree);
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    #[test]
    fn rule_names_are_unique() {
        for rule in RULES {
            assert_eq!(
                RULES.iter().filter(|other| other.name == rule.name).count(),
                1,
                "{}",
                rule.name
            );
        }
    }
}
