//! A rule: one way in which bytes can be wrong, with its name and its page of the manual.
//!
//! The page is `rules/<name>.md` of the crate that finds it. Its front matter has name, a former
//! name where there is one, severity and summary, each on one line and in this order; below stand
//! the [`SECTIONS`], one line a paragraph. It is read when the program is compiled.

use serde::{Deserialize, Serialize};

/// How bad a finding is. The order is from worst to mildest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Bytes contradict the format or each other: data is or may be lost.
    Damage,
    /// Legal, but somebody should know before it hurts.
    Warning,
    /// Worth saying, needs nothing done.
    Note,
}

impl Severity {
    /// `damage`, `warning` or `note`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Damage => "damage",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// What a check can say. The name is kebab-case, names the defect and never changes.
#[derive(Debug)]
pub struct Rule {
    /// `lower-beyond-upper`.
    pub name: &'static str,
    /// The name that it had before: whoever kept it still finds the rule.
    pub formerly: Option<&'static str>,
    /// Severity of its findings.
    pub severity: Severity,
    /// One line for lists.
    pub summary: &'static str,
    /// The manual, in Markdown, in [`SECTIONS`].
    pub explain: &'static str,
}

/// The sections of every page, in this order.
pub const SECTIONS: [&str; 5] = [
    "What it does",
    "Why it matters",
    "Example",
    "What the server and amcheck say",
    "What to do",
];

impl Rule {
    /// The rule of a page, for `include_str!`: a page that is not written as the module says does
    /// not compile.
    pub const fn from_page(page: &'static str) -> Rule {
        let (name, page) = line(after("---\nname: ", page));
        let (formerly, page) = if begins_with("formerly: ", page) {
            let (former, rest) = line(after("formerly: ", page));
            (Some(former), rest)
        } else {
            (None, page)
        };
        let (severity, page) = line(after("severity: ", page));
        let (summary, page) = line(after("summary: ", page));
        Rule {
            name,
            formerly,
            severity: match severity.as_bytes() {
                b"damage" => Severity::Damage,
                b"warning" => Severity::Warning,
                b"note" => Severity::Note,
                _ => panic!("a severity is damage, warning or note"),
            },
            summary,
            explain: after("---\n\n", page).trim_ascii_end(),
        }
    }

    /// The rule has this name, or had it once.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.formerly == Some(name)
    }
}

/// The rest of a text that begins with `head`.
const fn after(head: &str, text: &'static str) -> &'static str {
    assert!(
        begins_with(head, text),
        "a page has name, severity and summary, then an empty line"
    );
    text.split_at(head.len()).1
}

const fn begins_with(head: &str, text: &str) -> bool {
    let (mut found, mut wanted) = (text.as_bytes(), head.as_bytes());
    while let ([byte, more @ ..], [other, others @ ..]) = (found, wanted) {
        if *byte != *other {
            return false;
        }
        (found, wanted) = (more, others);
    }
    wanted.is_empty()
}

/// The first line of a text, and what follows it.
const fn line(text: &'static str) -> (&'static str, &'static str) {
    let mut rest = text.as_bytes();
    while let [byte, more @ ..] = rest {
        if *byte == b'\n' {
            let (line, _) = text.split_at(text.len() - rest.len());
            let (_, rest) = text.split_at(text.len() - more.len());
            return (line, rest);
        }
        rest = more;
    }
    panic!("a page does not end within its front matter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_a_rule() {
        const RULE: Rule = Rule::from_page(
            "---\nname: a-b\nseverity: note\nsummary: a is `b`\n---\n\n## What it does\n\nä\n",
        );
        assert_eq!((RULE.name, RULE.severity), ("a-b", Severity::Note));
        assert_eq!((RULE.summary, RULE.formerly), ("a is `b`", None));
        assert_eq!(RULE.explain, "## What it does\n\nä");
    }

    #[test]
    fn a_former_name_is_known() {
        const RULE: Rule =
            Rule::from_page("---\nname: a-b\nformerly: c\nseverity: note\nsummary: a\n---\n\nb\n");
        assert!(["a-b", "c"].into_iter().all(|name| RULE.is_named(name)));
        assert!(!RULE.is_named("a"));
    }
}
