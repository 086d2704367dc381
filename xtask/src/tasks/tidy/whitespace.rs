//! No blanks at the end of a line, no tabs in Rust.

use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "whitespace",
    why: "what nobody sees should not differ",
    check,
};

fn check(tree: &Tree) -> Vec<Complaint> {
    let texts = tree.texts().filter(|(path, _)| !is_kept_as_it_came(path));
    let lines = texts.flat_map(|(path, text)| {
        text.lines()
            .enumerate()
            .map(move |(at, line)| (path, at + 1, line))
    });
    lines
        .filter_map(|(path, number, line)| Some(Complaint::line(path, number, fault(path, line)?)))
        .collect()
}

/// Golden texts show what a printer wrote, blanks included; licences are not ours to edit.
fn is_kept_as_it_came(path: &str) -> bool {
    let golden = [".snap", ".tsv"].iter().any(|kind| path.ends_with(kind));
    let foreign = ["testdata/", "fuzz/seeds/", "LICENSE"]
        .iter()
        .any(|start| path.starts_with(start));
    golden || foreign
}

fn fault(path: &str, line: &str) -> Option<&'static str> {
    if line.ends_with([' ', '\t', '\r']) {
        Some("ends in a blank")
    } else if path.ends_with(".rs") && line.contains('\t') {
        Some("holds a tab")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_tabs_are_seen() {
        let tree = Tree::of(&[("a.md", "x \n\ty\n"), ("b.rs", "\ty\n"), ("c.snap", "x \n")]);
        assert_eq!(
            check(&tree),
            [
                Complaint::line("a.md", 1, "ends in a blank"),
                Complaint::line("b.rs", 1, "holds a tab")
            ]
        );
    }
}
