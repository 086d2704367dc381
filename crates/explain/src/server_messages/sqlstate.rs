//! The SQLSTATE that stands in a text, in the forms in which clients and logs print it.

/// Words before a state that say that it is one.
const ANNOUNCEMENTS: &[&str] = &["sqlstate", "sql state", "sql-state", "state", "errcode"];

/// The SQLSTATE that this text names: `FEHLER:  XX001: …`, `SQL state: XX001`, `SQLSTATE[58030]`.
pub(super) fn named_in(text: &str) -> Option<&str> {
    let of_word = |char: char| char.is_alphanumeric() || char == '_';
    let words = text.split(|char| !of_word(char));
    let mut states = words.filter(|word| is_sqlstate(word));
    states.find(|state| is_unmistakable(state) || is_announced(text, state))
}

/// Five capital letters and digits.
pub(super) fn is_sqlstate(word: &str) -> bool {
    let of_state = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    word.len() == 5 && word.bytes().all(of_state) && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// No number and no name of a file looks like this.
pub(super) fn is_unmistakable(state: &str) -> bool {
    state.starts_with("XX0") || matches!(state, "58P01" | "58P02" | "57P02" | "F0001")
}

/// It stands after a word for it, or between two colons as in a verbose message.
fn is_announced(text: &str, state: &str) -> bool {
    let Some((before, behind)) = text.split_once(state) else {
        return false;
    };
    let before =
        before.trim_end_matches(|char: char| char.is_whitespace() || "[(:=".contains(char));
    let lower = before.to_ascii_lowercase();
    let is_verbose = behind.starts_with(": ") && text.contains(&format!(": {state}:"));
    is_verbose || ANNOUNCEMENTS.iter().any(|word| lower.ends_with(word))
}
