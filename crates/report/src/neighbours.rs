//! Pages that lie beside the one that is written, known by their heads.

use crate::formats::html::escape::unescaped;
use crate::view::permalinks::link_to;
use crate::view::{Block, Look, View, Words, list, on_page, section};

/// What the head of a page begins with, before what wrote it and before what it is about.
pub(crate) const GENERATOR: &str = "<meta name=generator content=\"";
pub(crate) const SUBJECT: &str = "<meta name=subject content=\"";
/// The same before when it was made.
pub(crate) const STARTED: &str = "<meta name=date content=\"";

/// The page of another report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbour {
    link: String,
    file: String,
    command: String,
    subject: String,
    title: String,
    /// Pages of older versions do not say it.
    started: Option<String>,
}

impl Neighbour {
    /// The page in `file`, a path from the page that is written, by the first bytes of it; nothing
    /// of a page that no report is.
    pub fn of_page(file: &str, head: &str) -> Option<Self> {
        let between = |start: &str, end: char| {
            let (_, rest) = head.split_once(start)?;
            Some(unescaped(rest.split_once(end)?.0))
        };
        let command = between(GENERATOR, '"')?;
        command.starts_with("pgclinic ").then_some(Neighbour {
            link: link_to(file),
            file: file.to_owned(),
            command,
            subject: between(SUBJECT, '"')?,
            title: between("<title>", '<')?,
            started: between(STARTED, '"'),
        })
    }

    /// Its title, with what it is about where the title does not say it.
    fn what(&self) -> String {
        if self.title.contains(&self.subject) {
            self.title.clone()
        } else {
            format!("{} of {}", self.title, self.subject)
        }
    }

    /// One of both is about what the other is about, or about a comparison with it.
    fn is_of(&self, subject: &str) -> bool {
        let names = |whole: &str, part: &str| whole.split(' ').any(|word| word == part);
        self.subject == subject || names(&self.subject, subject) || names(subject, &self.subject)
    }
}

/// Links to what lies beside a page and is about the same.
pub(crate) fn links(view: &View, all: &[Neighbour]) -> Option<Block> {
    let same = all.iter().filter(|own| own.is_of(&view.subject));
    let items = same.map(|own| {
        let link = Look::Link(own.link.clone());
        let words = Words::default().and(link, &own.file).plain(format!(
            "  {}: {}",
            own.command,
            own.what()
        ));
        match &own.started {
            Some(started) => words.quiet(format!(", {started}")),
            None => words,
        }
    });
    let listed = list(items);
    (!listed.is_empty()).then(|| on_page(vec![section("Reports beside this one").of(listed)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_by_its_head_and_any_other_is_none() {
        let head = format!(
            "<html>{GENERATOR}pgclinic check\">{SUBJECT}/srv/a &amp; b\"><title>DAMAGED: /srv/a &amp; b</title>"
        );
        let known = Neighbour::of_page("a check:1.html", &head).expect("a report");
        assert_eq!(known.link, "a%20check%3A1.html");
        assert_eq!(known.what(), "DAMAGED: /srv/a & b");
        assert_eq!(known.started, None);
        assert!(known.is_of("/srv/a & b") && !known.is_of("/srv/a & c"));
        let other = head.replace("pgclinic check", "javadoc");
        assert_eq!(Neighbour::of_page("a.html", &other), None);
        assert_eq!(Neighbour::of_page("a.html", "<title>x</title>"), None);
    }
}
