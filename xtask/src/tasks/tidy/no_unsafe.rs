//! Every crate forbids code that the compiler cannot vouch for.

use super::code::{has_word, shipped};
use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "compiler-vouches",
    why: "hostile bytes meet only code that the compiler vouches for",
    check,
};

// In pieces, so that this file does not find itself.
const WORD: &str = concat!("un", "safe");
const FORBID: &str = concat!("#![forbid(un", "safe_code)]");

fn check(tree: &Tree) -> Vec<Complaint> {
    let lines = tree
        .rust()
        .flat_map(|(path, text)| shipped(text).map(move |(number, line)| (path, number, line)));
    let used = lines.filter(|(_, _, line)| has_word(line, WORD));
    let used = used.map(|(path, number, _)| Complaint::line(path, number, format!("uses {WORD}")));
    let open = tree.rust().filter(|(path, text)| {
        is_root(path) && !text.contains(FORBID) && !lints_inherited(tree, path)
    });
    used.chain(open.map(|(path, _)| Complaint::file(path, format!("lacks {FORBID}"))))
        .collect()
}

fn is_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

fn lints_inherited(tree: &Tree, root: &str) -> bool {
    let manifest = root
        .split("/src/")
        .next()
        .map(|folder| format!("{folder}/Cargo.toml"));
    let inherits = manifest
        .and_then(|path| tree.text(&path))
        .is_some_and(|text| text.contains("[lints]\nworkspace = true"));
    let forbidden = format!("{WORD}_code = \"forbid\"");
    inherits
        && tree
            .text("Cargo.toml")
            .is_some_and(|text| text.contains(&forbidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_and_permission_are_both_seen() {
        let block = format!("fn f() {{ {WORD} {{ }} }}\n");
        let tree = Tree::of(&[("crates/a/src/b.rs", &block), ("crates/a/src/lib.rs", "")]);
        assert_eq!(
            check(&tree),
            [
                Complaint::line("crates/a/src/b.rs", 1, format!("uses {WORD}")),
                Complaint::file("crates/a/src/lib.rs", format!("lacks {FORBID}")),
            ]
        );
    }

    #[test]
    fn the_lint_of_the_workspace_is_enough() {
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                &format!("[workspace.lints.rust]\n{WORD}_code = \"forbid\"\n"),
            ),
            ("crates/a/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/a/src/lib.rs", ""),
        ]);
        assert_eq!(check(&tree), []);
    }
}
