//! Which of a page's bytes its line pointers account for, and whether its rows belong there.

use pgclinic_format::heap_tuple::MOVED_PARTITIONS_OFFSET;
use pgclinic_format::{BlockNo, HeapTuple, LinePointer, Xid};

/// How far the line pointers of a page account for its rows.
pub(super) struct Covered {
    pub(super) is_whole: bool,
    pub(super) rejected: u64,
}

/// The rows of a page that were met.
pub(super) struct Coverage {
    /// A bit for each eighth byte of the largest page where a row may begin.
    starts: [u64; 64],
    pub(super) bytes: usize,
    pub(super) rejected: u64,
    /// Rows that never were updated and say that they stand on this page, and those that say
    /// another one.
    pub(super) here: u64,
    pub(super) elsewhere: u64,
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage {
            starts: [0; 64],
            bytes: 0,
            rejected: 0,
            here: 0,
            elsewhere: 0,
        }
    }
}

impl Coverage {
    /// A row without `xmax` points to itself; where freezing took an `xmax` away, to a version that
    /// was rolled back.
    pub(super) fn ask_place(&mut self, tuple: HeapTuple<'_>, block: BlockNo) {
        let own = tuple.t_ctid();
        let is_settled = tuple.t_xmax() != Xid::INVALID || tuple.xmin_is_frozen();
        if is_settled || own.offset >= MOVED_PARTITIONS_OFFSET {
            return;
        }
        if own.block == block {
            self.here += 1
        } else {
            self.elsewhere += 1
        }
    }

    /// Counts an item in; not one that begins where another does.
    pub(super) fn take(&mut self, pointer: LinePointer) -> bool {
        let eighth = usize::from(pointer.lp_off() / 8);
        let Some(word) = self.starts.get_mut(eighth / 64) else {
            return false;
        };
        let bit = 1 << (eighth % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.bytes += usize::from(pointer.lp_len()).next_multiple_of(8);
        true
    }
}
