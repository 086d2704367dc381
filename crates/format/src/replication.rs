//! The state of a replication slot, and how far replication origins have come.
//!
//! ```text
//! pg_replslot/NAME/state            | magic | crc | version | length | name, database, positions … |
//! pg_logical/replorigin_checkpoint  | magic | (origin, position) x n, 16 bytes each | crc |
//! ```
//!
//! Truth: `src/backend/replication/slot.c`, `src/backend/replication/logical/origin.c`.

use crate::bytes::u32_at;

/// `SLOT_MAGIC`.
pub const SLOT_MAGIC: u32 = 0x0105_1CA1;
/// `REPLICATION_STATE_MAGIC`.
pub const ORIGIN_MAGIC: u32 = 0x1257_DADE;
/// Bytes in front of a slot's data.
pub const SLOT_HEADER_BYTES: usize = 16;
/// Bytes that the checksum of a slot leaves out.
const SLOT_UNCHECKED_BYTES: usize = 8;
/// `SLOT_VERSION` of 13 and of 18.
const SLOT_VERSIONS: std::ops::RangeInclusive<u32> = 2..=5;
/// Bytes of one origin.
const ORIGIN_BYTES: usize = 16;

/// What is wrong with one of the two files, in the order in which the server looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplicationFault {
    /// Too short, or of a length that no such file has.
    Size {
        /// Bytes there are.
        bytes: usize,
    },
    /// Another magic word.
    Magic {
        /// The word found.
        found: u32,
        /// The right one.
        expected: u32,
    },
    /// A version of a slot that is not known.
    Version {
        /// The number found.
        found: u32,
    },
    /// A checksum that does not fit.
    Checksum {
        /// The one in the file.
        stored: u32,
        /// The one of the bytes as they are.
        computed: u32,
    },
}

/// Looks at a slot's `state`.
pub fn slot_fault(bytes: &[u8]) -> Option<ReplicationFault> {
    let size = ReplicationFault::Size { bytes: bytes.len() };
    let [Some(magic), Some(stored), Some(version), Some(length)] =
        [0, 4, 8, 12].map(|at| u32_at(bytes, at))
    else {
        return Some(size);
    };
    if magic != SLOT_MAGIC {
        return Some(ReplicationFault::Magic {
            found: magic,
            expected: SLOT_MAGIC,
        });
    }
    if !SLOT_VERSIONS.contains(&version) {
        return Some(ReplicationFault::Version { found: version });
    }
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(SLOT_HEADER_BYTES));
    let Some(live) = end.and_then(|end| bytes.get(SLOT_UNCHECKED_BYTES..end)) else {
        return Some(size);
    };
    checksum(stored, crc32c::crc32c(live))
}

/// Looks at `replorigin_checkpoint`.
pub fn origin_fault(bytes: &[u8]) -> Option<ReplicationFault> {
    let size = ReplicationFault::Size { bytes: bytes.len() };
    let Some(magic) = u32_at(bytes, 0) else {
        return Some(size);
    };
    if magic != ORIGIN_MAGIC {
        return Some(ReplicationFault::Magic {
            found: magic,
            expected: ORIGIN_MAGIC,
        });
    }
    let whole = bytes
        .len()
        .checked_sub(8)
        .is_some_and(|origins| origins.is_multiple_of(ORIGIN_BYTES));
    let Some((live, stored)) = bytes.split_last_chunk::<4>().filter(|_| whole) else {
        return Some(size);
    };
    checksum(u32::from_le_bytes(*stored), crc32c::crc32c(live))
}

fn checksum(stored: u32, computed: u32) -> Option<ReplicationFault> {
    (stored != computed).then_some(ReplicationFault::Checksum { stored, computed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::put_u32;

    #[test]
    fn a_file_of_a_real_server_is_right() {
        // One origin at 0/1234, as 13 to 18 write it.
        let mut bytes = vec![0; 24];
        for (at, word) in [(0, ORIGIN_MAGIC), (4, 1), (12, 0x1234), (20, 0xE9EE_9227)] {
            put_u32(&mut bytes, at, word);
        }
        assert_eq!(origin_fault(&bytes), None);
        bytes[5] ^= 1;
        assert!(matches!(
            origin_fault(&bytes),
            Some(ReplicationFault::Checksum { .. })
        ));
        assert_eq!(
            origin_fault(&bytes[..22]),
            Some(ReplicationFault::Size { bytes: 22 })
        );
    }

    #[test]
    fn each_fault_of_a_slot_is_named() {
        let mut bytes = vec![0; 16 + 184];
        for (at, word) in [(0, SLOT_MAGIC), (8, 2), (12, 184)] {
            put_u32(&mut bytes, at, word);
        }
        let crc = crc32c::crc32c(&bytes[8..]);
        put_u32(&mut bytes, 4, crc);
        assert_eq!(slot_fault(&bytes), None);
        assert_eq!(
            slot_fault(&bytes[..100]),
            Some(ReplicationFault::Size { bytes: 100 })
        );
        put_u32(&mut bytes, 8, 9);
        assert_eq!(
            slot_fault(&bytes),
            Some(ReplicationFault::Version { found: 9 })
        );
        assert_eq!(slot_fault(&[]), Some(ReplicationFault::Size { bytes: 0 }));
    }
}
