//! A source file that no register line and no module line names is dead, and no compiler says so.

use super::code::has_word;
use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "orphan-files",
    why: "a file that no register names is never compiled",
    check,
};

const ROOTS: &[&str] = &["lib.rs", "main.rs", "build.rs"];

fn check(tree: &Tree) -> Vec<Complaint> {
    let modules = tree
        .rust()
        .filter_map(|(path, _)| Some((path, module(path)?)));
    let orphans = modules.filter(|(_, (folder, name))| !is_named(tree, folder, name));
    orphans
        .map(|(path, _)| Complaint::file(path, "no register and no module line names it"))
        .collect()
}

/// The folder whose module must name this file, and the name; `None` for the root of a crate, a
/// test or an example.
fn module(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.rsplit_once('/')?;
    let in_source = folder.ends_with("/src") || folder.contains("/src/");
    if !in_source || ROOTS.contains(&file) || folder.ends_with("/src/bin") {
        return None;
    }
    if file == "mod.rs" {
        folder.rsplit_once('/')
    } else {
        Some((folder, file.strip_suffix(".rs")?))
    }
}

fn is_named(tree: &Tree, folder: &str, name: &str) -> bool {
    let parents = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"];
    let texts = parents
        .iter()
        .filter_map(|parent| tree.text(&format!("{folder}{parent}")));
    texts
        .flat_map(str::lines)
        .any(|line| !line.trim_start().starts_with("//") && has_word(line, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_the_register_or_a_module_line_is_enough() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod checks;\nmod page;\n"),
            ("crates/a/src/page.rs", ""),
            (
                "crates/a/src/checks/mod.rs",
                "registry! { X: [Y] = [ one::One, ] }\n// two was here\n",
            ),
            ("crates/a/src/checks/one.rs", ""),
            ("crates/a/src/checks/two.rs", ""),
            ("crates/a/tests/suite.rs", ""),
        ]);
        let orphan = Complaint::file(
            "crates/a/src/checks/two.rs",
            "no register and no module line names it",
        );
        assert_eq!(check(&tree), [orphan]);
    }
}
