//! `pg_filenode.map`: which file holds which mapped catalog.
//!
//! ```text
//! 0       4              8
//! | magic | num_mappings | (oid, filenode) x 62 or 64 | crc | (4 bytes of padding before 16) |
//! ```
//!
//! Truth: `src/backend/utils/cache/relmapper.c`.

use std::fmt;

use crate::bytes::u32_at;
use crate::types::Oid;

/// `RELMAPPER_FILEMAGIC`.
pub const MAGIC: u32 = 0x0059_2717;

/// The file, checked against nothing but its length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelationMap {
    /// Catalog OID and filenode, in the file's order.
    pub mappings: Vec<(Oid, Oid)>,
    /// The magic word found.
    pub magic: u32,
    /// How many mappings the file claims.
    pub num_mappings: u32,
    /// The stored checksum.
    pub crc_stored: u32,
    /// The checksum of the bytes as they are.
    pub crc_computed: u32,
}

/// Why the bytes are no relation map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelationMapFault {
    /// Bytes there are; 512 (13-15) and 524 (16-18) are maps.
    pub bytes: usize,
}

impl fmt::Display for RelationMapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a relation map of {} bytes is neither of 13-15 (512) nor of 16-18 (524)",
            self.bytes
        )
    }
}

/// How many mappings a file of this length has room for.
fn capacity(file_bytes: usize) -> Option<usize> {
    match file_bytes {
        512 => Some(62),
        524 => Some(64),
        _ => None,
    }
}

impl RelationMap {
    /// Reads the map; `num_mappings` beyond the room there is gives the mappings there is room for.
    pub fn parse(bytes: &[u8]) -> Result<Self, RelationMapFault> {
        let fault = RelationMapFault { bytes: bytes.len() };
        let room = capacity(bytes.len()).ok_or(fault)?;
        let crc_at = 8 + room * 8;
        let word = |at| u32_at(bytes, at).ok_or(fault);
        let num_mappings = word(4)?;
        let live = usize::try_from(num_mappings)
            .unwrap_or(usize::MAX)
            .min(room);
        let mapping = |index: usize| Ok((word(8 + index * 8)?, word(12 + index * 8)?));
        Ok(RelationMap {
            mappings: (0..live).map(mapping).collect::<Result<_, _>>()?,
            magic: word(0)?,
            num_mappings,
            crc_stored: word(crc_at)?,
            crc_computed: crc32c::crc32c(bytes.get(..crc_at).unwrap_or_default()),
        })
    }

    /// Magic, count and checksum are right.
    pub fn is_right(&self) -> bool {
        self.magic == MAGIC
            && usize::try_from(self.num_mappings) == Ok(self.mappings.len())
            && self.crc_stored == self.crc_computed
    }

    /// The file of a mapped catalog.
    pub fn filenode(&self, catalog: Oid) -> Option<Oid> {
        self.mappings
            .iter()
            .find(|(oid, _)| *oid == catalog)
            .map(|(_, filenode)| *filenode)
    }
}

/// Writes the right checksum into an edited map; `false` when its length is no map's.
pub fn seal(bytes: &mut [u8]) -> bool {
    let place = capacity(bytes.len()).map(|room| 8 + room * 8);
    let Some((live, crc)) = place.and_then(|at| bytes.split_at_mut_checked(at)) else {
        return false;
    };
    let Some(slot) = crc.first_chunk_mut::<4>() else {
        return false;
    };
    *slot = crc32c::crc32c(live).to_le_bytes();
    true
}
