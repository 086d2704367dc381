//! Rust text without comments and without tests, line by line.

use crate::repository::Tree;

/// The lines of a file that ship: `(number from 1, text before any comment)`.
///
/// Tests stand at a file's end here, so everything after `#[cfg(test)]` before a module is left
/// out.
pub(super) fn shipped(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = without_tests(text).lines().enumerate();
    lines.map(|(at, line)| (at + 1, without_comment(line)))
}

/// The text up to the module of its tests.
pub(in crate::tasks) fn without_tests(text: &str) -> &str {
    const TESTS: &str = "#[cfg(test)]\nmod ";
    let end = match text.find(&format!("\n{TESTS}")) {
        Some(at) => at + 1,
        None if text.starts_with(TESTS) => 0,
        None => text.len(),
    };
    text.get(..end).unwrap_or(text)
}

/// Is the file for tests and trials only, and never part of a program?
pub(in crate::tasks) fn is_test(path: &str) -> bool {
    ["/tests/", "/benches/", "/examples/"]
        .iter()
        .any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
}

/// Every shipped line of the workspace's crates, with its path.
pub(super) fn crate_lines(tree: &Tree) -> impl Iterator<Item = (&str, usize, &str)> {
    let files = tree
        .rust()
        .filter(|(path, _)| path.starts_with("crates/") && !is_test(path));
    files.flat_map(|(path, text)| shipped(text).map(move |(number, line)| (path, number, line)))
}

/// Does `line` hold `word` with no letter, digit or underscore beside it?
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") {
        return "";
    }
    line.find(" // ").map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_do_not_count() {
        let text = "a(); // why\n// b\nc();\n#[cfg(test)]\nmod tests {\n d();\n}\n";
        let lines: Vec<_> = shipped(text).collect();
        assert_eq!(lines, [(1, "a();"), (2, ""), (3, "c();")]);
    }

    #[test]
    fn a_word_is_not_a_part_of_a_longer_one() {
        assert!(has_word("an XY here", "XY"));
        assert!(!has_word("XYZ", "XY"));
        assert!(!has_word("_XY", "XY"));
    }
}
