//! A place as somebody types it: `base/5/16384:35:7`.

use pgclinic_model::document::CureRequest;
use pgclinic_surgery::cures::{CureUnit, cure_named};

use crate::exit::Failure;

/// A file, a block, and perhaps a line pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct At {
    path: String,
    block: u32,
    item: Option<u16>,
}

/// Reads a place.
pub(super) fn parse(text: &str) -> Result<At, String> {
    let wrong = || {
        format!(
            "{text:?} is no place; write PATH:BLOCK:ITEM or PATH:BLOCK, such as base/5/16384:35:7"
        )
    };
    let mut parts = text.split(':');
    let path = parts.next().filter(|path| !path.is_empty());
    let path = path.ok_or_else(wrong)?;
    let block = parts.next().and_then(|block| block.parse().ok());
    let item = parts.next().map(|item| item.parse().map_err(|_| wrong()));
    let at = At {
        path: path.to_owned(),
        block: block.ok_or_else(wrong)?,
        item: item.transpose()?,
    };
    match parts.next() {
        Some(_) => Err(wrong()),
        None => Ok(at),
    }
}

impl At {
    /// The request for this cure, if the place is of its kind.
    pub(super) fn request(
        &self,
        cure: &str,
        column: Option<String>,
    ) -> Result<CureRequest, Failure> {
        let unit = cure_named(cure).map(|cure| cure.unit);
        match (unit, self.item) {
            (Some(CureUnit::Page), Some(item)) => Err(Failure::new(format!(
                "--{cure} is for a whole page: leave out the line pointer {item}"
            ))),
            (Some(CureUnit::Item | CureUnit::Column), None) => Err(Failure::new(format!(
                "--{cure} is for one row: write --at {}:{}:ITEM, with the line pointer's number",
                self.path, self.block
            ))),
            _ => Ok(CureRequest {
                cure: cure.into(),
                path: self.path.clone(),
                block: self.block,
                item: self.item,
                column,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_a_file_a_block_and_perhaps_an_item() {
        let at = parse("base/5/16384:35:7").expect("a place");
        assert_eq!(
            (at.path.as_str(), at.block, at.item),
            ("base/5/16384", 35, Some(7))
        );
        assert_eq!(parse("base/5/16384:35").expect("a place").item, None);
        for wrong in [
            "",
            "base/5/16384",
            ":1",
            "a:x",
            "a:1:x",
            "a:1:2:3",
            "a:-1",
            "a:1:70000",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
