//! Numbers with a meaning: block, log position, transaction, object.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An object identifier; 0 is `InvalidOid`.
pub type Oid = u32;

/// `FirstNormalObjectId`: what a person makes has OIDs from here on; those below come with the
/// server.
pub const FIRST_NORMAL_OID: Oid = 16384;

/// The number of a block in a whole fork, through all its segments.
pub type BlockNo = u32;

/// `InvalidBlockNumber`: no block has this number.
pub const INVALID_BLOCK: BlockNo = u32::MAX;

/// MAXALIGN on every build that is read here, in bytes.
pub const MAXALIGN: usize = 8;

/// A position in the write-ahead log, in bytes since its beginning.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// A 32-bit transaction number, which wraps; truth: `src/include/access/transam.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Xid(pub u32);

impl Xid {
    /// `InvalidTransactionId`.
    pub const INVALID: Xid = Xid(0);
    /// `BootstrapTransactionId`.
    pub const BOOTSTRAP: Xid = Xid(1);
    /// `FrozenTransactionId`.
    pub const FROZEN: Xid = Xid(2);
    /// `FirstNormalTransactionId`.
    pub const FIRST_NORMAL: Xid = Xid(3);

    /// The one that is given out after it, as `TransactionIdAdvance`.
    #[must_use]
    pub fn next(self) -> Xid {
        Xid(self.0.wrapping_add(1).max(Self::FIRST_NORMAL.0))
    }

    /// Not one of the three reserved numbers.
    pub fn is_normal(self) -> bool {
        self.0 >= Self::FIRST_NORMAL.0
    }

    /// Older than `other` on the circle of 2^32 numbers; reserved numbers are older than all
    /// others. The same answer as `TransactionIdPrecedes`.
    pub fn precedes(self, other: Xid) -> bool {
        if self.is_normal() && other.is_normal() {
            self.0 != other.0 && other.0.wrapping_sub(self.0) < 1 << 31
        } else {
            self.0 < other.0
        }
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A multixact number, which wraps; 0 is invalid. Truth: `src/include/access/multixact.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct MultiXactId(pub u32);

impl MultiXactId {
    /// `FirstMultiXactId`.
    pub const FIRST: MultiXactId = MultiXactId(1);

    /// The one that is given out after it.
    #[must_use]
    pub fn next(self) -> MultiXactId {
        MultiXactId(self.0.wrapping_add(1).max(Self::FIRST.0))
    }

    /// Older than `other` on the circle, as `MultiXactIdPrecedes`.
    pub fn precedes(self, other: MultiXactId) -> bool {
        self.0 != other.0 && other.0.wrapping_sub(self.0) < 1 << 31
    }
}

impl fmt::Display for MultiXactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The forks of a relation; truth: `src/include/common/relpath.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fork {
    /// The relation's own pages.
    Main,
    /// The free space map.
    Fsm,
    /// The visibility map.
    Vm,
    /// What an unlogged relation is reset to after a crash.
    Init,
}

impl Fork {
    /// All forks, in file name order of PostgreSQL's fork numbers.
    pub const ALL: [Fork; 4] = [Fork::Main, Fork::Fsm, Fork::Vm, Fork::Init];

    /// `main`, `fsm`, `vm` or `init`.
    pub fn name(self) -> &'static str {
        match self {
            Fork::Main => "main",
            Fork::Fsm => "fsm",
            Fork::Vm => "vm",
            Fork::Init => "init",
        }
    }

    /// What stands behind the filenode in a file's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Fork::Main => "",
            Fork::Fsm => "_fsm",
            Fork::Vm => "_vm",
            Fork::Init => "_init",
        }
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place in a heap: block and line pointer number, printed as the server prints a `ctid`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Tid {
    /// The block in the main fork.
    pub block: BlockNo,
    /// The line pointer number, from 1; 0 and numbers from 0xfffd have other meanings.
    pub offset: u16,
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_ordered_on_a_circle() {
        assert!(Xid(100).precedes(Xid(200)));
        assert!(Xid(4_000_000_000).precedes(Xid(100)));
        assert!(Xid::FROZEN.precedes(Xid(3)));
        assert!(!Xid(7).precedes(Xid(7)));
        assert!(!Xid(3).precedes(Xid(3 + (1 << 31))));
    }

    #[test]
    fn an_lsn_prints_as_the_server_prints_it() {
        assert_eq!(Lsn(0x1_0000_ABCD).to_string(), "1/ABCD");
    }
}
