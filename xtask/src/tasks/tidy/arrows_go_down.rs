//! A crate knows only crates of lower levels.

use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "arrows-go-down",
    why: "a crate knows only crates of lower levels",
    check,
};

/// The house, from the ground up.
const LEVELS: &[(&str, u8)] = &[
    ("columnar", 0),
    ("format", 0),
    ("spill", 0),
    ("statistics", 0),
    ("source", 1),
    ("servers", 1),
    ("model", 1),
    ("cluster", 2),
    ("scan", 3),
    ("check", 4),
    ("diff", 4),
    ("explain", 4),
    ("measure", 4),
    ("salvage", 4),
    ("surgery", 5),
    ("report", 5),
    ("lab", 6),
    ("watch", 6),
    ("query", 6),
    ("cli", 7),
    ("fleet", 7),
];

/// Stands beside the house: for tests only, and free to know everything.
const BESIDE: &str = "testkit";

fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts() {
        let Some(name) = crate_of(path) else { continue };
        if name == BESIDE {
            continue;
        }
        let Some(level) = level_of(name) else {
            complaints.push(Complaint::file(
                path,
                format!("{name} has no level in the house"),
            ));
            continue;
        };
        for (line, known) in dependencies(text) {
            if level_of(known).is_none_or(|other| other >= level) {
                complaints.push(Complaint::line(
                    path,
                    line,
                    format!("{name} must not know {known}"),
                ));
            }
        }
    }
    complaints
}

fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}

fn level_of(name: &str) -> Option<u8> {
    LEVELS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, level)| *level)
}

/// The crates of the house that a manifest names outside its dev-dependencies.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (at, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        }
        let counts = section.contains("dependencies") && !section.contains("dev-dependencies");
        if let Some(rest) = line.strip_prefix("pgclinic-").filter(|_| counts) {
            found.push((at + 1, rest.split(['.', ' ', '=']).next().unwrap_or(rest)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_up_or_sideways_is_seen_and_tests_are_free() {
        let manifest = "[dependencies]\npgclinic-report.workspace = true\npgclinic-format.workspace = true\n\
                        pgclinic-testkit.workspace = true\n[dev-dependencies]\npgclinic-cli.workspace = true\n";
        let found = check(&Tree::of(&[("crates/surgery/Cargo.toml", manifest)]));
        assert_eq!(
            found,
            [
                Complaint::line(
                    "crates/surgery/Cargo.toml",
                    2,
                    "surgery must not know report"
                ),
                Complaint::line(
                    "crates/surgery/Cargo.toml",
                    4,
                    "surgery must not know testkit"
                ),
            ]
        );
    }

    #[test]
    fn a_crate_without_a_level_is_seen() {
        let found = check(&Tree::of(&[("crates/garage/Cargo.toml", "")]));
        assert_eq!(
            found,
            [Complaint::file(
                "crates/garage/Cargo.toml",
                "garage has no level in the house"
            )]
        );
    }
}
