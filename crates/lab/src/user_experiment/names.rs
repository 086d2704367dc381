//! `{axis}` in SQL stands for the axis's value; other braces are left alone. And SQL taken apart into statements.

use crate::cell::Point;

/// The text with the values of the axes.
pub(super) fn fill_in(sql: &str, point: &Point) -> String {
    point.iter().fold(sql.to_owned(), |sql, (axis, value)| {
        sql.replace(&format!("{{{axis}}}"), value)
    })
}

/// Whether `{axis}` stands in the text.
pub(super) fn named_in(sql: &str, axis: &str) -> bool {
    sql.contains(&format!("{{{axis}}}"))
}

/// The statements of a text, parted at semicolons outside of quotes, dollar quotes and comments.
pub fn statements(sql: &str) -> Vec<String> {
    let (mut statements, mut rest, mut own) = (Vec::new(), sql, String::new());
    while let Some((part, taken, left)) = next_part(rest) {
        rest = left;
        match part {
            Part::Semicolon => statements.push(std::mem::take(&mut own)),
            Part::Comment | Part::Blank | Part::Text => own.push_str(taken),
        }
    }
    statements.push(own);
    statements.retain(|statement| !statement.trim().is_empty());
    statements
}

/// The text without what a server passes over: comments go away, and blanks outside of quotes are one blank. Hints stand in
/// comments and stay.
pub(super) fn without_comments(sql: &str) -> String {
    let (mut plain, mut rest) = (String::new(), sql);
    while let Some((part, taken, left)) = next_part(rest) {
        rest = left;
        match part {
            Part::Comment if taken.starts_with("/*+") => plain.push_str(taken),
            Part::Comment | Part::Blank if plain.ends_with(' ') => {}
            Part::Comment | Part::Blank => plain.push(' '),
            Part::Semicolon | Part::Text => plain.push_str(taken),
        }
    }
    plain.trim().to_owned()
}

/// What a piece of SQL is.
enum Part {
    /// The end of a statement.
    Semicolon,
    /// To the end of its line, or in `/* */`.
    Comment,
    /// One blank.
    Blank,
    /// One character, or all of a quoted part.
    Text,
}

/// The piece with which a text begins, and what follows it; `None` at the end.
fn next_part(text: &str) -> Option<(Part, &str, &str)> {
    let first = text.chars().next()?;
    let (part, length) = match first {
        ';' => (Part::Semicolon, 1),
        '\'' | '"' => (Part::Text, through(text, 1, first.encode_utf8(&mut [0; 4]))),
        '-' if text.starts_with("--") => (Part::Comment, through(text, 2, "\n")),
        '/' if text.starts_with("/*") => (Part::Comment, through(text, 2, "*/")),
        '$' => {
            let quoted = dollar_tag(text).map(|tag| through(text, tag.len(), tag));
            (Part::Text, quoted.unwrap_or(1))
        }
        blank if blank.is_whitespace() => (Part::Blank, blank.len_utf8()),
        other => (Part::Text, other.len_utf8()),
    };
    let (taken, left) = text.split_at_checked(length).unwrap_or((text, ""));
    Some((part, taken, left))
}

/// The length of a quoted part: what opens it, and everything through its end.
fn through(text: &str, opening: usize, end: &str) -> usize {
    let inside = text.get(opening..).unwrap_or_default();
    inside
        .find(end)
        .map_or(text.len(), |at| opening + at + end.len())
}

/// `$$` or `$word$` at the beginning of the text.
fn dollar_tag(text: &str) -> Option<&str> {
    let inside = text.get(1..)?;
    let end = inside.find('$')?;
    let word = inside.get(..end)?;
    let plain = word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let digit = word.chars().next().is_some_and(|c| c.is_ascii_digit());
    (plain && !digit).then(|| text.get(..end + 2)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_axes_are_filled_in() {
        let point = Point::from([("rows".to_owned(), "7".to_owned())]);
        let sql = fill_in("SELECT '{1,2}'::int[], {rows}, {other}", &point);
        assert_eq!(sql, "SELECT '{1,2}'::int[], 7, {other}");
    }

    #[test]
    fn comments_and_blanks_are_passed_over_outside_of_quotes_only() {
        let sql = "SELECT  'a  -- b' -- c\n  /* d */ , $$ /* e */ $$\n";
        assert_eq!(without_comments(sql), "SELECT 'a  -- b' , $$ /* e */ $$");
        let hint = "/*+ SeqScan(t) */ SELECT 1";
        assert_eq!(without_comments(hint), hint);
    }

    #[test]
    fn semicolons_part_statements_outside_of_quotes_only() {
        let sql = "SELECT 'a;b', \"c;d\"; DO $x$ BEGIN; END $x$; -- a; b\nVACUUM; /* ; */ ;";
        let parted = statements(sql);
        assert_eq!(parted.len(), 4, "{parted:?}");
        assert_eq!(parted[1].trim(), "DO $x$ BEGIN; END $x$");
        assert_eq!(statements("SELECT $1; SELECT 'never ended").len(), 2);
    }
}
