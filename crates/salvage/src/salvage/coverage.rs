//! Which of a page's bytes its line pointers account for, and whether its rows belong there.

use pgclinic_cluster::{Misplaced, block_by_rows, misplaced};
use pgclinic_format::heap_tuple::MOVED_PARTITIONS_OFFSET;
use pgclinic_format::{BlockNo, HeapTuple, LinePointer, LpFlags, Page, Xid};
use pgclinic_model::{plural, verb_of};

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
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage {
            starts: [0; 64],
            bytes: 0,
            rejected: 0,
        }
    }
}

/// Most rows of the page that never were updated say that they stand on another one, or all do and
/// that one bears it out: how many, and in words. `read` gives the page of a block.
pub(super) fn says_elsewhere(
    page: Page<'_>,
    block: BlockNo,
    read: impl FnOnce(BlockNo) -> Option<Vec<u8>>,
) -> Option<(u64, String)> {
    if let Some(other) = block_by_rows(page, block)
        && let Some(bytes) = read(other)
        && let Some(misplaced) = misplaced(page, block, &bytes, other)
    {
        let rows = page.line_pointers();
        let rows = rows.filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
        let what = match misplaced {
            Misplaced::Copy => "holds the same: the rows of this one are lost",
            Misplaced::Swapped => "holds the page of this one",
        };
        let why = format!("this is the page of block {other}, which {what}");
        return Some((rows.count() as u64, why));
    }
    let (mut here, mut elsewhere) = (0u64, 0u64);
    for (_, pointer) in page.line_pointers() {
        let is_normal = pointer.flags() == LpFlags::Normal;
        let tuple = is_normal.then(|| page.item(pointer)).flatten();
        match tuple.and_then(HeapTuple::parse).and_then(own_block) {
            Some(own) if own == block => here += 1,
            Some(_) => elsewhere += 1,
            None => {}
        }
    }
    let why = || {
        format!(
            "{elsewhere} {say} that they stand on another page: this one may not belong here",
            elsewhere = plural(elsewhere, "row"),
            say = verb_of(elsewhere, "say")
        )
    };
    (elsewhere > here).then(|| (elsewhere, why()))
}

/// The page that a row says it stands on. A row without `xmax` points to itself; where freezing
/// took an `xmax` away, to a version that was rolled back.
fn own_block(tuple: HeapTuple<'_>) -> Option<BlockNo> {
    let own = tuple.t_ctid();
    let is_settled = tuple.t_xmax() != Xid::INVALID || tuple.xmin_is_frozen();
    // A header of zeros says nothing.
    let names_an_item = (1..MOVED_PARTITIONS_OFFSET).contains(&own.offset);
    (!is_settled && names_an_item).then_some(own.block)
}

impl Coverage {
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
