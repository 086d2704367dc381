//! What the pass over the pages keeps for the comparisons of whole relations, by the place of the
//! fork among the forks of its database.

use std::collections::BTreeMap;

use crate::btree::AllLeafSummaries;
use crate::entries::named_blocks::NamedBlocks;
pub(crate) use crate::walker::DamagedBlocks;

/// Runs of such pages that a thread keeps of one table.
const RUNS_MAX: usize = 1 << 16;

/// What the pass has recorded of each fork, for the relation checks.
#[derive(Default, Debug)]
pub(crate) struct PassRecords {
    /// What walks along a tree ask of its leaves.
    pub(crate) faces: BTreeMap<usize, AllLeafSummaries>,
    /// The blocks of its table that an index names.
    pub(crate) named: BTreeMap<usize, NamedBlocks>,
    /// All-zero pages of tables.
    pub(crate) zeroed: BTreeMap<usize, VacantBlocks>,
    /// Sound pages of tables without a line pointer in use.
    pub(crate) emptied: BTreeMap<usize, VacantBlocks>,
    /// Pages with damage.
    pub(crate) damaged: BTreeMap<usize, DamagedBlocks>,
}

/// Pages of one table that hold nothing.
#[derive(Default, Debug)]
pub(crate) struct VacantBlocks {
    pub(crate) blocks: DamagedBlocks,
    /// Pages beyond the runs that are kept.
    pub(crate) omitted: u64,
}

impl VacantBlocks {
    pub(crate) fn add(&mut self, block: u64) {
        if self.blocks.runs() < RUNS_MAX {
            self.blocks.add(block)
        } else {
            self.omitted += 1
        }
    }

    /// There was none.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.omitted == 0
    }

    pub(crate) fn absorb(&mut self, other: &VacantBlocks) {
        self.blocks.absorb(&other.blocks);
        self.omitted += other.omitted;
    }
}
