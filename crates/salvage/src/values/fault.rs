//! Why a value of a row could not be had.

use std::fmt;

use pgclinic_format::attribute::AttributeFaultKind;
use pgclinic_format::datum::{DecompressError, Undecodable, UndecodableKind};
use pgclinic_format::varlena::VarlenaFault;

/// A value that is not written as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Index among the columns that are written; all behind it share its fate where the walk ended.
    pub column: usize,
    /// What happened.
    pub kind: FaultKind,
}

/// What can happen to a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The row ends or makes no sense here: this value and those behind it are lost.
    Walk(AttributeFaultKind),
    /// Some of its bytes stood on a part of the page that is lost.
    CutOff,
    /// Its header makes no sense.
    Header(VarlenaFault),
    /// Chunks are missing in the TOAST relation.
    Chunks {
        /// The value's number.
        value: u32,
        /// How many it should have.
        expected: u32,
        /// The first that is missing.
        first_missing: u32,
        /// What is left was written.
        kept: bool,
    },
    /// It cannot be unpacked.
    Packed(DecompressError),
    /// It is larger than memory allows.
    TooLarge {
        /// Bytes that it would need.
        bytes: u64,
    },
    /// It makes no sense for its type.
    Undecodable(Undecodable),
    /// It is not valid in the encoding of its database.
    Encoding,
    /// The default of a column that is newer than the row cannot be read.
    MissingDefault,
    /// The catalogs do not give its type, or a part of it.
    LostType(String),
}

impl FaultKind {
    /// The row had a value here that damage took or changed. What is too large is there, and what
    /// of a type is not known here is told of the whole column.
    pub(crate) fn robs_row(&self) -> bool {
        match self {
            FaultKind::TooLarge { .. } | FaultKind::LostType(_) => false,
            FaultKind::Undecodable(error) => error.trouble == UndecodableKind::Damaged,
            _ => true,
        }
    }

    /// Where the values of the row begin and end is lost with it.
    pub(crate) fn tears_row(&self) -> bool {
        matches!(
            self,
            FaultKind::Walk(_) | FaultKind::CutOff | FaultKind::Header(_)
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Walk(kind) => write!(
                f,
                "the row makes no sense from here on: {}",
                walk_words(*kind)
            ),
            FaultKind::CutOff => {
                f.write_str("the end of the page is lost, and bytes of the value with it")
            }
            FaultKind::Header(fault) => f.write_str(&header_words(*fault)),
            FaultKind::Chunks {
                value,
                expected,
                first_missing,
                kept,
            } => {
                let kept = if *kept {
                    "; what is left was written"
                } else {
                    ""
                };
                match expected {
                    1 => write!(f, "the only chunk of value {value} in TOAST is missing"),
                    _ => write!(
                        f,
                        "value {value} has {expected} chunks in TOAST, of which chunk {first_missing} is missing{kept}"
                    ),
                }
            }
            FaultKind::Packed(error) => error.fmt(f),
            FaultKind::TooLarge { bytes } => {
                write!(
                    f,
                    "it needs {bytes} bytes of memory, more than --memory allows"
                )
            }
            FaultKind::Undecodable(error) => error.fmt(f),
            FaultKind::Encoding => {
                f.write_str("it holds bytes that are no text in the encoding of its database")
            }
            FaultKind::MissingDefault => {
                f.write_str("the default of a column added later cannot be read")
            }
            FaultKind::LostType(ty) => write!(
                f,
                "the catalogs do not give what {ty} is made of: these are its stored bytes"
            ),
        }
    }
}

fn walk_words(kind: AttributeFaultKind) -> String {
    match kind {
        AttributeFaultKind::BeyondTuple { end, len } => {
            format!("the value would end at byte {end} of a row of {len} bytes")
        }
        AttributeFaultKind::Varlena(fault) => header_words(fault),
        AttributeFaultKind::Unterminated => "a string has no end".into(),
    }
}

fn header_words(fault: VarlenaFault) -> String {
    match fault {
        VarlenaFault::Empty => "nothing is left for the value".into(),
        VarlenaFault::Beyond { claimed, available } => {
            format!("its header claims {claimed} bytes where {available} are left")
        }
        VarlenaFault::Short { claimed } => {
            format!("its header claims {claimed} bytes, fewer than a header has")
        }
        VarlenaFault::Tag { tag } => {
            format!("it is a pointer with tag {tag}, which is never on disk")
        }
    }
}
