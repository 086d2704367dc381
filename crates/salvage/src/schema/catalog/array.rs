//! One-dimensional arrays as catalogs hold them: `oid[]`, `oidvector`, `int2vector`, `text[]`,
//! `aclitem[]`, …
//!
//! ```text
//! 0    4           8         12      16           20
//! | 1 | dataoffset | elemtype | length | lower bound | null bitmap, elements
//! ```
//!
//! Truth: `src/include/utils/array.h`. Offsets there count from the varlena header, 4 bytes before.

use pgclinic_format::datum::builtin;
use pgclinic_format::varlena;

const HEADER: usize = 20;
const VARLENA: usize = 4;

/// The payloads of the elements, `None` for nulls. Nothing where the bytes are no such array.
pub(super) fn elements(array: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let word = |at: usize| Some(u32::from_le_bytes(*array.get(at..)?.first_chunk()?));
    if word(0)? == 0 {
        return Some(Vec::new());
    }
    if word(0)? != 1 {
        return None;
    }
    let offset = usize::try_from(word(4)?).ok()?;
    let count = usize::try_from(word(12)?).ok()?;
    if count > array.len().saturating_mul(8) {
        return None;
    }
    let bitmap = (offset > 0).then(|| array.get(HEADER..)).flatten();
    let start = if offset > 0 {
        offset.checked_sub(VARLENA)?
    } else {
        HEADER
    };
    let mut walk = Walk {
        array,
        at: start,
        shape: shape(word(8)?, array.len().checked_sub(start)?, count)?,
    };
    let mut found = Vec::with_capacity(count);
    for index in 0..count {
        let is_null = bitmap.is_some_and(|bits| {
            bits.get(index / 8)
                .is_none_or(|byte| byte >> (index % 8) & 1 == 0)
        });
        found.push(if is_null { None } else { Some(walk.next()?) });
    }
    Some(found)
}

/// Length and alignment of the elements; an `aclitem` had 12 bytes before 16.
fn shape(oid: u32, bytes: usize, count: usize) -> Option<(i16, usize)> {
    const ACLITEM: u32 = 1033;
    if oid == ACLITEM && bytes == count.saturating_mul(12) {
        return Some((12, 4));
    }
    let element = builtin(oid)?;
    Some((element.len, usize::from(element.align)))
}

struct Walk<'a> {
    array: &'a [u8],
    at: usize,
    shape: (i16, usize),
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, align) = self.shape;
        let is_short = |byte: Option<&u8>| byte.is_some_and(|byte| byte & 1 == 1);
        if len > 0 || !is_short(self.array.get(self.at)) {
            // Alignment counts from the varlena header.
            self.at = (self.at + VARLENA).checked_next_multiple_of(align)? - VARLENA;
        }
        let rest = self.array.get(self.at..)?;
        if let Ok(len) = usize::try_from(len) {
            self.at = self.at.checked_add(len)?;
            return rest.get(..len);
        }
        let (value, total) = varlena::parse(rest).ok()?;
        self.at = self.at.checked_add(total)?;
        value.as_it_is()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_found_and_lies_are_not_believed() {
        let mut oids: Vec<u8> = [1u32, 0, 26, 2, 1, 7, 9]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let found = elements(&oids).expect("an array");
        assert_eq!(found, [Some(&[7u8, 0, 0, 0][..]), Some(&[9, 0, 0, 0])]);
        oids.truncate(24);
        assert_eq!(elements(&oids), None);
        assert_eq!(elements(&[0; 12]), Some(Vec::new()));
        assert_eq!(elements(&[9; 40]), None);
    }
}
