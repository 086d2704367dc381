//! Rows out of pages that no longer name them: found by the structure of their headers and values.
//!
//! A page whose header is gone may still have its line pointers, and a row whose line pointer is
//! gone still has a header that says how many columns follow, where they begin and which are null.
//! A place is taken for a row only when all of that agrees with the table and every value can be
//! read.

mod page_state;
mod probe;
mod realign;
mod regions;

pub(crate) use page_state::{PageState, is_row};
pub(crate) use probe::Probe;
pub(crate) use realign::realigned;
pub(crate) use regions::{derived_pointers, is_covered, uncovered};

use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LinePointer, LpFlags, Page};

/// A row that was found by its structure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'p> {
    pub(crate) tuple: HeapTuple<'p>,
    /// Where it stood: by a line pointer, or as the row itself says; item 0 where neither tells.
    pub(crate) place: Tid,
}

/// The rows of a page whose header makes no sense.
pub(crate) fn of_broken_page<'p>(
    page: Page<'p>,
    block: BlockNo,
    probe: &mut Probe<'_>,
) -> Vec<Found<'p>> {
    let pointers = derived_pointers(page);
    let mut found = named(page, block, &pointers, probe);
    let free = uncovered(page, &pointers, pointers_end(&pointers));
    let more = between_rows(page, block, &free, probe);
    found.extend(without_copies(more, &found));
    found
}

/// The rows of a page with a sound header that stand where no line pointer leads.
pub(crate) fn of_gaps<'p>(page: Page<'p>, block: BlockNo, probe: &mut Probe<'_>) -> Vec<Found<'p>> {
    // A line pointer that names no row hides none.
    let pointers: Vec<(u16, LinePointer)> = page
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
        .filter(|(_, pointer)| {
            let tuple = page.item(*pointer).and_then(HeapTuple::parse);
            tuple.is_some_and(|tuple| probe.is_row(tuple))
        })
        .collect();
    let named = named(page, block, &pointers, probe);
    let free = uncovered(page, &pointers, usize::from(page.pd_upper()));
    let more = between_rows(page, block, &free, probe);
    without_copies(more, &named)
}

fn pointers_end(pointers: &[(u16, LinePointer)]) -> usize {
    pgclinic_format::page::HEADER_BYTES + pointers.len() * LinePointer::SIZE
}

fn named<'p>(
    page: Page<'p>,
    block: BlockNo,
    pointers: &[(u16, LinePointer)],
    probe: &Probe<'_>,
) -> Vec<Found<'p>> {
    let normal = pointers
        .iter()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    let found = normal.filter_map(|(item, pointer)| {
        let tuple = HeapTuple::parse(page.item(*pointer)?)?;
        probe.is_header(tuple, block).then_some(())?;
        let place = Tid {
            block,
            offset: *item,
        };
        Some(Found { tuple, place })
    });
    found.collect()
}

/// Scans what lies between the rows that are known.
fn between_rows<'p>(
    page: Page<'p>,
    block: BlockNo,
    free: &[std::ops::Range<usize>],
    probe: &mut Probe<'_>,
) -> Vec<Found<'p>> {
    let mut found = Vec::new();
    for range in free {
        let mut at = range.start.next_multiple_of(8);
        while let Some(bytes) = page.bytes().get(at..range.end) {
            let Some(len) = probe.length(bytes, block) else {
                at += 8;
                continue;
            };
            let Some(tuple) = bytes.get(..len).and_then(HeapTuple::parse) else {
                break;
            };
            found.push(Found {
                tuple,
                place: own_place(tuple, block),
            });
            at = (at + len).next_multiple_of(8);
        }
    }
    found
}

/// A row that was never updated says itself where it stands.
fn own_place(tuple: HeapTuple<'_>, block: BlockNo) -> Tid {
    let own = tuple.t_ctid();
    if own.block == block {
        own
    } else {
        Tid { block, offset: 0 }
    }
}

/// Pruning leaves old copies of rows in the free space, always before the row itself: of rows that
/// say the same of themselves the last one counts, and none that is known already.
fn without_copies<'p>(found: Vec<Found<'p>>, known: &[Found<'p>]) -> Vec<Found<'p>> {
    let same = |a: &Found<'_>, b: &Found<'_>| {
        let key = |found: &Found<'_>| (found.tuple.t_xmin(), found.tuple.t_ctid());
        key(a) == key(b)
    };
    let mut kept: Vec<Found<'p>> = Vec::new();
    for candidate in found.into_iter().rev() {
        let is_copy = kept
            .iter()
            .chain(known)
            .any(|other| same(other, &candidate));
        if !is_copy {
            kept.push(candidate);
        }
    }
    kept.reverse();
    kept
}
