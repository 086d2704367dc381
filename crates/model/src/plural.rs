//! Counts in messages.

/// `1 page`, `7 pages`, `2 entries`, `3 indexes`.
pub fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", noun_of(number, noun))
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
