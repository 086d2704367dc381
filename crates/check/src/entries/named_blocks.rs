//! The blocks of a table that the entries of one of its indexes name, gathered while the pass over
//! the pages looks at the index anyway: a cheap first answer to whether rows are missed anywhere.
//!
//! An index is a witness for its table: VACUUM removes the entries of a block before it truncates
//! the table, and a row has its page before it has its entry.

use std::sync::atomic::{AtomicU64, Ordering};

use pgclinic_format::index_entries::{for_each_entry, names_rows};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{BlockNo, Fork, Page};
use pgclinic_model::document::Level;
use pgclinic_spill::{Budget, Lease};

use crate::check::ForkCx;

/// Bits of a set: of larger tables a bit stands for several blocks, so that the set stays in the
/// core's own cache and a thousand large indexes fit in memory.
pub(crate) const BITS_MAX: u64 = 1 << 20;

/// The index's entries prove that its table has the blocks that they name: a server uses the index
/// and VACUUM keeps it, which is not so while it is built, and after that broke off.
pub(crate) fn is_witness(fork: &ForkCx<'_>) -> bool {
    let index = fork.relation.and_then(|relation| relation.index.as_ref());
    let in_use = index.is_some_and(|index| index.valid && index.ready && index.live);
    let compared = fork.level >= Level::Structure;
    in_use && compared && fork.fork() == Fork::Main && fork.method.is_some_and(names_rows)
}

/// Shared by all threads of the pass.
#[derive(Debug)]
pub(crate) struct NamedBlocks {
    /// A bit for `1 << shift` blocks of the table; empty where there was no memory for it.
    words: Vec<AtomicU64>,
    shift: u32,
    /// One more than the highest block named.
    end: AtomicU64,
    _lease: Option<Lease>,
}

impl NamedBlocks {
    /// None yet, of a table of so many blocks.
    pub(crate) fn new(table_blocks: u64, budget: &Budget) -> Self {
        let mut shift = 0;
        while table_blocks >> shift > BITS_MAX {
            shift += 1;
        }
        let words = (table_blocks >> shift) / 64 + 1;
        let lease = budget.try_take(words * 8);
        let kept = if lease.is_some() { words } else { 0 };
        NamedBlocks {
            words: (0..kept).map(|_| AtomicU64::new(0)).collect(),
            shift,
            end: AtomicU64::new(0),
            _lease: lease,
        }
    }

    /// Adds what the entries of a page of the index name.
    pub(crate) fn add_page(&self, method: AccessMethod, page: Page<'_>) {
        let (mut end, mut last) = (0, INVALID_BLOCK);
        for_each_entry(method, page, |_, tid| {
            // Neighbours in an index are often neighbours in the table.
            if tid.block == last || tid.block == INVALID_BLOCK {
                return;
            }
            last = tid.block;
            end = end.max(u64::from(tid.block) + 1);
            self.add(tid.block);
        });
        if end > self.end.load(Ordering::Relaxed) {
            self.end.fetch_max(end, Ordering::Relaxed);
        }
    }

    #[inline]
    fn add(&self, block: BlockNo) {
        let Some((word, bit)) = self.bit_of(block) else {
            return;
        };
        // Most bits are set already, and reading one costs less than setting it.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    #[inline]
    fn bit_of(&self, block: BlockNo) -> Option<(&AtomicU64, u64)> {
        let at = u64::from(block) >> self.shift;
        let word = self.words.get(usize::try_from(at / 64).ok()?)?;
        Some((word, 1 << (at % 64)))
    }

    /// Some entry may name the block: false only where none does.
    pub(crate) fn may_name(&self, block: BlockNo) -> bool {
        match self.bit_of(block) {
            Some((word, bit)) => word.load(Ordering::Relaxed) & bit != 0,
            None => self.words.is_empty() || u64::from(block) < self.end(),
        }
    }

    /// One more than the highest block named.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_table_shares_its_bits() {
        let named = NamedBlocks::new(BITS_MAX * 4, &Budget::new(1 << 20));
        named.add(4);
        assert!(
            named.may_name(7) && !named.may_name(8),
            "four blocks a bit: a bit too many asks for a second look, a bit too few would be a lie"
        );
    }

    #[test]
    fn without_memory_every_block_may_be_named() {
        let named = NamedBlocks::new(1000, &Budget::new(0));
        assert!(named.may_name(3));
    }
}
