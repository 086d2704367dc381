//! Comments are at most 100 columns wide, as code is. The stable rustfmt has no setting for that.

use super::literals::literals;
use super::{Complaint, Count};
use crate::repository::{self, Tree};
use crate::shell::at;
use crate::task::Outcome;

pub(super) const COUNT: Count = Count {
    why: "a comment is read beside the code, in two windows on one screen",
    places,
};

const COLUMNS_MAX: usize = 100;

/// Lines of a comment that flow into each other.
struct Paragraph<'a> {
    /// Of its first line in the file, from 0.
    first: usize,
    count: usize,
    /// Blanks and slashes before each line.
    prefix: &'a str,
    /// Blanks below the mark of a list.
    hanging: usize,
    words: Vec<&'a str>,
    /// Lines that are too wide.
    wide: Vec<usize>,
}

fn places(tree: &Tree) -> Vec<(String, Vec<Complaint>)> {
    let wide = tree.rust().flat_map(|(path, text)| {
        let lines = paragraphs(text).into_iter().flat_map(|own| own.wide);
        lines.map(move |line| Complaint::line(path, line + 1, "is more than 100 columns wide"))
    });
    vec![("wide comments".to_owned(), wide.collect())]
}

/// Wraps the wide comments of every file whose path begins so.
pub(super) fn wrap_below(tree: &Tree, start: &str) -> Outcome {
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with(start)) {
        let wrapped = wrapped(text);
        if wrapped != text {
            let path = repository::root().join(path);
            std::fs::write(&path, wrapped).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// The text with each paragraph filled again of which a line is too wide.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let wide = paragraphs(text);
    let wide = wide.into_iter().filter(|own| !own.wide.is_empty());
    for paragraph in wide.collect::<Vec<_>>().into_iter().rev() {
        let filled = paragraph.filled();
        lines.splice(paragraph.first..paragraph.first + paragraph.count, filled);
    }
    let mut wrapped = lines.join("\n");
    if text.ends_with('\n') {
        wrapped.push('\n');
    }
    wrapped
}

impl Paragraph<'_> {
    fn filled(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = String::new();
        for word in &self.words {
            let width = self.prefix.chars().count() + 1 + line.chars().count() + 1;
            if !line.trim().is_empty() && width + word.chars().count() > COLUMNS_MAX {
                lines.push(format!("{} {line}", self.prefix));
                line = " ".repeat(self.hanging);
            }
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(format!("{} {line}", self.prefix));
        lines
    }
}

/// The paragraphs of all comments that stand on lines of their own. Drawings, tables, code and
/// headings are none.
fn paragraphs(text: &str) -> Vec<Paragraph<'_>> {
    let in_literals = lines_of_literals(text);
    let mut found: Vec<Paragraph<'_>> = Vec::new();
    let mut is_fenced = false;
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let comment = split(line).filter(|_| !in_literals.contains(&at));
        let Some((prefix, body)) = comment else {
            (is_fenced, open) = (false, false);
            continue;
        };
        if body.trim_start().starts_with("```") {
            (is_fenced, open) = (!is_fenced, false);
            continue;
        }
        if is_fenced || !flows(body) {
            open = false;
            continue;
        }
        let mark = mark_of_list(body);
        let goes_on = open && mark == 0 && found.last().is_some_and(|own| own.prefix == prefix);
        if !goes_on {
            found.push(Paragraph {
                first: at,
                count: 0,
                prefix,
                hanging: mark,
                words: Vec::new(),
                wide: Vec::new(),
            });
        }
        open = true;
        if let Some(own) = found.last_mut() {
            own.count += 1;
            own.words.extend(body.split_whitespace());
            if line.chars().count() > COLUMNS_MAX && body.split_whitespace().count() > 1 {
                own.wide.push(at);
            }
        }
    }
    found
}

/// Lines, from 0, that begin inside a literal.
fn lines_of_literals(text: &str) -> std::collections::BTreeSet<usize> {
    let many = literals(text).into_iter();
    many.flat_map(|own| own.line..own.line + own.text.matches('\n').count())
        .collect()
}

/// The blanks and slashes of a line that is a comment, and the rest.
fn split(line: &str) -> Option<(&str, &str)> {
    let indent = line.len() - line.trim_start().len();
    let rest = line.get(indent..)?;
    let mark = ["///", "//!", "//"]
        .into_iter()
        .find(|mark| rest.starts_with(mark))?;
    line.split_at_checked(indent + mark.len())
}

/// Is it prose, that may be broken anywhere?
fn flows(body: &str) -> bool {
    let inner = body.strip_prefix(' ').unwrap_or(body);
    let is_set_apart = inner.trim().is_empty()
        || inner.starts_with(['#', '|', '>', '['])
        || inner.starts_with("    ")
        || inner.starts_with('/');
    !is_set_apart && !inner.trim_start().contains("  ")
}

/// The width of `* `, `- ` or `1. ` at the beginning, with the blanks before it.
fn mark_of_list(body: &str) -> usize {
    let inner = body.strip_prefix(' ').unwrap_or(body);
    let blanks = inner.len() - inner.trim_start().len();
    let rest = inner.trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_numbered = digits > 0
        && rest
            .get(digits..)
            .is_some_and(|rest| rest.starts_with(". "));
    if rest.starts_with("* ") || rest.starts_with("- ") {
        blanks + 2
    } else if is_numbered {
        blanks + digits + 2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of so many columns, in words of nine letters.
    fn line(start: &str, columns: usize) -> String {
        let mut line = start.to_owned();
        while line.len() + 10 <= columns {
            line.push_str(" ninechars");
        }
        line
    }

    #[test]
    fn a_wide_paragraph_is_filled_again_and_its_neighbours_stay() {
        let text = format!(
            "//! Head.\n//!\n{}\n//! rest\n//!\n//! ```text\n{}\n//! ```\nfn f() {{}}\n",
            line("//!", 113),
            line("//!", 123),
        );
        let expected = format!(
            "//! Head.\n//!\n{}\n//! ninechars ninechars rest\n//!\n//! ```text\n{}\n//! ```\nfn f() {{}}\n",
            line("//!", 93),
            line("//!", 123),
        );
        assert_eq!(wrapped(&text), expected);
        assert_eq!(wrapped(&expected), expected);
    }

    #[test]
    fn an_item_of_a_list_hangs_below_its_mark() {
        let text = format!(
            "    /// * one\n{}\n    /// * three\n",
            line("    /// * two", 122)
        );
        let filled = wrapped(&text);
        let lines: Vec<&str> = filled.lines().collect();
        assert_eq!(lines.len(), 4, "{filled}");
        assert!(lines[2].starts_with("    ///   ninechars"), "{filled}");
        assert!(filled.lines().all(|line| line.len() <= COLUMNS_MAX));
    }

    #[test]
    fn tables_addresses_and_literals_are_left_alone() {
        let table = line("// a   b", 130);
        let address = format!("// https://{}", "x".repeat(120));
        let literal = format!("const A: &str = \"\n{}\n\";", line("//", 130));
        let text = format!("{table}\n{address}\n{literal}\n");
        assert_eq!(wrapped(&text), text);
        let found = places(&Tree::of(&[("a.rs", &text)]));
        assert_eq!(found[0].1, []);
    }
}
