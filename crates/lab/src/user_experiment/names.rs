//! `{axis}` in SQL stands for the axis's value; other braces are left alone.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_axes_are_filled_in() {
        let point = Point::from([("rows".to_owned(), "7".to_owned())]);
        let sql = fill_in("SELECT '{1,2}'::int[], {rows}, {other}", &point);
        assert_eq!(sql, "SELECT '{1,2}'::int[], 7, {other}");
    }
}
