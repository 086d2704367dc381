//! A page of the heap as its indexes see it.

use pgclinic_cluster::{Cluster, RowState, Visibility};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_MOVED, HEAP_ONLY_TUPLE, HEAP_XMAX_IS_MULTI,
};
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, MultiXactId, Page, Xid};

use crate::entries::row_map::Standing;

/// What the line pointers of a page are to an index, and the live rows behind them.
#[derive(Default)]
pub(crate) struct HeapItems {
    /// One a line pointer.
    pub(crate) standings: Vec<Standing>,
    /// Line pointers that entries name, with the one of the live version.
    pub(crate) live: Vec<(u16, u16)>,
    /// Some line pointer may have an entry, and need not.
    pub(crate) is_doubtful: bool,
}

impl HeapItems {
    /// Reads a page anew.
    pub(crate) fn read(&mut self, page: Page<'_>, block: BlockNo, cluster: &Cluster) {
        self.clear();
        let visibility = Visibility::new(cluster);
        for (item, pointer) in page.line_pointers() {
            let standing = match pointer.flags() {
                LpFlags::Unused => Standing::Nothing,
                LpFlags::Dead => Standing::Allowed,
                LpFlags::Redirect => {
                    let chain = (item, pointer.lp_off());
                    self.chain(page, block, chain, (cluster, &visibility))
                }
                LpFlags::Normal => match page.item(pointer).and_then(HeapTuple::parse) {
                    None => Standing::Allowed,
                    Some(tuple) if is_of_infomask2(tuple, HEAP_ONLY_TUPLE) => Standing::HeapOnly,
                    Some(tuple) if !was_moved(tuple) && visibility.is_visible(tuple) => {
                        self.live.push((item, item));
                        Standing::Live
                    }
                    Some(_) => self.chain(page, block, (item, item), (cluster, &visibility)),
                },
            };
            self.is_doubtful |= standing == Standing::Allowed;
            self.standings.push(standing);
        }
    }

    /// Follows a chain of versions on the page to a live one.
    fn chain(
        &mut self,
        page: Page<'_>,
        block: BlockNo,
        (root, start): (u16, u16),
        (cluster, visibility): (&Cluster, &Visibility<'_>),
    ) -> Standing {
        let mut at = start;
        let mut updater = None;
        for _ in 0..page.line_pointer_count() {
            let pointer = page.line_pointer(at);
            let tuple = pointer
                .filter(|pointer| pointer.flags() == LpFlags::Normal)
                .and_then(|pointer| page.item(pointer))
                .and_then(HeapTuple::parse);
            let Some(tuple) = tuple else { break };
            // Another row stands where the next version stood.
            if updater.is_some_and(|updater| updater != tuple.t_xmin()) {
                break;
            }
            // Rows that an old VACUUM FULL moved are told by nobody's status alone.
            if was_moved(tuple) {
                break;
            }
            match visibility.state(tuple) {
                RowState::Visible => {
                    self.live.push((root, at));
                    return Standing::Live;
                }
                RowState::Undecided(_) => break,
                RowState::Dead(_) => {}
            }
            let next = tuple.t_ctid();
            let goes_on = is_of_infomask2(tuple, HEAP_HOT_UPDATED) && next.block == block;
            if !goes_on || next.offset == at {
                break;
            }
            at = next.offset;
            updater = updater_of(tuple, cluster);
        }
        Standing::Allowed
    }
}

/// The transaction that made the next version, as far as it is known.
fn updater_of(tuple: HeapTuple<'_>, cluster: &Cluster) -> Option<Xid> {
    if tuple.has(HEAP_XMAX_IS_MULTI) {
        cluster.multixacts.updater(MultiXactId(tuple.t_xmax().0))?
    } else {
        Some(tuple.t_xmax())
    }
}

#[inline]
fn was_moved(tuple: HeapTuple<'_>) -> bool {
    tuple.t_infomask() & HEAP_MOVED != 0
}

#[inline]
fn is_of_infomask2(tuple: HeapTuple<'_>, flag: u16) -> bool {
    tuple.t_infomask2() & flag != 0
}

impl HeapItems {
    /// A page that cannot be read has no line pointers.
    pub(crate) fn clear(&mut self) {
        self.standings.clear();
        self.live.clear();
        self.is_doubtful = false;
    }
}
