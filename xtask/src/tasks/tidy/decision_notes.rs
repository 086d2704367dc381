//! Decision notes carry a date, and every dependency stands in one.

use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "decision-notes",
    why: "a dependency or a departure has its dated reason in docs/adr",
    check,
};

const FOLDER: &str = "docs/adr/";

fn check(tree: &Tree) -> Vec<Complaint> {
    let notes: Vec<(&str, &str)> = tree
        .texts()
        .filter(|(path, _)| path.starts_with(FOLDER))
        .collect();
    let undated = notes
        .iter()
        .filter(|(path, _)| !is_dated(&path[FOLDER.len()..]));
    let undated =
        undated.map(|(path, _)| Complaint::file(path, "is not named YYYY-MM-DD-subject.md"));

    let manifest = tree.text("Cargo.toml").unwrap_or_default();
    let named = |name: &str| {
        notes
            .iter()
            .any(|(_, text)| text.contains(&format!("`{name}`")))
    };
    let silent = dependencies(manifest).filter(|(_, name)| !named(name));
    let silent = silent.map(|(line, name)| {
        Complaint::line(
            "Cargo.toml",
            line,
            format!("no note gives the reason for {name}"),
        )
    });
    undated.chain(silent).collect()
}

fn is_dated(name: &str) -> bool {
    let shape = name.bytes().zip(*b"dddd-dd-dd-");
    let fits = |(byte, want): (u8, u8)| {
        if want == b'd' {
            byte.is_ascii_digit()
        } else {
            byte == want
        }
    };
    name.len() > "YYYY-MM-DD-.md".len() && shape.into_iter().all(fits) && name.ends_with(".md")
}

/// The foreign crates in the workspace's table.
fn dependencies(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = manifest.lines().enumerate();
    let table = lines
        .skip_while(|(_, line)| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with('['));
    let names = table.filter_map(|(at, line)| Some((at + 1, line.split_once('=')?.0.trim())));
    names.filter(|(_, name)| !name.starts_with("pgclinic-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_needs_a_date_and_a_dependency_needs_a_note() {
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nclap = \"4\"\nrand = \"1\"\n[profile.dev]\nx = 1\n",
            ),
            ("docs/adr/0001-clap.md", "`clap` reads arguments"),
            ("docs/adr/2026-11-20-good.md", ""),
        ]);
        assert_eq!(
            check(&tree),
            [
                Complaint::file(
                    "docs/adr/0001-clap.md",
                    "is not named YYYY-MM-DD-subject.md"
                ),
                Complaint::line("Cargo.toml", 3, "no note gives the reason for rand"),
            ]
        );
    }
}
