//! The words of the program itself, so that a word of a sentence is known from a name.
//!
//! `cargo xtask docs` gathers them from the texts in the sources. A word that is missing becomes a
//! pseudonym: the list errs on the side of those who do not want to be named.

use std::collections::HashSet;

/// One word a line, in lower case.
const WORDS: &str = include_str!("vocabulary.txt");

/// Words that the program says.
pub(super) struct Vocabulary(HashSet<&'static str>);

impl Vocabulary {
    pub(super) fn new() -> Self {
        Vocabulary(WORDS.lines().collect())
    }

    /// The program says so; `word` may hold dots, as `pg_filenode.map`.
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.contains(word.to_lowercase().as_str())
    }
}
