//! The faces of leaves: what the walks along a level ask of one, kept from the pass over the pages
//! so that leaves are not read again.
//!
//! A face is the links of a page, its first entry, its last one and its high key. Only pages that
//! the screen was content with have one, and only as far as memory allows; the others are read.

use pgclinic_format::BlockNo;
use pgclinic_format::btree::{BTP_DELETED, BTP_HALF_DEAD, BtreePage, BtreeTuple};
use pgclinic_format::index_tuple::IndexTuple;
use pgclinic_spill::{Budget, Lease};

/// Entries longer than this together are left on their page.
const ENTRIES_BYTES_MAX: usize = 512;
/// Bytes that are asked of the budget at a time.
const LEASE_BYTES: u64 = 64 << 10;

/// A page of a tree as those see it who walk along its level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSummary<'a> {
    /// Left neighbour.
    pub(crate) prev: BlockNo,
    /// Right neighbour.
    pub(crate) next: BlockNo,
    /// 0 for the leaves.
    pub(crate) level: u32,
    /// `btpo_flags`.
    pub(crate) flags: u16,
    /// The first entry with a key, and its number.
    pub(crate) first: Option<(u16, BtreeTuple<'a>)>,
    /// The high key.
    pub(crate) high_key: Option<BtreeTuple<'a>>,
    /// The last entry of a leaf on which no two entries have one key.
    pub(crate) last_of_distinct: Option<BtreeTuple<'a>>,
}

impl<'a> PageSummary<'a> {
    /// Of the page itself.
    pub(crate) fn of(page: BtreePage<'a>) -> Self {
        let first = page.first_key();
        PageSummary {
            prev: page.prev,
            next: page.next,
            level: page.level,
            flags: page.flags,
            first: page.tuple(first).map(|tuple| (first, tuple)),
            high_key: page.high_key(),
            last_of_distinct: None,
        }
    }

    /// Deleted or on its way out: `BTP_DELETED`, `BTP_HALF_DEAD`.
    pub(crate) fn is_ignored(&self) -> bool {
        self.has(BTP_DELETED | BTP_HALF_DEAD)
    }

    /// Some bit of `flag` is set.
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Where the entries of a face lie in the memory of their kind: first, last, high key.
#[derive(Clone, Copy, Debug)]
struct LeafSummary {
    block: BlockNo,
    prev: BlockNo,
    next: BlockNo,
    start: u32,
    lengths: [u16; 3],
    flags: u16,
}

/// Summaries of the leaves of one index.
#[derive(Debug)]
pub(crate) struct LeafSummaries {
    budget: Budget,
    faces: Vec<LeafSummary>,
    entries: Vec<u8>,
    lease: Option<Lease>,
    is_full: bool,
}

impl LeafSummaries {
    /// None yet; their memory is that of the budget.
    pub(crate) fn new(budget: &Budget) -> Self {
        LeafSummaries {
            budget: budget.clone(),
            faces: Vec::new(),
            entries: Vec::new(),
            lease: None,
            is_full: false,
        }
    }

    /// Keeps a leaf; `last` where no two of its entries have one key.
    pub(crate) fn keep(
        &mut self,
        block: BlockNo,
        page: BtreePage<'_>,
        last: Option<BtreeTuple<'_>>,
    ) {
        let item = |tuple: Option<BtreeTuple<'_>>| tuple.map_or(0, |tuple| tuple.0.item().len());
        let sight = PageSummary::of(page);
        let kept = [sight.first.map(|(_, first)| first), last, sight.high_key];
        let bytes: usize = kept.iter().map(|tuple| item(*tuple)).sum();
        let start = u32::try_from(self.entries.len());
        let fits = page.level == 0 && bytes <= ENTRIES_BYTES_MAX;
        let (Ok(start), true) = (start, fits && self.has_room()) else {
            return;
        };
        for tuple in kept.iter().flatten() {
            self.entries.extend_from_slice(tuple.0.item());
        }
        self.faces.push(LeafSummary {
            block,
            prev: page.prev,
            next: page.next,
            start,
            lengths: kept.map(|tuple| u16::try_from(item(tuple)).unwrap_or(0)),
            flags: page.flags,
        });
    }

    /// Growing vectors hold up to twice what is in them.
    fn has_room(&mut self) -> bool {
        let held = 2 * (self.faces.len() * size_of::<LeafSummary>() + self.entries.len()) as u64;
        let leased = self.lease.as_ref().map_or(0, Lease::bytes);
        if !self.is_full && held + 2 * ENTRIES_BYTES_MAX as u64 > leased {
            self.is_full = !match &mut self.lease {
                Some(lease) => lease.try_grow(LEASE_BYTES.max(leased / 4)),
                none => {
                    *none = self.budget.try_take(LEASE_BYTES);
                    none.is_some()
                }
            };
        }
        !self.is_full
    }
}

/// The faces that all threads kept of one index, in order of their blocks.
#[derive(Default, Debug)]
pub(crate) struct AllLeafSummaries {
    shares: Vec<LeafSummaries>,
}

impl AllLeafSummaries {
    /// Adds what a thread kept.
    pub(crate) fn add(&mut self, mut faces: LeafSummaries) {
        faces.faces.sort_unstable_by_key(|face| face.block);
        self.shares.push(faces);
    }

    /// The face of a block, if there is one.
    pub(crate) fn of(&self, block: BlockNo) -> Option<PageSummary<'_>> {
        self.shares.iter().find_map(|share| share.of(block))
    }
}

impl LeafSummaries {
    fn of(&self, block: BlockNo) -> Option<PageSummary<'_>> {
        let place = self.faces.binary_search_by_key(&block, |face| face.block);
        let face = self.faces.get(place.ok()?)?;
        let mut at = usize::try_from(face.start).ok()?;
        let mut next = |len: u16| {
            let end = at + usize::from(len);
            let bytes = self.entries.get(at..end)?;
            at = end;
            IndexTuple::parse(bytes).map(BtreeTuple)
        };
        let [first, last, high_key] = face.lengths.map(&mut next);
        let first_data = 1 + u16::from(high_key.is_some());
        Some(PageSummary {
            prev: face.prev,
            next: face.next,
            level: 0,
            flags: face.flags,
            first: first.map(|first| (first_data, first)),
            high_key,
            last_of_distinct: last,
        })
    }
}
