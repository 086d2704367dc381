//! Why reading WAL ended where it did. The same words for the end of every healthy WAL and for
//! damage: which of them it is, only the place can tell.

use std::fmt;

use crate::types::Lsn;
use crate::wal::page_header::PageFault;
use crate::wal::record::RecordFault;

/// Why there is no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// No file holds the page.
    NoPage,
    /// The page does not belong there.
    Page(PageFault),
    /// `xl_tot_len` is smaller than a header; 0 where nothing was written.
    TooShort {
        /// `xl_tot_len`.
        bytes: u32,
    },
    /// No server writes records of this length.
    TooLong {
        /// `xl_tot_len`.
        bytes: u32,
    },
    /// No such resource manager.
    Manager {
        /// `xl_rmid`.
        id: u8,
    },
    /// It does not point back to the record before.
    Previous {
        /// `xl_prev`.
        found: Lsn,
        /// Where the record before begins, when that is known.
        expected: Option<Lsn>,
    },
    /// A page begins with the rest of a record where none was begun.
    UnexpectedContinuation,
    /// The record goes on behind its page, and the next page does not say so.
    NoContinuation,
    /// The next page goes on with another number of bytes.
    ContinuationLength {
        /// `xlp_rem_len`.
        found: u32,
        /// Bytes that are missing.
        expected: u32,
    },
    /// The checksum is wrong.
    Crc {
        /// `xl_crc`.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// The checksum is right and the parts make no sense.
    Record(RecordFault),
    /// No record can begin at this place.
    Offset,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndReason::NoPage => f.write_str("no file of pg_wal holds it"),
            EndReason::Page(fault) => write!(f, "the WAL page there carries {fault}"),
            EndReason::TooShort { bytes: 0 } => f.write_str("all bytes there are zero"),
            EndReason::TooShort { bytes } => {
                write!(f, "a record of {bytes} bytes is shorter than its header")
            }
            EndReason::TooLong { bytes } => write!(f, "no record has {bytes} bytes"),
            EndReason::Manager { id } => write!(f, "there is no resource manager {id}"),
            EndReason::Previous {
                found,
                expected: Some(expected),
            } => write!(
                f,
                "it points back to {found}, and the record before begins at {expected}"
            ),
            EndReason::Previous { found, .. } => write!(f, "it points back to {found}"),
            EndReason::UnexpectedContinuation => {
                f.write_str("the page begins with the rest of a record that was not begun")
            }
            EndReason::NoContinuation => {
                f.write_str("the next page does not go on with the record")
            }
            EndReason::ContinuationLength { found, expected } => write!(
                f,
                "the next page goes on with {found} bytes, and {expected} are missing"
            ),
            EndReason::Crc { stored, computed } => write!(
                f,
                "its stored checksum {stored:#010x} does not match computed checksum {computed:#010x}"
            ),
            EndReason::Record(fault) => fault.fmt(f),
            EndReason::Offset => f.write_str("no record can begin there"),
        }
    }
}

/// Where and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalEnd {
    /// Where the record that is not there would begin.
    pub record: Lsn,
    /// Where the fault is: the start of a page, or of the record.
    pub at: Lsn,
    /// Why.
    pub why: EndReason,
}

impl fmt::Display for WalEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at == self.record {
            return write!(f, "no record at {}: {}", self.record, self.why);
        }
        write!(
            f,
            "no record at {}: at {}, {}",
            self.record, self.at, self.why
        )
    }
}
