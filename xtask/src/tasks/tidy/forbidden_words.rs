//! The words of users: PostgreSQL's own, and one word for one thing. What users read is the
//! documentation, the messages and the help.

use super::code::{is_test, without_tests};
use super::literals::literals;
use super::{Complaint, Count};
use crate::repository::Tree;

pub(super) const COUNT: Count = Count {
    why: "users read PostgreSQL's words, and one word for one thing",
    places,
};

/// A word that users should not read.
struct Word {
    /// Its forms; the first is its name. Of several words each is a token.
    forms: &'static [&'static str],
    /// What is said instead.
    say: &'static str,
}

const fn word(forms: &'static [&'static str], say: &'static str) -> Word {
    Word { forms, say }
}

const WORDS: &[Word] = &[
    word(&["folder", "folders"], "directory"),
    word(&["doubled"], "duplicate"),
    word(&["cut"], "truncated"),
    word(&["packed"], "compressed"),
    word(&["unpacked"], "decompressed, extracted"),
    word(&["long value", "long values"], "TOASTed value, TOAST value"),
    word(&["behind"], "after, past the end of"),
    word(&["anew"], "again"),
    word(&["told", "tells", "tell"], "reported, logged, listed"),
    word(&["said"], "reported, logged, listed"),
    word(
        &["held against", "hold against", "holds against"],
        "compared with, checked against",
    ),
    word(
        &["server at work", "servers at work", "be at work"],
        "a running server, while the server runs",
    ),
    word(&["person", "persons"], "user, operator"),
    word(&["form of output"], "output format"),
    word(&["looked at", "look at", "looks at"], "checked, examined"),
    word(&["story", "stories"], "root cause"),
    word(&["row number", "row numbers"], "TID (ctid)"),
    word(
        &["page carries checksum", "its bytes ask for"],
        "stored checksum N does not match computed checksum M",
    ),
    word(
        &["replay may mend"],
        "recovery may fix this; not counted as damage",
    ),
    word(
        &[
            "is no file",
            "is none",
            "is no number",
            "is no size",
            "is no rate",
        ],
        "not a regular file, unused, absent",
    ),
    word(
        &["status file", "status files"],
        "SLRU file (pg_xact, pg_multixact)",
    ),
    word(&["wound", "wounds"], "damage"),
    word(&["foretold", "foretells"], "expected, predicted"),
];

/// Files whose doc comments become the text of `--help`.
const HELP: &[&str] = &[
    "crates/cli/src/args.rs",
    "crates/cli/src/commands/",
    "crates/cli/src/exit.rs",
    "crates/cli/src/output.rs",
];

fn places(tree: &Tree) -> Vec<(String, Vec<Complaint>)> {
    let mut found: Vec<Vec<Complaint>> = WORDS.iter().map(|_| Vec::new()).collect();
    for (path, text) in tree.texts() {
        for tokens in read_by_users(path, text) {
            for (word, places) in WORDS.iter().zip(&mut found) {
                places.extend(hits(path, &tokens, word));
            }
        }
    }
    let names = WORDS.iter().map(|word| format!("word {}", word.forms[0]));
    names.zip(found).collect()
}

/// The texts of a file that users read, each as its tokens.
fn read_by_users(path: &str, text: &str) -> Vec<Vec<(String, usize)>> {
    if is_documentation(path) {
        return vec![tokens(text, 1)];
    }
    let is_program = path.starts_with("crates/") && path.ends_with(".rs") && !is_test(path);
    if !is_program || path.starts_with("crates/testkit/") {
        return Vec::new();
    }
    let shipped = without_tests(text);
    let messages = literals(shipped).into_iter();
    let mut texts: Vec<_> = messages
        .map(|literal| tokens(literal.text, literal.line))
        .collect();
    if HELP.iter().any(|start| path.starts_with(start)) {
        let lines = shipped.lines().enumerate();
        let docs = lines.filter_map(|(at, line)| {
            let doc = line.trim_start().strip_prefix("///")?;
            Some(tokens(doc, at + 1))
        });
        texts.push(docs.flatten().collect());
    }
    texts
}

fn is_documentation(path: &str) -> bool {
    let starts = ["docs/", "changelog/", "crates/", ".github/"];
    let files = ["README.md", "SECURITY.md", "CHANGELOG.md"];
    let is_ours = starts.iter().any(|start| path.starts_with(start)) || files.contains(&path);
    path.ends_with(".md") && is_ours && !path.starts_with("docs/adr/")
}

/// Words in lower case with their lines. A hyphen or an underscore inside makes one word of two, as
/// in `--data-folder`.
fn tokens(text: &str, first_line: usize) -> Vec<(String, usize)> {
    let mut tokens: Vec<(String, usize)> = Vec::new();
    let mut line = first_line;
    let mut word = String::new();
    let mut chars = text.chars();
    loop {
        let next = chars.next();
        match next {
            Some(c) if c.is_alphanumeric() || "-_'".contains(c) => {
                word.extend(c.to_lowercase());
                continue;
            }
            _ => {}
        }
        let whole = word.trim_matches(['-', '\'']);
        if !whole.is_empty() {
            tokens.push((whole.to_owned(), line));
        }
        word.clear();
        match next {
            None => return tokens,
            Some('\n') => line += 1,
            // The letter of `\n` in a literal is no letter.
            Some('\\') => {
                if chars.next() == Some('\n') {
                    line += 1;
                }
            }
            Some(_) => {}
        }
    }
}

fn hits(path: &str, tokens: &[(String, usize)], word: &Word) -> Vec<Complaint> {
    let mut hits = Vec::new();
    for form in word.forms {
        let wanted: Vec<&str> = form.split(' ').collect();
        for run in tokens.windows(wanted.len()) {
            let is_hit = run
                .iter()
                .zip(&wanted)
                .all(|((token, _), own)| token == own);
            let Some((_, line)) = run.first().filter(|_| is_hit) else {
                continue;
            };
            let what = format!("{form:?}; users read: {}", word.say);
            hits.push(Complaint::line(path, *line, what));
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(name: &str, files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let found = places(&Tree::of(files));
        let own = found.into_iter().find(|(own, _)| own == name);
        let (_, places) = own.expect("a name that is counted");
        places.into_iter().map(|c| (c.path, c.line)).collect()
    }

    #[test]
    fn messages_help_and_pages_are_read_and_code_is_not() {
        let page = "A directory.\nTwo Folders, one --data-folder.\n";
        let code = "/// A folder.\nfn folder() { say(\"no\\nfolder\"); } // folder\n#[cfg(test)]\nmod tests { const A: &str = \"folder\"; }\n";
        let found = lines_of(
            "word folder",
            &[
                ("docs/guide/a.md", page),
                ("docs/adr/2026-01-01-a.md", page),
                ("crates/check/src/a.rs", code),
                ("crates/cli/src/args.rs", code),
            ],
        );
        let expected = [
            ("docs/guide/a.md", 2),
            ("crates/check/src/a.rs", 2),
            ("crates/cli/src/args.rs", 2),
            ("crates/cli/src/args.rs", 1),
        ];
        let expected: Vec<_> = expected.map(|(path, line)| (path.to_owned(), line)).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn several_words_are_found_across_the_end_of_a_line() {
        let page = "It was held\nagainst it; a TID is not\na row-number.\n";
        let files = [("README.md", page)];
        assert_eq!(
            lines_of("word held against", &files),
            [("README.md".to_owned(), 1)]
        );
        assert_eq!(lines_of("word row number", &files), []);
    }
}
