//! Values made of texts: documents and queries of text search, hstore, and what is sent as a
//! version and a text.

use super::super::contrib::{HSTORE_NULL, hstore_head, hstore_part};
use super::super::reader::Reader;
use super::super::tsquery::{self, Item, Operator};
use super::super::tsvector;
use super::super::types::TypeInfo;
use super::super::undecodable::Undecodable;
use super::Sender;

/// The version 1, then the text of the value.
pub(super) fn versioned_text(
    sender: &mut Sender<'_, '_>,
    ty: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    sender.raw(&[1])?;
    sender.as_text(ty, value)
}

/// A count, then each lexeme with a zero behind it, a count of positions, the positions.
pub(super) fn tsvector(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of lexemes is negative")?;
    let mut entries = Reader::new(reader.bytes(count.saturating_mul(4))?);
    let lexemes = reader.rest();
    sender.count(count)?;
    for _ in 0..count {
        let (text, positions) = tsvector::lexeme(&mut entries, lexemes)?;
        sender.text(text)?;
        sender.raw(&[0])?;
        let Some(mut positions) = positions else {
            sender.u16(0)?;
            continue;
        };
        let count = positions.u16()?;
        sender.u16(count)?;
        for _ in 0..count {
            let position = positions.u16()?;
            sender.u16(position)?;
        }
    }
    Ok(())
}

/// A count, then each item: a lexeme with weight and prefix, or an operator.
pub(super) fn tsquery(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let items = tsquery::parse(value)?;
    sender.count(items.len())?;
    for item in items {
        match item {
            Item::Lexeme {
                text,
                weight,
                is_prefix,
            } => {
                sender.raw(&[1, weight, u8::from(is_prefix)])?;
                sender.text(text)?;
                sender.raw(&[0])?;
            }
            Item::Not => sender.raw(&[2, 1])?,
            Item::Binary { operator, .. } => match operator {
                Operator::And => sender.raw(&[2, 2])?,
                Operator::Or => sender.raw(&[2, 3])?,
                Operator::Phrase(distance) => {
                    sender.raw(&[2, 4])?;
                    sender.raw(&distance.to_be_bytes())?;
                }
            },
        }
    }
    Ok(())
}

/// A count, then each key and value with its length.
pub(super) fn hstore(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let (count, mut ends, mut texts) = hstore_head(value)?;
    sender.count(count)?;
    for _ in 0..count {
        let (_, key) = hstore_part(&mut ends, &mut texts)?;
        sender.with_length(|sender| sender.text(key))?;
        match hstore_part(&mut ends, &mut texts)? {
            (end, _) if end & HSTORE_NULL != 0 => sender.null()?,
            (_, text) => sender.with_length(|sender| sender.text(text))?,
        }
    }
    Ok(())
}
