//! Why a value has no text.

use std::fmt;

/// The kinds of trouble; only `Damaged` accuses the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndecodableKind {
    /// No server writes these bytes for this type.
    Damaged,
    /// The bytes may be right, but this type is not decoded here.
    Unsupported,
    /// The value is larger or deeper than the caller's `Limits`.
    Limit,
    /// The text is not UTF-8; it may be right in the database's own encoding.
    Encoding,
}

/// A value that could not be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Whose fault it is.
    pub trouble: UndecodableKind,
    /// What was seen, in lower case without a full stop.
    pub what: &'static str,
    /// Bytes from the beginning of the innermost value that could not be decoded.
    pub at: usize,
}

impl Undecodable {
    pub(super) fn damaged(what: &'static str, at: usize) -> Self {
        Undecodable {
            trouble: UndecodableKind::Damaged,
            what,
            at,
        }
    }

    pub(super) fn unsupported(what: &'static str) -> Self {
        Undecodable {
            trouble: UndecodableKind::Unsupported,
            what,
            at: 0,
        }
    }

    pub(super) fn limit(what: &'static str) -> Self {
        Undecodable {
            trouble: UndecodableKind::Limit,
            what,
            at: 0,
        }
    }

    pub(super) fn encoding(at: usize) -> Self {
        Undecodable {
            trouble: UndecodableKind::Encoding,
            what: "text is not valid UTF-8",
            at,
        }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.trouble {
            UndecodableKind::Damaged | UndecodableKind::Encoding => {
                write!(f, "{} at byte {}", self.what, self.at)
            }
            UndecodableKind::Unsupported | UndecodableKind::Limit => f.write_str(self.what),
        }
    }
}

impl std::error::Error for Undecodable {}
