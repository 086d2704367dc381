//! Parts of text that count.
//!
//! Truth: `varchar.c`, `name.c`.

use std::cmp::Ordering;

/// `char(n)` without the blanks it was filled up with.
pub(super) fn without_blanks(value: &[u8]) -> &[u8] {
    let kept = value.iter().rposition(|&byte| byte != b' ');
    value
        .get(..kept.map_or(0, |last| last + 1))
        .unwrap_or(value)
}

/// Two of type `name`, each as a table keeps it (64 bytes, filled with zeros) or as an index does
/// (up to a zero).
pub(super) fn compare_names<'v>(a: &'v [u8], b: &'v [u8]) -> Ordering {
    let length = a.len().max(b.len());
    let filled = |value: &'v [u8]| value.iter().chain(std::iter::repeat(&0_u8)).take(length);
    let mut pairs = filled(a).zip(filled(b));
    let parting = pairs.find(|(a, b)| a != b || **a == 0);
    parting.map_or(Ordering::Equal, |(a, b)| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_its_first_zero() {
        assert_eq!(compare_names(b"ab", b"ab\0\0"), Ordering::Equal);
        assert_eq!(compare_names(b"ab\0x", b"ab\0y"), Ordering::Equal);
        assert_eq!(compare_names(b"a", b"ab\0"), Ordering::Less);
        assert_eq!(compare_names(b"b", b"ab"), Ordering::Greater);
        assert_eq!(compare_names(b"", b"\0"), Ordering::Equal);
    }
}
