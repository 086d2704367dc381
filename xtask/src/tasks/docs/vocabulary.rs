//! The words of the program: what stands in texts of its sources, for `--redact`, which takes every
//! other word of a document for a name.

use std::collections::BTreeSet;

use crate::repository::Tree;
use crate::tasks::tidy::code::{is_test, without_tests};
use crate::tasks::tidy::literals::literals;

/// Where they are kept.
pub(super) const KEPT: &str = "crates/report/src/privacy/vocabulary.txt";

/// Texts that are no program's: pages that it shows whole.
const PAGES: [&str; 2] = [
    "crates/check/rules/",
    "crates/explain/src/server_messages/texts/",
];

/// Files whose texts are examples of names and of data.
const EXAMPLES: [&str; 7] = [
    "crates/cli/src/commands/demo",
    "crates/cli/src/drill/",
    "crates/lab/src/user_experiment/template",
    "crates/lab/src/experiments/catalog_churn/",
    "crates/lab/src/experiments/oauth_login/",
    "crates/lab/src/experiments/toast_compression/",
    "crates/testkit/",
];

/// Names of examples that stand among the texts.
const NAMES: [&str; 18] = [
    "accounts",
    "alice",
    "bob",
    "clinic",
    "customer",
    "customers",
    "docs",
    "docs_pkey",
    "email",
    "invoices",
    "orders",
    "orders_pkey",
    "patients",
    "payments",
    "price",
    "products",
    "shop",
    "users",
];

/// One word a line, sorted.
pub(super) fn text() -> Result<String, String> {
    let tree = Tree::read()?;
    let mut words = BTreeSet::new();
    for (path, text) in tree.texts() {
        let is_example = EXAMPLES.iter().any(|example| path.starts_with(example));
        if PAGES.iter().any(|folder| path.starts_with(folder)) && path.ends_with(".md") {
            gather(text, &mut words);
        } else if is_shipped(path) && !is_example {
            for literal in literals(without_tests(text)) {
                gather(&as_read(literal.text), &mut words);
            }
        }
    }
    let lines: Vec<String> = words.into_iter().collect();
    Ok(lines.join("\n") + "\n")
}

fn is_shipped(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with(".rs") && !is_test(path)
}

/// Without what Rust writes in a text and nobody reads: escapes and places for values.
fn as_read(literal: &str) -> String {
    let mut text = String::with_capacity(literal.len());
    let mut chars = literal.chars();
    let mut depth = 0_u32;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let _escaped = chars.next();
                text.push(' ');
            }
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                text.push(' ');
            }
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text
}

/// Takes in each word, and words with dots between them as one too.
fn gather(text: &str, words: &mut BTreeSet<String>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.';
    for run in text.split(|c| !is_part(c)) {
        let run = run.trim_matches('.').to_lowercase();
        let parts: Vec<&str> = run.split('.').collect();
        let is_name = parts.iter().any(|part| NAMES.contains(part));
        let is_whole = parts.iter().all(|part| is_word(part));
        if parts.len() > 1 && is_whole && !is_name && !run.starts_with("public.") {
            words.insert(run.clone());
        }
        let own = parts
            .iter()
            .filter(|part| is_word(part) && !NAMES.contains(part));
        words.extend(own.map(|part| (*part).to_owned()));
    }
}

/// It begins with a letter, and is more than one.
fn is_word(part: &str) -> bool {
    part.len() > 1 && part.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        let mut words = BTreeSet::new();
        gather(text, &mut words);
        words.into_iter().collect()
    }

    #[test]
    fn words_are_told_from_places_for_values_and_from_examples() {
        let text = as_read("pd_lower {lower} is \\\"beyond\\\" {}; see pg_filenode.map");
        let own = words_of(&text);
        let expected = [
            "beyond",
            "is",
            "map",
            "pd_lower",
            "pg_filenode",
            "pg_filenode.map",
            "see",
        ];
        assert_eq!(own, expected);
        assert_eq!(words_of("shop.orders, public.docs"), ["public"]);
    }
}
