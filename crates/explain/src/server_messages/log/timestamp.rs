//! Times as prefixes have them: only found, not computed with, since a log is in its own order.

/// Formats of what `log_line_prefix` writes for `%m` and `%t`, and syslog: digits as `9`, letters
/// as `a`.
const SHAPES: &[&str] = &[
    "9999-99-99 99:99:99",
    "9999-99-99T99:99:99",
    "aaa 99 99:99:99",
    "aaa  9 99:99:99",
];
/// `%n`: seconds since 1970 with milliseconds.
const EPOCH_SHAPE: &str = "9999999999.999";

/// The time that stands in a prefix, as it stands there.
pub(super) fn time_in(prefix: &str) -> Option<&str> {
    let places = prefix.char_indices().map(|(at, _)| at);
    places
        .filter(|at| is_at_word(prefix, *at))
        .find_map(|at| time_at(prefix.get(at..)?))
}

fn is_at_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    !before.ends_with(|char: char| char.is_alphanumeric())
}

fn time_at(text: &str) -> Option<&str> {
    let fitting = SHAPES.iter().find(|shape| fits(text, shape));
    if let Some(shape) = fitting {
        let seconds = text.get(shape.len()..)?;
        let fraction_len = fraction(seconds);
        let zone_len = zone(seconds.get(fraction_len..).unwrap_or_default());
        return text.get(..shape.len() + fraction_len + zone_len);
    }
    fits(text, EPOCH_SHAPE).then(|| text.get(..EPOCH_SHAPE.len()))?
}

fn fits(text: &str, shape: &str) -> bool {
    let same = |(byte, expected): (u8, u8)| match expected {
        b'9' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        other => byte == other,
    };
    text.len() >= shape.len() && text.bytes().zip(shape.bytes()).all(same)
}

/// The length of `.123` or `,123`.
fn fraction(text: &str) -> usize {
    let digits = text
        .strip_prefix(['.', ','])
        .map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    digits
        .filter(|digits| *digits > 0)
        .map_or(0, |digits| digits + 1)
}

/// The length of ` CET`, ` +02`, `Z` or `+02:00`.
fn zone(text: &str) -> usize {
    if text.starts_with('Z') {
        return 1;
    }
    let space = usize::from(text.starts_with(' '));
    let rest = text.get(space..).unwrap_or_default();
    let letters = rest.bytes().take_while(u8::is_ascii_uppercase).count();
    let offset = rest
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || b"+-:".contains(byte))
        .count();
    let ends = |len: usize| !rest.get(len..).unwrap_or_default().starts_with(is_of_name);
    if (3..=5).contains(&letters) && ends(letters) {
        space + letters
    } else if rest.starts_with(['+', '-']) && offset >= 3 {
        space
            + rest
                .get(..offset)
                .map_or(0, |offset| offset.trim_end_matches(':').len())
    } else {
        0
    }
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::time_in;

    #[test]
    fn times_are_found_wherever_a_prefix_has_them() {
        for (prefix, time) in [
            (
                "2026-11-25 08:00:00.123 CET [4711] app@shop ",
                "2026-11-25 08:00:00.123 CET",
            ),
            (
                "2026-11-25 08:00:00 UTC:10.0.0.7(5000):app@shop:[4711]:",
                "2026-11-25 08:00:00 UTC",
            ),
            (
                "[4711] 2026-11-25 08:00:00.123 +02 ",
                "2026-11-25 08:00:00.123 +02",
            ),
            ("db=shop,user=app,time=1764057600.123 ", "1764057600.123"),
            (
                "Nov 25 08:00:00 host postgres[4711]: [5-1] ",
                "Nov 25 08:00:00",
            ),
            ("2026-11-25T08:00:00.5Z ", "2026-11-25T08:00:00.5Z"),
        ] {
            assert_eq!(time_in(prefix), Some(time), "{prefix}");
        }
        assert_eq!(time_in("[4711] app@shop 16384.2 "), None);
    }
}
