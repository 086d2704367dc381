//! A file of `pg_twophase`: what a prepared transaction needs to be committed or rolled back.
//!
//! ```text
//! 0       4           8     12         16            24      28          32            36
//! | magic | total_len | xid | database | prepared_at | owner | nsubxacts | ncommitrels | nabortrels | …
//!   … gid, subtransactions, files to remove at commit, files to remove at rollback, records | crc |
//! ```
//!
//! From 15 on two counters of statistics stand behind `nabortrels`. Everything begins at a
//! multiple of 8. Truth: `src/backend/access/transam/twophase.c`, `xl_xact_prepare` in
//! `src/include/access/xact.h`.

use std::fmt;

use crate::bytes::{align_up, u16_at, u32_at};
use crate::types::{MAXALIGN, Oid, Xid};

/// `TWOPHASE_MAGIC`.
pub const MAGIC: u32 = 0x57F9_4534;
/// Bytes of the record that ends the file.
const END_RECORD_BYTES: usize = 8;

/// The header; its counts are not to be trusted unless the checksum is right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TwoPhase {
    /// The transaction.
    pub xid: Xid,
    /// Its database.
    pub database: Oid,
    /// Bytes in the file, as the header says.
    pub total_len: u32,
    /// Files that the transaction made: tablespace, database and file number.
    pub created: Vec<(Oid, Oid, Oid)>,
    /// The stored checksum.
    pub crc_stored: u32,
    /// The checksum of the bytes as they are.
    pub crc_computed: u32,
}

/// Why the server refuses the file, in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TwoPhaseFault {
    /// Too short.
    Size {
        /// Bytes there are.
        bytes: usize,
    },
    /// Its length is not what a checksum at its end allows.
    Alignment,
    /// Another magic word.
    Magic {
        /// The word found.
        found: u32,
    },
}

impl fmt::Display for TwoPhaseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TwoPhaseFault::Size { bytes } => write!(f, "{bytes} bytes are too few"),
            TwoPhaseFault::Alignment => f.write_str("its checksum would not be aligned"),
            TwoPhaseFault::Magic { found } => write!(f, "the magic word is {found:#010x}"),
        }
    }
}

/// Bytes of the header, and where the length of the name stands in it.
fn header(major: u16) -> (usize, usize) {
    match major {
        ..15 => (64, 46),
        _ => (72, 54),
    }
}

impl TwoPhase {
    /// Reads the header whether or not the checksum is right: compare `crc_stored` with
    /// `crc_computed`, and `total_len` with the length of the file.
    pub fn parse(bytes: &[u8], major: u16) -> Result<Self, TwoPhaseFault> {
        let (header_bytes, gidlen_at) = header(major);
        let short = TwoPhaseFault::Size { bytes: bytes.len() };
        if bytes.len() < header_bytes + END_RECORD_BYTES + 4 {
            return Err(short);
        }
        let crc_at = bytes.len() - 4;
        if !crc_at.is_multiple_of(MAXALIGN) {
            return Err(TwoPhaseFault::Alignment);
        }
        let word = |at| u32_at(bytes, at).ok_or(short);
        let found = word(0)?;
        if found != MAGIC {
            return Err(TwoPhaseFault::Magic { found });
        }
        let gid_bytes = usize::from(u16_at(bytes, gidlen_at).ok_or(short)?);
        let mut at = header_bytes.saturating_add(align_up(gid_bytes, MAXALIGN));
        let counts = [word(28)?, word(32)?, word(36)?].map(|count| count as usize);
        at = at.saturating_add(align_up(counts[0].saturating_mul(4), MAXALIGN));
        at = at.saturating_add(align_up(counts[1].saturating_mul(12), MAXALIGN));
        let created = bytes
            .get(at..crc_at)
            .unwrap_or_default()
            .chunks_exact(12)
            .take(counts[2]);
        let file = |file: &[u8]| Some((u32_at(file, 0)?, u32_at(file, 4)?, u32_at(file, 8)?));
        Ok(TwoPhase {
            xid: Xid(word(8)?),
            database: word(12)?,
            total_len: word(4)?,
            created: created.filter_map(file).collect(),
            crc_stored: word(crc_at)?,
            crc_computed: crc32c::crc32c(bytes.get(..crc_at).unwrap_or_default()),
        })
    }

    /// The header's length and the checksum are those of the file.
    pub fn is_right(&self, file_bytes: usize) -> bool {
        usize::try_from(self.total_len) == Ok(file_bytes) && self.crc_stored == self.crc_computed
    }
}

/// The transaction in a file's name: 8 digits, from 17 on 16 with the epoch in front. Nothing for
/// names that the server passes over.
pub fn xid_of_name(name: &str, major: u16) -> Option<Xid> {
    let digits = if major < 17 { 8 } else { 16 };
    let fits = name.len() == digits
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
    fits.then_some(())?;
    let number = u64::from_str_radix(name, 16).ok()?;
    Some(Xid((number & 0xFFFF_FFFF) as u32))
}

/// The name of the file of a transaction, by its number with the epoch.
pub fn name_of_xid(full_xid: u64, major: u16) -> String {
    match major {
        17.. => format!("{full_xid:016X}"),
        _ => format!("{:08X}", full_xid & u64::from(u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::put_u32;

    fn file() -> Vec<u8> {
        let mut bytes = vec![0; 72 + 8 + 8 + 16 + 8 + 4];
        for (at, word) in [(0, MAGIC), (4, 116), (8, 700), (12, 5), (28, 1), (36, 1)] {
            put_u32(&mut bytes, at, word);
        }
        bytes[54] = 3;
        put_u32(&mut bytes, 88, 1663);
        put_u32(&mut bytes, 92, 5);
        put_u32(&mut bytes, 96, 16400);
        let crc = crc32c::crc32c(&bytes[..112]);
        put_u32(&mut bytes, 112, crc);
        bytes
    }

    #[test]
    fn the_files_that_it_made_are_found() {
        let parsed = TwoPhase::parse(&file(), 18).expect("a file");
        assert!(parsed.is_right(116));
        assert_eq!(parsed.created, [(1663, 5, 16400)]);
        assert_eq!((parsed.xid, parsed.database), (Xid(700), 5));
    }

    #[test]
    fn what_the_server_refuses_is_refused() {
        let whole = file();
        assert_eq!(
            TwoPhase::parse(&whole[..80], 18),
            Err(TwoPhaseFault::Size { bytes: 80 })
        );
        assert_eq!(
            TwoPhase::parse(&whole[..114], 18),
            Err(TwoPhaseFault::Alignment)
        );
        assert_eq!(
            TwoPhase::parse(&[0; 116], 18),
            Err(TwoPhaseFault::Magic { found: 0 })
        );
        assert_eq!(xid_of_name("00000000000002F1", 18), Some(Xid(0x2F1)));
        assert_eq!(xid_of_name("000002F1", 18), None);
        assert_eq!(xid_of_name("000002F1", 13), Some(Xid(0x2F1)));
    }
}
