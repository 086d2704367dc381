//! A doc comment says what the thing is; that there is a module around it the reader knows.

use super::{Complaint, Count};
use crate::repository::Tree;

pub(super) const COUNT: Count = Count {
    why: "a doc comment says what the thing is",
    places,
};

// In pieces, so that this file does not find itself.
const EMPTY: &[&str] = &[
    concat!("/// See the mod", "ule."),
    concat!("/// See the mod", "ule's head."),
];

fn places(tree: &Tree) -> Vec<(String, Vec<Complaint>)> {
    let lines = tree.rust().flat_map(|(path, text)| {
        let lines = text.lines().enumerate();
        lines.map(move |(at, line)| (path, at + 1, line.trim_start()))
    });
    let empty = lines.filter(|(_, _, line)| EMPTY.iter().any(|start| line.starts_with(start)));
    let places = empty.map(|(path, line, _)| Complaint::line(path, line, "says nothing"));
    vec![(
        "docs that name only the module".to_owned(),
        places.collect(),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_only_points_away_is_seen() {
        let text = format!(
            "//! Head.\n{} More.\npub struct A;\n/// A page.\n",
            EMPTY[0]
        );
        let found = places(&Tree::of(&[("a.rs", &text)]));
        assert_eq!(found[0].1, [Complaint::line("a.rs", 2, "says nothing")]);
    }
}
