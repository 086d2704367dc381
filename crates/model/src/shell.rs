//! Words of the commands that documents advise.

/// In single quotes for a shell.
pub fn in_quotes(name: &str) -> String {
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// A word as a shell takes it: in single quotes where it needs them.
pub fn shell_word(word: &str) -> String {
    let plain = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if plain {
        word.to_owned()
    } else {
        in_quotes(word)
    }
}
