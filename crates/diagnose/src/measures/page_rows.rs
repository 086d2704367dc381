//! The rows of a heap page, judged and counted once for all measures.

use pgclinic_cluster::{Doubt, RowState, Visibility};
use pgclinic_format::heap_tuple::{HEAP_HASEXTERNAL, HEAP_HASNULL, HEAP_HASVARWIDTH, HEAP_MOVED};
use pgclinic_format::line_pointer::LinePointer;
use pgclinic_format::{HeapTuple, LpFlags, Page, Xid};

use super::row_ages::Now;
use super::sums::Items;
use crate::check::ForkCx;

/// What a line pointer marked as used holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRow<'a> {
    /// Its line pointer, from 1.
    pub(super) number: u16,
    /// The row; nothing where the line pointer leads nowhere.
    pub(super) tuple: Option<HeapTuple<'a>>,
    /// What became of it.
    pub(super) state: RowState,
}

impl PageRow<'_> {
    /// New queries see it.
    #[inline]
    pub(super) fn is_live(&self) -> bool {
        self.state == RowState::Visible
    }
}

/// What the line pointers and rows of a heap page come to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HeapLook {
    /// Live rows.
    pub live: Items,
    /// Row versions that are not live.
    pub dead: Items,
    /// Those of the dead ones whose transaction's fate is lost.
    pub unknown: u64,
    /// What the live rows take on a new page, aligned and with their line pointers.
    pub packed_bytes: u64,
    /// Line pointers that lead to another.
    pub redirects: u64,
    /// Line pointers of rows that are gone, until VACUUM frees them.
    pub dead_pointers: u64,
    /// Free line pointers.
    pub unused_pointers: u64,
    /// Transactions since the oldest one that a row names, where one is left to freeze.
    pub xid_age: Option<u64>,
    /// Multixacts since the oldest one that a row names.
    pub multixact_age: Option<u64>,
}

impl HeapLook {
    #[inline]
    fn add(&mut self, len: u16, state: RowState) {
        if state == RowState::Visible {
            self.packed_bytes += u64::from(len).next_multiple_of(8) + LinePointer::SIZE as u64;
            self.live.add(len);
        } else {
            self.unknown += u64::from(matches!(state, RowState::Undecided(_)));
            self.dead.add(len);
        }
    }

    fn add_ages(&mut self, tuple: HeapTuple<'_>, now: Option<Now>) {
        if let Some((xid, multixact)) = now.map(|now| now.ages(tuple)) {
            self.xid_age = self.xid_age.max(xid);
            self.multixact_age = self.multixact_age.max(multixact);
        }
    }
}

/// What a row's header says of its transactions. Rows that one statement wrote say the same, so that most are
/// judged as the row before.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    xmin: Xid,
    xmax: Xid,
    flags: u16,
    /// The transaction that moved the row, which counts for moved ones alone.
    moved_by: Option<u32>,
}

impl Stamp {
    #[inline]
    fn of(tuple: HeapTuple<'_>) -> Self {
        const OF_VALUES: u16 = HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL;
        Stamp {
            xmin: tuple.t_xmin(),
            xmax: tuple.t_xmax(),
            flags: tuple.t_infomask() & !OF_VALUES,
            moved_by: (tuple.t_infomask() & HEAP_MOVED != 0).then(|| tuple.t_field3()),
        }
    }
}

/// Puts the rows of a page into `rows`, and tells what they come to.
pub(super) fn judge<'a>(
    page: Page<'a>,
    fork: &ForkCx<'_>,
    rows: &mut Vec<PageRow<'a>>,
) -> HeapLook {
    let mut look = HeapLook::default();
    rows.clear();
    let Some(cluster) = fork.cluster else {
        return look;
    };
    let visibility = Visibility::new(cluster);
    let now = Now::of(fork);
    let mut before: Option<(Stamp, RowState)> = None;
    for (number, pointer) in page.line_pointers() {
        match pointer.flags() {
            LpFlags::Normal => {}
            LpFlags::Redirect => look.redirects += 1,
            LpFlags::Dead => look.dead_pointers += 1,
            LpFlags::Unused => look.unused_pointers += 1,
        }
        if pointer.flags() != LpFlags::Normal {
            continue;
        }
        let tuple = page.item(pointer).and_then(HeapTuple::parse);
        let state = tuple.map(|tuple| {
            let stamp = Stamp::of(tuple);
            if let Some((_, state)) = before.filter(|(known, _)| *known == stamp) {
                return state;
            }
            look.add_ages(tuple, now);
            let state = visibility.state(tuple);
            before = Some((stamp, state));
            state
        });
        let state = state.unwrap_or(RowState::Undecided(Doubt::Insertion));
        look.add(pointer.lp_len(), state);
        rows.push(PageRow {
            number,
            tuple,
            state,
        });
    }
    look
}
