//! Sentences, commands and statements: names in them become pseudonyms, words of the program stay.
//!
//! ```text
//! index "docs_pkey" of public.docs, block 7: /srv/pg/base/5/16384 ends there
//!       └ quoted       └ qualified  └ words  └ path
//! ```
//!
//! A name that is also a word of the program, such as a column `value`, is told from it where it is
//! quoted, qualified or follows its kind (`column value`). Elsewhere it stays: nobody can tell it
//! from the sentence around it.

use super::names::{Names, is_system_schema, is_word};
use super::paths;
use super::pseudonyms::Kind;

/// The text with pseudonyms.
pub(super) fn redacted(names: &Names<'_>, text: &str) -> String {
    let mut writer = Writer {
        names,
        text,
        at: 0,
        said: None,
        out: String::with_capacity(text.len()),
    };
    while writer.step() {}
    writer.out
}

struct Writer<'a, 'n> {
    names: &'a Names<'n>,
    text: &'a str,
    at: usize,
    /// The kind that the word before says.
    said: Option<Kind>,
    out: String,
}

impl<'a> Writer<'a, '_> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// What comes next; false at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return false;
        };
        let before = self
            .text
            .get(..self.at)
            .unwrap_or_default()
            .chars()
            .next_back();
        let is_start = !before.is_some_and(is_word);
        if is_start && let Some(len) = self.at_a_start(rest) {
            self.at += len;
            return true;
        }
        if first == '"'
            && let Some(len) = quoted(rest, '"')
        {
            self.quoted(rest.get(..len).unwrap_or_default());
            return true;
        }
        if first == '\''
            && is_start
            && let Some(len) = quoted(rest, '\'')
        {
            self.quoted(rest.get(..len).unwrap_or_default());
            return true;
        }
        self.out.push(first);
        self.at += first.len_utf8();
        if !first.is_whitespace() {
            self.said = None;
        }
        true
    }

    /// What begins where a word may begin; its length.
    fn at_a_start(&mut self, rest: &str) -> Option<usize> {
        if let Some(url) = paths::url_at(rest) {
            self.put(&paths::target(self.names, url));
            return Some(url.len());
        }
        if let Some((name, kind)) = self.names.odd_at(rest) {
            self.put(&self.names.pseudonym(kind, name));
            return Some(name.len());
        }
        let run = run_of(rest, |c| is_word(c) || "./~+@%-=".contains(c));
        let run = run.trim_end_matches(['.', '-', '+', '=', '@', '%']);
        if run.contains('/') && !run.starts_with('-') && !run.contains('=') {
            self.put(&self.path(run));
            return Some(run.len());
        }
        let dotted = dotted_of(rest);
        if dotted.is_empty() {
            return None;
        }
        let is_qualifying = rest
            .get(dotted.len()..)
            .is_some_and(|rest| rest.starts_with(".\""));
        let said = self.said.take();
        let words = if dotted.contains('.') {
            self.dotted(dotted)
        } else if is_qualifying {
            self.names.named(Kind::Schema, dotted)
        } else {
            self.said = Kind::said_by(dotted);
            self.word(dotted, said)
        };
        self.out.push_str(&words);
        Some(dotted.len())
    }

    fn put(&mut self, words: &str) {
        self.out.push_str(words);
        self.said = None;
    }

    /// A path, an LSN, or words with a stroke between them.
    fn path(&self, run: &str) -> String {
        let is_lsn = run.split('/').count() == 2
            && run.chars().any(|c| c.is_ascii_digit())
            && run
                .split('/')
                .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit()));
        let is_words = !run.starts_with(['/', '.', '~'])
            && run
                .split('/')
                .all(|part| self.names.vocabulary.has(part) && self.names.kind_of(part).is_none());
        if is_lsn || is_words {
            return run.to_owned();
        }
        paths::redacted(self.names, run)
    }

    /// `public.docs`, `shop.public.docs`, `18.6`, `pg_filenode.map`, `10.0.0.7`.
    fn dotted(&self, text: &str) -> String {
        let names = self.names;
        let parts: Vec<&str> = text.split('.').collect();
        let is_address = |part: &&str| paths::is_digits(part) && part.parse::<u8>().is_ok();
        if parts.len() == 4 && parts.iter().all(is_address) {
            return names.pseudonym(Kind::Host, text);
        }
        let first = parts.first().copied().unwrap_or_default();
        let is_known = parts.iter().any(|part| names.kind_of(part).is_some());
        let is_program = names.vocabulary.has(text) && !is_known;
        if is_program || is_system_schema(first) || parts.iter().all(|part| is_plain(part)) {
            return text.to_owned();
        }
        let last = parts.len().saturating_sub(1);
        let redacted = parts.iter().enumerate().map(|(at, part)| {
            let guess = match (at, last) {
                (0, 1) => Kind::Schema,
                (1, 1) => Kind::Relation,
                _ => Kind::Name,
            };
            let kind = names.kind_of(part).unwrap_or(guess);
            names.named(kind, part)
        });
        redacted.collect::<Vec<_>>().join(".")
    }

    /// One word, after one that may say what it is.
    fn word(&self, word: &str, said: Option<Kind>) -> String {
        let names = self.names;
        let known = names.kind_of(word);
        let is_program = names.vocabulary.has(word) && (known.is_none() || said.is_none());
        if is_plain(word) || names.is_of_the_system(word) || is_program {
            return word.to_owned();
        }
        names.pseudonym(known.or(said).unwrap_or(Kind::Name), word)
    }

    /// What stands in quotes, with them.
    fn quoted(&mut self, text: &str) {
        let said = self.said.take();
        let mark = text.get(..1).unwrap_or_default();
        let inner = text
            .get(1..text.len().saturating_sub(1))
            .unwrap_or_default();
        let words = self.inside(mark, inner, said);
        self.out.push_str(mark);
        self.out.push_str(&words);
        self.out.push_str(mark);
        self.at += text.len();
    }

    fn inside(&self, mark: &str, inner: &str, said: Option<Kind>) -> String {
        let names = self.names;
        let is_one_word = inner.chars().all(is_word);
        let is_of_all = names.is_of_the_system(inner) || is_locale(inner);
        if inner.is_empty() || is_of_all || is_one_word && is_plain(inner) {
            return inner.to_owned();
        }
        if let Some(url) = paths::url_at(inner).filter(|url| *url == inner) {
            return paths::target(names, url);
        }
        let name = inner.replace("\\\"", "\"").replace("\"\"", "\"");
        if names.kind_of(&name).is_some() {
            return names.pseudonym(Kind::Name, &name);
        }
        let has_blank = inner.contains(char::is_whitespace);
        if inner.contains('/') && (!has_blank || inner.starts_with('/')) {
            return self.path(inner);
        }
        let is_dotted = !inner.starts_with('.') && inner.chars().all(|c| is_word(c) || c == '.');
        if inner.contains('.') && is_dotted {
            return self.dotted(inner);
        }
        if mark == "'" && !is_one_word {
            return redacted(names, inner);
        }
        names.pseudonym(said.unwrap_or(Kind::Name), &name)
    }
}

/// `7`, `0x1f`, `8kB`, `12th`, `16384_fsm`, `XX001`, a checksum; a name that is not quoted begins
/// with a letter.
fn is_plain(word: &str) -> bool {
    let letters = word.chars().filter(|c| !c.is_ascii_digit()).count();
    let is_count = word.starts_with(|c: char| c.is_ascii_digit()) && letters <= 3;
    let is_state = word.len() == 5
        && word.chars().any(|c| c.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    let digits = word.strip_prefix("0x").unwrap_or_default();
    let is_hexadecimal = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    let is_letter = word.chars().count() == 1;
    is_letter || is_count || is_state || is_hexadecimal || paths::is_number(word)
}

/// `de_DE.utf8`, `C.UTF-8`, `und-x-icu`: the machine's name of an order.
fn is_locale(word: &str) -> bool {
    let stem = [".utf8", ".UTF-8", "-x-icu"]
        .iter()
        .find_map(|suffix| word.strip_suffix(suffix));
    let (language, country) = match stem {
        Some(stem) => stem.split_once(['_', '-']).unwrap_or((stem, "")),
        None => return false,
    };
    let letters = |part: &str| part.len() <= 3 && part.chars().all(|c| c.is_ascii_alphabetic());
    letters(language) && letters(country)
}

/// What the text begins with of these characters.
fn run_of(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Words with one dot between them, or one word.
fn dotted_of(text: &str) -> &str {
    let mut len = run_of(text, is_word).len();
    while len > 0 {
        let rest = text.get(len..).and_then(|rest| rest.strip_prefix('.'));
        let more = rest.map_or(0, |rest| run_of(rest, is_word).len());
        if more == 0 {
            break;
        }
        len += 1 + more;
    }
    text.get(..len).unwrap_or_default()
}

/// The length of what stands in quotes here, with them.
fn quoted(text: &str, mark: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == mark && !is_escaped {
            let after = text.get(at + 1..)?.chars().next();
            let ends = mark == '"' || !after.is_some_and(is_word);
            return ends.then_some(at + 1);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}
