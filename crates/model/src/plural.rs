//! Counts in messages.

/// `1 page`, `7 pages`, `2 entries`, `34,492 indexes`.
pub fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {}", count(number), noun_of(number, noun))
}

/// `200,000`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `page` of one, `pages` of any other number.
pub fn noun_of(number: u64, noun: &str) -> String {
    if number == 1 {
        return noun.to_owned();
    }
    let is_key = ["ay", "ey", "oy", "uy"]
        .iter()
        .any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(start) if !is_key => format!("{start}ies"),
        _ if noun.ends_with('x') => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// What one or many do: `leads`, `lead`; `is`, `are`; `has`, `have`.
pub fn verb_of(number: impl TryInto<u64>, verb: &str) -> String {
    let is_one = number.try_into().is_ok_and(|number| number == 1);
    match (is_one, verb) {
        (false, _) => verb.to_owned(),
        (true, "are") => "is".to_owned(),
        (true, "have") => "has".to_owned(),
        (true, "were") => "was".to_owned(),
        // The ending of one that does is that of many things: entries, carries.
        (true, _) => noun_of(2, verb),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_many() {
        let told = [0_u32, 1, 2].map(|number| plural(number, "page"));
        assert_eq!(told, ["0 pages", "1 page", "2 pages"]);
        let large = [999_u32, 1_000, 1_234_567].map(|number| plural(number, "row"));
        assert_eq!(large, ["999 rows", "1,000 rows", "1,234,567 rows"]);
        let nouns = ["entry", "key", "index", "live row"].map(|noun| plural(2_usize, noun));
        assert_eq!(nouns, ["2 entries", "2 keys", "2 indexes", "2 live rows"]);
    }

    #[test]
    fn one_does_what_many_do() {
        let of = |verb| [verb_of(1_u64, verb), verb_of(2_u64, verb)];
        assert_eq!(of("lead"), ["leads", "lead"]);
        assert_eq!(of("carry"), ["carries", "carry"]);
        assert_eq!(of("are"), ["is", "are"]);
        assert_eq!(of("have"), ["has", "have"]);
    }
}
