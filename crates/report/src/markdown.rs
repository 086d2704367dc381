//! The little Markdown that manuals use: headings, paragraphs, lists, code. What a line is, and
//! what its words are; pages and terminals write it each in its own way.

/// What a line of a manual is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line<'a> {
    /// Code begins or ends.
    Fence,
    /// Nothing.
    Empty,
    /// A title of this depth.
    Heading(usize, &'a str),
    /// An item of a list, behind its number where the list has numbers.
    Item(Option<&'a str>, &'a str),
    /// More words of a paragraph or of an item.
    Words(&'a str),
}

impl<'a> Line<'a> {
    /// What a line outside of code is.
    pub(crate) fn of(line: &'a str) -> Self {
        let words = line.trim();
        if words.starts_with("```") {
            return Line::Fence;
        }
        if words.is_empty() {
            return Line::Empty;
        }
        let title = words.trim_start_matches('#');
        if title.len() < words.len() {
            return Line::Heading(words.len() - title.len(), title.trim());
        }
        item(words).unwrap_or(Line::Words(words))
    }
}

fn item(words: &str) -> Option<Line<'_>> {
    let bullet = words.strip_prefix("* ").or(words.strip_prefix("- "));
    if let Some(item) = bullet {
        return Some(Line::Item(None, item));
    }
    let (number, item) = words.split_once(". ")?;
    let is_number = number.len() <= 2 && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some(Line::Item(Some(number), item))
}

/// How words within a line are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// As any.
    Plain,
    /// Between backquotes.
    Code,
    /// Between pairs of stars.
    Strong,
}

/// The words of a line. A mark without its second one is a letter as any other.
pub(crate) fn spans(words: &str) -> Vec<(Style, &str)> {
    let mut spans = Vec::new();
    let mut rest = words;
    while let Some((before, code, after)) = between(rest, "`") {
        stars(before, &mut spans);
        spans.push((Style::Code, code));
        rest = after;
    }
    stars(rest, &mut spans);
    spans
}

fn stars<'a>(words: &'a str, spans: &mut Vec<(Style, &'a str)>) {
    let mut rest = words;
    while let Some((before, strong, after)) = between(rest, "**") {
        spans.push((Style::Plain, before));
        spans.push((Style::Strong, strong));
        rest = after;
    }
    spans.push((Style::Plain, rest));
}

fn between<'a>(words: &'a str, mark: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = words.split_once(mark)?;
    let (inner, after) = rest.split_once(mark)?;
    Some((before, inner, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_without_its_second_one_is_a_letter() {
        let all = spans("a `b` **c** `d");
        let shown: Vec<_> = all.iter().filter(|(_, words)| !words.is_empty()).collect();
        assert_eq!(
            shown,
            [
                &(Style::Plain, "a "),
                &(Style::Code, "b"),
                &(Style::Plain, " "),
                &(Style::Strong, "c"),
                &(Style::Plain, " `d"),
            ]
        );
    }

    #[test]
    fn lines_are_what_their_first_letters_say() {
        assert_eq!(Line::of("## A b"), Line::Heading(2, "A b"));
        assert_eq!(Line::of("- a"), Line::Item(None, "a"));
        assert_eq!(Line::of("12. a"), Line::Item(Some("12"), "a"));
        assert_eq!(Line::of("in 2019. a"), Line::Words("in 2019. a"));
    }
}
