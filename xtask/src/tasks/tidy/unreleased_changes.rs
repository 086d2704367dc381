//! A file in `changelog/unreleased/` says something.

use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "unreleased-changes",
    why: "a change that users see is told in words",
    check,
};

fn check(tree: &Tree) -> Vec<Complaint> {
    let entries = tree
        .texts()
        .filter(|(path, _)| path.starts_with("changelog/unreleased/"));
    let empty = entries.filter(|(_, text)| text.trim().is_empty());
    empty
        .map(|(path, _)| Complaint::file(path, "is empty"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_entry_is_seen() {
        let tree = Tree::of(&[
            ("changelog/unreleased/a.md", "Says it."),
            ("changelog/unreleased/b.md", "\n"),
        ]);
        assert_eq!(
            check(&tree),
            [Complaint::file("changelog/unreleased/b.md", "is empty")]
        );
    }
}
