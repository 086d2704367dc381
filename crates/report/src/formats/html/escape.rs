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

#[cfg(test)]
mod tests {
    use super::*;

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
