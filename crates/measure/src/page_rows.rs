//! The rows of a heap page, judged and counted once for all measures.

use pgclinic_cluster::{Death, Doubt, ForkContext, RowState, Stamp, Visibility};
use pgclinic_format::line_pointer::LinePointer;
use pgclinic_format::{HeapTuple, LpFlags, Page};

use super::losses;
use super::row_ages::Now;
use super::sums::Items;

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
    /// Those of the dead ones whose insertion was rolled back.
    pub aborted: u64,
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
    /// A row says that a transaction committed of which `pg_xact` says that it did not.
    pub is_against_status: bool,
}

impl HeapLook {
    #[inline]
    fn add(&mut self, len: u16, state: RowState) {
        if state == RowState::Visible {
            self.packed_bytes += u64::from(len).next_multiple_of(8) + LinePointer::SIZE as u64;
            self.live.add(len);
        } else {
            self.unknown += u64::from(matches!(state, RowState::Undecided(_)));
            self.aborted += u64::from(state == RowState::Dead(Death::Aborted));
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

/// Puts the rows of a page into `rows`, and tells what they come to.
pub(super) fn judge<'a>(
    page: Page<'a>,
    fork: &ForkContext<'_>,
    rows: &mut Vec<PageRow<'a>>,
) -> HeapLook {
    let mut look = HeapLook::default();
    rows.clear();
    let Some(cluster) = fork.cluster else {
        return look;
    };
    let visibility = Visibility::new(cluster);
    let now = Now::of(fork);
    let asks_status = losses::compares(fork);
    let mut before: Option<(Stamp, RowState)> = None;
    rows.reserve(page.line_pointer_count().into());
    for (number, pointer) in page.line_pointers() {
        let others = match pointer.flags() {
            LpFlags::Normal => None,
            LpFlags::Redirect => Some(&mut look.redirects),
            LpFlags::Dead => Some(&mut look.dead_pointers),
            LpFlags::Unused => Some(&mut look.unused_pointers),
        };
        if let Some(others) = others {
            *others += 1;
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
            look.is_against_status |=
                asks_status && !look.is_against_status && visibility.status_denies_insertion(tuple);
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
