//! The quick look: one fused pass that tells a page that is plainly right from one that somebody
//! should look at.
//!
//! Nearly every page of nearly every cluster is right, and asking two dozen checks one after the
//! other costs more than reading the disk. A page that passes here is one on which every check
//! that says [`screened`](crate::check::Wants::screened) stays silent; a test holds the screen to
//! that over damaged pages. It may be stricter than the checks, never laxer.
//!
//! A page whose rows were updated, deleted or locked passes too, but for the checks that follow
//! update chains and look transactions up: they say
//! [`passes_plain_rows_only`](PageCheck::passes_plain_rows_only).

mod items;
mod leaf;
mod rows;

use pgclinic_format::btree::{BtreePage, BtreeTuple};
use pgclinic_format::index_page::{AccessMethod, has_line_pointers};
use pgclinic_format::page::{HEADER_BYTES, LAYOUT_VERSION, PD_VALID_FLAG_BITS};
use pgclinic_format::{BlockNo, Fork, LpFlags, Page};
use pgclinic_model::document::Level;

use crate::btree::KeyOrder;
use crate::check::{ForkCx, PageCheck};

use items::{Bounds, Taken};
use rows::Rows;

/// The smallest item that any index has.
const INDEX_ITEM_BYTES: usize = 8;

/// What the quick look makes of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FastPathVerdict {
    /// Somebody should look.
    Odd,
    /// Right, as far as a row can be right without its transactions and its neighbours.
    Right,
    /// Right, and every row was inserted by a transaction that committed, as its hint says, and
    /// is not updated, deleted or part of a chain; the flags of the page and the visibility map
    /// are no more than such rows allow.
    Plain,
}

impl FastPathVerdict {
    /// The check would be silent on a page that looked like this.
    pub fn stands_in_for(self, check: &dyn PageCheck) -> bool {
        check.wants().screened
            && match self {
                FastPathVerdict::Odd => false,
                FastPathVerdict::Right => !check.passes_plain_rows_only(),
                FastPathVerdict::Plain => true,
            }
    }
}

/// What the quick look needs to know of a fork, worked out once a thread.
pub struct FastPath<'a> {
    special: Option<usize>,
    lines: LinePointerTest,
    method: Option<AccessMethod>,
    /// The order of a btree's keys.
    keys: Option<&'a KeyOrder>,
    rows: Option<Rows<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinePointerTest {
    None,
    Index,
    Heap,
}

impl<'a> FastPath<'a> {
    /// For the pages of this fork.
    pub fn new(fork: &'a ForkCx<'a>) -> Self {
        let main = fork.fork() == Fork::Main;
        let page_len = usize::try_from(fork.build.block_size).unwrap_or(8192);
        let method = fork.method.filter(|_| main || fork.fork() == Fork::Init);
        let lines = match method {
            _ if fork.level == Level::Pages || !main => LinePointerTest::None,
            Some(AccessMethod::Heap) => LinePointerTest::Heap,
            Some(_) => LinePointerTest::Index,
            None => LinePointerTest::None,
        };
        FastPath {
            special: method.map(|method| page_len - method.special_bytes()),
            lines,
            method,
            keys: fork.key_order.as_ref(),
            rows: fork
                .columns
                .filter(|_| lines == LinePointerTest::Heap)
                .map(|columns| Rows::new(fork, columns)),
        }
    }

    /// Which of the screened checks would be silent on this page.
    pub fn glance(&self, page: Page<'_>, block: BlockNo) -> FastPathVerdict {
        self.glance_keeping(page, block, &mut |_, _| {})
    }

    /// The same; `keep` is handed a leaf that is right, and its last entry where no two of its
    /// entries have one key.
    pub(crate) fn glance_keeping(
        &self,
        page: Page<'_>,
        block: BlockNo,
        keep: &mut dyn FnMut(BtreePage<'_>, Option<BtreeTuple<'_>>),
    ) -> FastPathVerdict {
        if !self.header_is_right(page) {
            return FastPathVerdict::Odd;
        }
        match self.lines {
            LinePointerTest::None => FastPathVerdict::Plain,
            LinePointerTest::Index if self.index_page_is_right(page, keep) => {
                FastPathVerdict::Plain
            }
            LinePointerTest::Index => FastPathVerdict::Odd,
            LinePointerTest::Heap => self
                .rows
                .as_ref()
                .map_or(FastPathVerdict::Odd, |rows| rows.glance(page, block)),
        }
    }

    fn header_is_right(&self, page: Page<'_>) -> bool {
        let (lower, upper, special) = (page.pd_lower(), page.pd_upper(), page.pd_special());
        let special_is_right = match self.special {
            Some(expected) => usize::from(special) == expected,
            None => usize::from(special) <= page.len() && special % 8 == 0,
        };
        special_is_right
            && page.pd_flags() & !PD_VALID_FLAG_BITS == 0
            && usize::from(lower) >= HEADER_BYTES
            && lower <= upper
            && upper <= special
            && usize::from(page.page_size()) == page.len()
            && page.layout_version() == LAYOUT_VERSION
    }

    fn index_page_is_right(
        &self,
        page: Page<'_>,
        keep: &mut dyn FnMut(BtreePage<'_>, Option<BtreeTuple<'_>>),
    ) -> bool {
        if self.method != Some(AccessMethod::Btree) {
            return self.index_items_are_right(page);
        }
        match BtreePage::parse(page).filter(|tree| !tree.is_ignored()) {
            // The meta page, and pages on their way out.
            None => self.index_items_are_right(page),
            Some(tree) => {
                tree.is_leaf()
                    && self
                        .keys
                        .is_some_and(|keys| leaf::is_right(tree, keys, keep))
            }
        }
    }

    fn index_items_are_right(&self, page: Page<'_>) -> bool {
        let Some(method) = self.method else {
            return false;
        };
        if !has_line_pointers(method, page) {
            return true;
        }
        let mut taken = Taken::new();
        let bounds = Bounds::of(page, INDEX_ITEM_BYTES);
        let all_stand_right = page.line_pointers().all(|(_, pointer)| {
            let has_bytes = match pointer.flags() {
                LpFlags::Normal => true,
                LpFlags::Dead => pointer.lp_len() > 0,
                LpFlags::Unused => return pointer.lp_len() == 0,
                LpFlags::Redirect => return false,
            };
            if has_bytes && bounds.hold(pointer) {
                taken.take(pointer);
                return true;
            }
            !has_bytes
        });
        all_stand_right && taken.is_disjoint()
    }
}
