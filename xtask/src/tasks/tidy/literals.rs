//! The string literals of a Rust file, which are what its user reads.

/// A literal without its quotes, as it stands in the source.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tasks) struct Literal<'a> {
    /// Of its first character, from 1.
    pub(super) line: usize,
    pub(in crate::tasks) text: &'a str,
}

/// The string literals of a source text, in order; those in comments are none.
pub(in crate::tasks) fn literals(source: &str) -> Vec<Literal<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let before = source.get(..at).and_then(|text| text.chars().next_back());
        let piece = Piece::first_of(rest, before);
        if let Some(inner) = &piece.literal {
            found.push(Literal {
                line,
                text: rest.get(inner.clone()).unwrap_or_default(),
            });
        }
        let passed = rest.get(..piece.len).unwrap_or(rest);
        line += passed.matches('\n').count();
        at += passed.len();
    }
    found
}

/// What stands at the beginning of a rest of the source.
struct Piece {
    len: usize,
    /// Where in it the text of a literal is.
    literal: Option<std::ops::Range<usize>>,
}

impl Piece {
    fn first_of(rest: &str, before: Option<char>) -> Self {
        let other = |len| Piece { len, literal: None };
        let up_to = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
        if rest.starts_with("//") {
            return other(up_to("\n"));
        }
        if rest.starts_with("/*") {
            return other(up_to("*/"));
        }
        if rest.starts_with('\'') {
            return other(character(rest));
        }
        let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if let Some(raw) = raw_string(rest).filter(|_| !in_word || before == Some('b')) {
            return raw;
        }
        if rest.starts_with('"') {
            return plain_string(rest);
        }
        other(rest.chars().next().map_or(1, char::len_utf8))
    }
}

/// The length of a character literal, or of the quote before a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            let end = rest.get(at + 1..).and_then(|rest| rest.find('\''));
            end.map_or(rest.len(), |end| at + 1 + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

fn raw_string(rest: &str) -> Option<Piece> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after.get(hashes..)?.strip_prefix('"')?;
    let start = rest.len() - body.len();
    let end = format!("\"{}", "#".repeat(hashes));
    let len = body.find(&end)?;
    Some(Piece {
        len: start + len + end.len(),
        literal: Some(start..start + len),
    })
}

fn plain_string(rest: &str) -> Piece {
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    let end = end.map_or(rest.len(), |(at, _)| at);
    Piece {
        len: (end + 1).min(rest.len()),
        literal: Some(1..end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(usize, &str)> {
        let all = literals(source);
        all.into_iter()
            .map(|literal| (literal.line, literal.text))
            .collect()
    }

    #[test]
    fn literals_are_found_between_comments_characters_and_lifetimes() {
        let source = "f(\"a\"); // \"no\"\nlet c = '\"'; /* \"no\n\" */ g::<'a>(\"b\\\"c\", '\\'');\nh(\"d\\\n  e\", \"f\");\n";
        assert_eq!(
            texts(source),
            [(1, "a"), (3, "b\\\"c"), (4, "d\\\n  e"), (5, "f")]
        );
    }

    #[test]
    fn raw_literals_end_with_their_own_number_of_hashes() {
        let source = "x(r#\"a \"b\" c\"#, r\"d\\\", br##\"e\"# f\"##); let r = for_r\"g\";";
        assert_eq!(
            texts(source),
            [(1, "a \"b\" c"), (1, "d\\"), (1, "e\"# f"), (1, "g")]
        );
    }
}
