//! A record as it lies in memory and in a run: key length, value length (4 bytes each,
//! little-endian), key, value.

use std::io::{self, Read};

/// Key and value.
pub(crate) type Record = (Vec<u8>, Vec<u8>);

const LENGTHS: usize = 8;

/// The lengths before a record; a key or value of 4 GiB or more is refused.
pub(crate) fn lengths(key: &[u8], value: &[u8]) -> io::Result<[u8; LENGTHS]> {
    let too_long = |_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a key or value of 4 GiB or more cannot be sorted",
        )
    };
    let key = u32::try_from(key.len()).map_err(too_long)?;
    let value = u32::try_from(value.len()).map_err(too_long)?;
    let mut both = [0; LENGTHS];
    both[..4].copy_from_slice(&key.to_le_bytes());
    both[4..].copy_from_slice(&value.to_le_bytes());
    Ok(both)
}

/// Bytes of a record with its lengths.
pub(crate) fn size(key: &[u8], value: &[u8]) -> usize {
    key.len()
        .saturating_add(value.len())
        .saturating_add(LENGTHS)
}

/// The record that begins at `start`: key and value.
pub(crate) fn at(records: &[u8], start: usize) -> Option<(&[u8], &[u8])> {
    let (key, rest) = records.get(start..)?.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*key)).ok()?)?;
    Some((
        key,
        rest.get(..usize::try_from(u32::from_le_bytes(*value)).ok()?)?,
    ))
}

/// Reads one record; the caller knows that one follows.
pub(crate) fn read(from: &mut impl Read) -> io::Result<Record> {
    let mut both = [[0; 4]; 2];
    from.read_exact(both.as_flattened_mut())?;
    let [key, value] = both.map(u32::from_le_bytes);
    Ok((read_bytes(from, key)?, read_bytes(from, value)?))
}

fn read_bytes(from: &mut impl Read, count: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(u64::from(count)).read_to_end(&mut bytes)?;
    match u32::try_from(bytes.len()) {
        Ok(came) if came == count => Ok(bytes),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
