//! How the rows of one heap page follow each other: redirects lead to the version that is left of
//! a row, and an updated row leads to its next version.
//!
//! ```text
//! 1 redirect ───► 4 xmin 700 xmax 710 ctid 5 ───► 5 xmin 710   (heap-only, like 4)
//! 2 xmin 705 xmax 720 ctid 6 ───► 6 xmin 720
//! ```
//!
//! A row and the one its `t_ctid` names belong together only if the transaction that changed the
//! first one inserted the second; else the line pointer was used again for something else.
//! Truth: `heap_prune_chain` in `src/backend/access/heap/pruneheap.c`, `verify_heapam.c`.

use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page, Xid};

use crate::heap::tuples::{StoredTuple, tuples};
use crate::heap::xact_lookup::{Updater, XactLookup, updater};

/// One step from a line pointer to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// Line pointer number.
    pub(crate) from: u16,
    /// Line pointer number of the tuple that it leads to.
    pub(crate) to: u16,
    /// `from` is a redirect, not a row.
    pub(crate) is_redirect: bool,
}

/// The chains of a page.
pub(crate) struct Chains<'a> {
    /// Tuples by line pointer number.
    tuples: Vec<Option<StoredTuple<'a>>>,
    /// Every step, in the order of the line pointers that they come from.
    pub(crate) steps: Vec<Step>,
    /// Line pointers that a row may lead to whose changer is not known.
    perhaps: Vec<u16>,
}

impl<'a> Chains<'a> {
    /// Follows every line pointer of a page.
    pub(crate) fn of(page: Page<'a>, block: BlockNo, fates: Option<&XactLookup<'_>>) -> Self {
        let mut chains = Chains {
            tuples: vec![None; usize::from(page.line_pointer_count()) + 1],
            steps: Vec::new(),
            perhaps: Vec::new(),
        };
        for stored in tuples(page) {
            if let Some(place) = chains.tuples.get_mut(usize::from(stored.number)) {
                *place = Some(stored);
            }
        }
        for (from, pointer) in page.line_pointers() {
            match pointer.flags() {
                LpFlags::Redirect => chains.redirect(from, pointer.lp_off()),
                LpFlags::Normal => chains.update(from, block, fates),
                _ => {}
            }
        }
        chains
    }

    /// The tuple behind a line pointer.
    pub(crate) fn tuple(&self, number: u16) -> Option<StoredTuple<'a>> {
        self.tuples.get(usize::from(number)).copied().flatten()
    }

    /// All tuples, rising.
    pub(crate) fn tuples(&self) -> impl Iterator<Item = StoredTuple<'a>> {
        self.tuples.iter().copied().flatten()
    }

    /// From updated rows to their next versions.
    pub(crate) fn updates(&self) -> impl Iterator<Item = (StoredTuple<'a>, StoredTuple<'a>)> {
        let updates = self.steps.iter().filter(|step| !step.is_redirect);
        updates.filter_map(|step| Some((self.tuple(step.from)?, self.tuple(step.to)?)))
    }

    /// For each line pointer number whether something leads to it, or may.
    pub(crate) fn is_led_to(&self) -> Vec<bool> {
        let mut led = vec![false; self.tuples.len()];
        let ends = self.steps.iter().map(|step| step.to);
        for number in ends.chain(self.perhaps.iter().copied()) {
            if let Some(place) = led.get_mut(usize::from(number)) {
                *place = true;
            }
        }
        led
    }

    fn redirect(&mut self, from: u16, to: u16) {
        if self.tuple(to).is_some() {
            self.steps.push(Step {
                from,
                to,
                is_redirect: true,
            });
        }
    }

    fn update(&mut self, from: u16, block: BlockNo, fates: Option<&XactLookup<'_>>) {
        let Some(stored) = self.tuple(from) else {
            return;
        };
        let ctid = stored.tuple.t_ctid();
        let next = self
            .tuple(ctid.offset)
            .filter(|next| ctid.block == block && next.number != from);
        let Some(next) = next else { return };
        match updater(stored.tuple, fates) {
            Updater::Xid(xid) if is_inserted_by(next.tuple, xid) => self.steps.push(Step {
                from,
                to: next.number,
                is_redirect: false,
            }),
            Updater::Unknown => self.perhaps.push(next.number),
            _ => {}
        }
    }
}

fn is_inserted_by(tuple: HeapTuple<'_>, xid: Xid) -> bool {
    xid.is_normal() && tuple.t_xmin() == xid
}
