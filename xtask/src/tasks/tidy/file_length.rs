//! A source file is one idea; 800 lines are the wall.

use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "file-length",
    why: "a file is one idea",
    check,
};

const LINES_MAX: usize = 800;
const KINDS: &[&str] = &[".rs", ".css", ".js", ".sql", ".sh", ".toml"];

fn check(tree: &Tree) -> Vec<Complaint> {
    let sources = tree
        .texts()
        .filter(|(path, _)| KINDS.iter().any(|kind| path.ends_with(kind)));
    let counted = sources.map(|(path, text)| (path, text.lines().count()));
    let long = counted.filter(|(_, count)| *count > LINES_MAX);
    long.map(|(path, count)| {
        Complaint::line(
            path,
            LINES_MAX,
            format!("{count} lines, {LINES_MAX} are the wall"),
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_is_at_800() {
        let (fits, long) = ("\n".repeat(800), "\n".repeat(801));
        let found = check(&Tree::of(&[
            ("a.rs", &fits),
            ("b.rs", &long),
            ("c.md", &long),
        ]));
        assert_eq!(
            found,
            [Complaint::line("b.rs", 800, "801 lines, 800 are the wall")]
        );
    }
}
