//! The highest numbers of pages, and where each was seen.

use pgclinic_format::{BlockNo, Lsn, Oid};

/// Where a number was seen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Seen {
    /// The first file of the fork.
    pub(super) path: String,
    pub(super) block: BlockNo,
    /// 0 for the page.
    pub(super) item: u16,
}

/// A number with the place of the row or page that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Highest<T> {
    pub(super) value: T,
    pub(super) at: Seen,
}

/// The highest numbers of some pages. Transactions and multixacts count from `from`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Numbers {
    /// Distance from the oldest one.
    pub(super) xid: Option<Highest<u32>>,
    pub(super) multi: Option<Highest<u32>>,
    pub(super) oid: Option<Highest<Oid>>,
    pub(super) lsn: Option<Highest<Lsn>>,
    /// Of unlogged relations, which have no place in WAL.
    pub(super) unlogged_lsn: Option<Highest<Lsn>>,
    /// Numbers that lie farther than files reach, and one of them.
    pub(super) beyond: u64,
    pub(super) one_beyond: Option<Highest<u32>>,
    /// Pages that were changed after the redo point.
    pub(super) younger_pages: u64,
}

/// Pages of a worker come in rising order, so that the first of equal numbers stays.
pub(super) fn raise<T: PartialOrd + Copy>(
    own: &mut Option<Highest<T>>,
    value: T,
    at: &dyn Fn() -> Seen,
) {
    if own.as_ref().is_none_or(|own| value > own.value) {
        *own = Some(Highest { value, at: at() });
    }
}

/// Of equal numbers the one at the lowest place, whoever saw it.
pub(super) fn raise_to<T: PartialOrd + Copy>(
    own: &mut Option<Highest<T>>,
    other: Option<Highest<T>>,
) {
    let Some(other) = other else { return };
    let is_higher = own.as_ref().is_none_or(|own| {
        other.value > own.value || (other.value == own.value && other.at < own.at)
    });
    if is_higher {
        *own = Some(other);
    }
}

impl Numbers {
    /// Those of both.
    pub(super) fn add(&mut self, other: Numbers) {
        raise_to(&mut self.xid, other.xid);
        raise_to(&mut self.multi, other.multi);
        raise_to(&mut self.oid, other.oid);
        raise_to(&mut self.lsn, other.lsn);
        raise_to(&mut self.unlogged_lsn, other.unlogged_lsn);
        raise_to(&mut self.one_beyond, other.one_beyond);
        self.beyond += other.beyond;
        self.younger_pages += other.younger_pages;
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.item {
            0 => write!(f, "{}:{}", self.path, self.block),
            item => write!(f, "{}:{}:{item}", self.path, self.block),
        }
    }
}
