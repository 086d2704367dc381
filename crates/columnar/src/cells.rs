//! Values of a row as bytes, until they are gathered.
//!
//! ```text
//! row    one cell a column
//! cell   length u32, little-endian; 0xFFFFFFFF is null   value
//! list   one cell an element
//! ```
//!
//! Values of fixed width are little-endian, as Arrow has them.

/// A length that says that there is no value.
const NULL: [u8; 4] = [0xFF; 4];

/// Appends a null.
pub fn put_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&NULL);
}

/// Appends a value.
pub fn put(value: &[u8], out: &mut Vec<u8>) {
    let start = begin(out);
    out.extend_from_slice(value);
    end(start, out);
}

/// Begins a value that the caller appends; where it starts is what [`end`] wants.
pub fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&NULL);
    out.len()
}

/// The value that began there is whole. One of 4 GiB, which no server has, is cut to null.
pub fn end(start: usize, out: &mut Vec<u8>) {
    let length = u32::try_from(out.len().saturating_sub(start)).unwrap_or(u32::MAX);
    if length == u32::MAX {
        out.truncate(start);
    }
    if let Some(slot) = start
        .checked_sub(NULL.len())
        .and_then(|from| out.get_mut(from..start))
    {
        slot.copy_from_slice(&length.to_le_bytes());
    }
}

/// Takes the next cell: outside nothing where the bytes end, inside nothing where it is null.
pub fn take<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    if *length == NULL {
        *rest = behind;
        return Some(None);
    }
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (value, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken() {
        let mut out = Vec::new();
        put(b"ab", &mut out);
        put_null(&mut out);
        let start = begin(&mut out);
        put(b"inner", &mut out);
        end(start, &mut out);
        let mut rest = out.as_slice();
        assert_eq!(take(&mut rest), Some(Some(b"ab".as_slice())));
        assert_eq!(take(&mut rest), Some(None));
        let mut list = take(&mut rest).flatten().expect("a list");
        assert_eq!(take(&mut list), Some(Some(b"inner".as_slice())));
        assert_eq!((take(&mut list), take(&mut rest)), (None, None));
    }
}
