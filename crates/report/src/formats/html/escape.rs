//! Text for HTML: every name and message may come from a hostile catalog.

use std::fmt;

use crate::words;

/// Prints a text so that it can stand between tags and inside quoted attributes.
pub(crate) struct Esc<T: AsRef<str>>(pub(crate) T);

impl<T: AsRef<str>> fmt::Display for Esc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cleaned = words::clean(self.0.as_ref());
        let mut rest = cleaned.as_str();
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            let (before, after) = rest.split_at(at);
            f.write_str(before)?;
            let mut letters = after.chars();
            f.write_str(match letters.next() {
                Some('&') => "&amp;",
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('"') => "&quot;",
                _ => "&#39;",
            })?;
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

/// What was written so as text again.
pub(crate) fn unescaped(html: &str) -> String {
    let letters = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
    ];
    let text = letters
        .iter()
        .fold(html.to_owned(), |text, (name, letter)| {
            text.replace(name, letter)
        });
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let name = "a<b>&lt;\"c\" 'd' &amp;";
        assert_eq!(unescaped(&Esc(name).to_string()), name);
    }

    #[test]
    fn nothing_opens_a_tag_or_closes_an_attribute() {
        let name = "</script><img src=x onerror='alert(\"1\")'>&\u{1b}";
        let safe = Esc(name).to_string();
        assert_eq!(
            safe,
            "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(&quot;1&quot;)&#39;&gt;&amp;\\u{1b}"
        );
    }
}
