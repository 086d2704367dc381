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
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ';' => {
                statements.push(std::mem::take(&mut own));
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            '\'' | '"' => through(rest, 1, first.encode_utf8(&mut [0; 4])),
            '-' if rest.starts_with("--") => through(rest, 2, "\n"),
            '/' if rest.starts_with("/*") => through(rest, 2, "*/"),
            '$' => dollar_tag(rest).map_or(1, |tag| through(rest, tag.len(), tag)),
            other => other.len_utf8(),
        };
        let (taken, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
        own.push_str(taken);
        rest = left;
    }
    statements.push(own);
    statements.retain(|statement| !statement.trim().is_empty());
    statements
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
    fn semicolons_part_statements_outside_of_quotes_only() {
        let sql = "SELECT 'a;b', \"c;d\"; DO $x$ BEGIN; END $x$; -- a; b\nVACUUM; /* ; */ ;";
        let parted = statements(sql);
        assert_eq!(parted.len(), 4, "{parted:?}");
        assert_eq!(parted[1].trim(), "DO $x$ BEGIN; END $x$");
        assert_eq!(statements("SELECT $1; SELECT 'never ended").len(), 2);
    }
}
