//! A text as people paste it, made plain: one line, ASCII quotes and dashes, no control characters.

/// Characters that are looked at; the rest of a longer text is left out.
const CHARS_MAX: usize = 64 * 1024;

/// The text twice: as it is, and in lower case for comparing. Offsets agree.
#[derive(Clone, Debug)]
pub(super) struct Pasted {
    plain: String,
    lower: String,
}

impl Pasted {
    /// Makes a text plain.
    pub(super) fn new(text: &str) -> Self {
        let mut plain = String::new();
        let mut chars = text.chars().take(CHARS_MAX).peekable();
        while let Some(char) = chars.next() {
            let next_is_digit = chars.peek().is_some_and(char::is_ascii_digit);
            push(&mut plain, char, next_is_digit);
        }
        let plain = plain
            .replace("&quot;", "\"")
            .replace("&gt;", ">")
            .replace("&lt;", "<");
        let lower = plain.to_ascii_lowercase();
        Pasted { plain, lower }
    }

    /// In its own letters.
    pub(super) fn plain(&self) -> &str {
        &self.plain
    }

    /// ASCII letters made small.
    pub(super) fn lower(&self) -> &str {
        &self.lower
    }
}

fn push(plain: &mut String, char: char, next_is_digit: bool) {
    let one = match char {
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' | '\u{2032}' | '`' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' | '\u{AB}' | '\u{BB}' => '"',
        '\u{2010}' | '\u{2011}' | '\u{2212}' => '-',
        // Word processors turn "--" into these, but also the sign of a number.
        '\u{2012}'..='\u{2015}' if next_is_digit => '-',
        '\u{2012}'..='\u{2015}' => return push_dashes(plain),
        '\u{2026}' => return plain.push_str("..."),
        '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' => return,
        char if char.is_whitespace() || char.is_control() => ' ',
        char => char,
    };
    match one {
        ' ' if plain.is_empty() || plain.ends_with(' ') => {}
        '-' if plain.ends_with("--") => {}
        one => plain.push(one),
    }
}

fn push_dashes(plain: &mut String) {
    while plain.ends_with('-') {
        plain.pop();
    }
    plain.push_str("--");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_word_processors_did_is_undone() {
        let pasted = Pasted::new(
            "yet\u{2014}apparent \u{201C}t\u{201D}\r\n\t number \u{2212}5 \u{2013}6 --- flushed\u{1b}",
        );
        assert_eq!(
            pasted.plain(),
            "yet--apparent \"t\" number -5 -6 -- flushed "
        );
    }
}
