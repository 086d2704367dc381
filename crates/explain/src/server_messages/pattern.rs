//! Templates of messages: literal words with names in braces where a message has its numbers and
//! names.
//!
//! `invalid page in block {block} of relation {path}` is found anywhere in a text. Letters' case,
//! quotes around names and what stands before or behind do not count. Templates are in small
//! letters and begin with a word.

use super::facts::{Facts, Slot};
use super::pasted::Pasted;

/// Places of the first literal that are tried.
const TRIES_MAX: usize = 256;
/// The longest name, in bytes; a file path can have 4096.
const NAME_BYTES_MAX: usize = 4096;

enum Piece<'a> {
    Literal(&'a str),
    Slot(Slot),
}

/// The first place where the template stands, with what its braces caught.
pub(super) fn find(template: &'static str, text: &Pasted) -> Option<Facts> {
    let pieces = pieces(template);
    let Some(Piece::Literal(first)) = pieces.first() else {
        panic!("the template {template:?} must begin with a word");
    };
    let starts = text.lower().match_indices(first).take(TRIES_MAX);
    starts
        .map(|(at, _)| at)
        .find_map(|at| match_at(&pieces, text, at))
}

fn pieces(template: &'static str) -> Vec<Piece<'static>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((literal, tail)) = rest.split_once('{') {
        let Some((name, tail)) = tail.split_once('}') else {
            break;
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        let slot = Slot::named(name);
        pieces.push(Piece::Slot(
            slot.unwrap_or_else(|| panic!("no slot is named {name:?}")),
        ));
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    pieces
}

fn match_at(pieces: &[Piece<'_>], text: &Pasted, start: usize) -> Option<Facts> {
    let mut facts = Facts::default();
    let mut at = start;
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => {
                let rest = text.lower().get(at..)?;
                at += rest.starts_with(literal).then_some(literal.len())?;
            }
            Piece::Slot(slot) => {
                let rest = text.plain().get(at..)?;
                let (value, len) = if slot.is_number() {
                    number(rest)?
                } else {
                    name(rest)?
                };
                facts.put(*slot, value);
                at += len;
            }
        }
    }
    Some(facts)
}

/// Digits, hexadecimal ones too, with a sign; and the bytes they take.
fn number(rest: &str) -> Option<(&str, usize)> {
    let unsigned = rest.trim_start_matches('-').trim_start_matches("0x");
    let digits = unsigned.bytes().take_while(u8::is_ascii_hexdigit).count();
    let len = rest.len() - unsigned.len() + digits;
    (digits > 0).then(|| rest.get(..len).map(|value| (value, len)))?
}

/// What stands in quotes, or the next word without the punctuation behind it.
fn name(rest: &str) -> Option<(&str, usize)> {
    let quote = rest
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''));
    if let Some(quote) = quote {
        let inside = rest.get(1..)?;
        let end = inside.find(quote).filter(|end| *end <= NAME_BYTES_MAX)?;
        return (end > 0).then(|| inside.get(..end).map(|value| (value, end + 2)))?;
    }
    let end = rest.find(' ').unwrap_or(rest.len());
    let word = rest
        .get(..end)?
        .trim_end_matches(['.', ',', ';', ':', ')', ']', '"', '\'']);
    (!word.is_empty() && word.len() <= NAME_BYTES_MAX).then_some((word, word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_with_and_without_quotes() {
        for text in ["ERROR: x in \"my table\" now", "error: X in 'my table' now"] {
            let facts = find("x in {relation} now", &Pasted::new(text)).expect("a match");
            assert_eq!(facts.relation_name.as_deref(), Some("my table"));
        }
        let facts = find("x in {relation}", &Pasted::new("x in docs.")).expect("a match");
        assert_eq!(facts.relation_name.as_deref(), Some("docs"));
    }

    #[test]
    fn a_second_place_is_tried_when_the_first_does_not_fit() {
        let facts =
            find("block {block} of", &Pasted::new("block party, block 7 of")).expect("a match");
        assert_eq!(facts.block, Some(7));
    }
}
