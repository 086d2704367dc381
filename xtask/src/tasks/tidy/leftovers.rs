//! Notes to oneself do not stay behind.

use super::code::has_word;
use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "leftovers",
    why: "what is open stands in the issue tracker, how the work went stands nowhere",
    check,
};

// In pieces, so that this file does not find itself.
const WORDS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("Cla", "ude"),
    concat!("assis", "tant"),
];

fn check(tree: &Tree) -> Vec<Complaint> {
    let written = tree.texts().filter(|(path, _)| is_written_by_hand(path));
    let lines = written.flat_map(|(path, text)| {
        text.lines()
            .enumerate()
            .map(move |(at, line)| (path, at + 1, line))
    });
    let hits = lines.filter_map(|(path, number, line)| {
        let word = WORDS.iter().find(|word| has_word(line, word))?;
        Some(Complaint::line(
            path,
            number,
            format!("{word} was left behind"),
        ))
    });
    hits.collect()
}

fn is_written_by_hand(path: &str) -> bool {
    !path.ends_with(".lock") && !path.starts_with("LICENSE") && !path.starts_with("testdata/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_to_oneself_is_seen_and_a_part_of_a_word_is_not() {
        let word = WORDS[2];
        let tree = Tree::of(&[("a.rs", &format!("fine {word}001\n// {word} later\n"))]);
        assert_eq!(
            check(&tree),
            [Complaint::line(
                "a.rs",
                2,
                format!("{word} was left behind")
            )]
        );
    }
}
