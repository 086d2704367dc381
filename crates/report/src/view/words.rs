//! Words and how they look.

use pgclinic_model::Severity;
use pgclinic_model::plan::Safety;

use super::Tone;
use crate::words as say;

/// Where something is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    /// Everywhere.
    Both,
    /// On a page only.
    Page,
    /// In a terminal only.
    Terminal,
}

impl Medium {
    /// What is marked with this medium is said in `other`.
    pub(crate) fn is_in(self, other: Medium) -> bool {
        self == Medium::Both || self == other
    }
}

/// How words look.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Look {
    /// As any text.
    Plain,
    /// A name.
    Strong,
    /// To be read by a machine.
    Code,
    /// What a server says.
    Server,
    /// An aside.
    Quiet,
    /// Where something is.
    Place,
    /// A state that one should see.
    State,
    /// The first words of what is closed.
    Preview,
    /// Wrong.
    Wrong,
    /// Right.
    Right,
    /// A severity.
    Badge(Severity),
    /// How sure a cure is.
    Safety(Safety),
    /// A verdict of a tone, in small.
    Tag(Tone),
    /// The name of a rule, which leads to its manual.
    Rule,
    /// Leads somewhere on the page or to a file beside it; the target was found safe.
    Link(String),
    /// How much of the largest, drawn; the words are its value.
    Share(f64),
    /// A line through figures of moments that follow each other; the words say what it is.
    Spark(Vec<f64>),
    /// No words, but a place that links lead to.
    Target,
}

/// Words of one look.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Span {
    /// The words.
    pub(crate) text: String,
    /// How they look.
    pub(crate) look: Look,
    /// Where they are said.
    pub(crate) medium: Medium,
    /// What a page says when pointed at.
    pub(crate) tip: String,
}

/// Words of several looks, one after the other.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<Span>);

/// Plain words.
pub(crate) fn words(text: impl AsRef<str>) -> Words {
    Words::default().plain(text)
}

/// A number, with its thousands apart.
pub(crate) fn number(number: u64) -> Words {
    words(say::count(number))
}

impl Words {
    /// With more words.
    pub(crate) fn and(mut self, look: Look, text: impl AsRef<str>) -> Self {
        self.0.push(Span {
            text: text.as_ref().to_owned(),
            look,
            medium: Medium::Both,
            tip: String::new(),
        });
        self
    }

    /// With more plain words.
    pub(crate) fn plain(self, text: impl AsRef<str>) -> Self {
        self.and(Look::Plain, text)
    }

    /// With a name.
    pub(crate) fn strong(self, text: impl AsRef<str>) -> Self {
        self.and(Look::Strong, text)
    }

    /// With code.
    pub(crate) fn code(self, text: impl AsRef<str>) -> Self {
        self.and(Look::Code, text)
    }

    /// With an aside.
    pub(crate) fn quiet(self, text: impl AsRef<str>) -> Self {
        self.and(Look::Quiet, text)
    }

    /// With plain words that a terminal leaves out.
    pub(crate) fn on_page(self, text: impl AsRef<str>) -> Self {
        self.plain(text).only(Medium::Page)
    }

    /// With plain words that a page leaves out.
    pub(crate) fn in_terminal(self, text: impl AsRef<str>) -> Self {
        self.plain(text).only(Medium::Terminal)
    }

    /// The last words are said in one medium.
    pub(crate) fn only(mut self, medium: Medium) -> Self {
        if let Some(last) = self.0.last_mut() {
            last.medium = medium;
        }
        self
    }

    /// The last words say more when pointed at.
    pub(crate) fn tip(mut self, tip: impl AsRef<str>) -> Self {
        if let Some(last) = self.0.last_mut() {
            tip.as_ref().clone_into(&mut last.tip);
        }
        self
    }

    /// With all of other words.
    pub(crate) fn then(mut self, other: impl Into<Words>) -> Self {
        self.0.extend(other.into().0);
        self
    }

    /// A dash in a terminal, nothing on a page.
    pub(crate) fn none() -> Self {
        Words::default().in_terminal("-")
    }

    /// The bare text that a page has of them.
    pub(crate) fn on_a_page(&self) -> String {
        let spans = self.0.iter().filter(|span| span.medium.is_in(Medium::Page));
        spans.map(|span| span.text.as_str()).collect()
    }

    /// Nothing is said in any medium.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|span| span.text.is_empty())
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        words(text)
    }
}

impl From<&String> for Words {
    fn from(text: &String) -> Self {
        words(text)
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        words(text)
    }
}
