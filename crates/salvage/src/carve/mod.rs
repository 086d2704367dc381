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
pub(crate) use realign::{Realigned, realigned};
pub(crate) use regions::{derived_pointers, is_covered, is_filled, uncovered};

use pgclinic_format::heap_tuple::{
    HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID,
};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LinePointer, LpFlags, Page};

/// A row that was found by its structure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'p> {
    pub(crate) tuple: HeapTuple<'p>,
    /// Where on the page it begins, in bytes.
    pub(crate) at: usize,
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

/// The rows of a page with a sound header that stand where none of its line pointers leads: those
/// of line pointers that `pd_lower` has cut off, and what else lies between its rows.
pub(crate) fn of_gaps<'p>(page: Page<'p>, block: BlockNo, probe: &mut Probe<'_>) -> Vec<Found<'p>> {
    // A line pointer that names no row hides none.
    let mut pointers: Vec<(u16, LinePointer)> = page
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
        .filter(|(_, pointer)| {
            let tuple = page.item(*pointer).and_then(HeapTuple::parse);
            tuple.is_some_and(|tuple| probe.is_row(tuple))
        })
        .collect();
    let mut known = named(page, block, &pointers, probe);
    let cut_off = page.line_pointers_cut_off();
    let mut found = named(page, block, &cut_off, probe);
    pointers.extend(cut_off);
    known.extend(&found);
    let free = uncovered(page, &pointers, usize::from(page.pd_upper()));
    let more = between_rows(page, block, &free, probe);
    found.extend(without_copies(more, &known));
    found
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
        let at = usize::from(pointer.lp_off());
        Some(Found { tuple, at, place })
    });
    found.collect()
}

/// Scans what lies between the rows that are known. Of places that overlap those are rows for which
/// most bytes speak.
fn between_rows<'p>(
    page: Page<'p>,
    block: BlockNo,
    free: &[std::ops::Range<usize>],
    probe: &mut Probe<'_>,
) -> Vec<Found<'p>> {
    let mut found = Vec::new();
    for range in free {
        let candidates: Vec<Candidate<'p>> = (range.start.next_multiple_of(8)..range.end)
            .step_by(8)
            .filter_map(|at| {
                let bytes = page.bytes().get(at..range.end)?;
                let len = probe.length(bytes, block)?;
                let tuple = bytes.get(..len).and_then(HeapTuple::parse)?;
                Some(Candidate::new(at, tuple, block))
            })
            .collect();
        found.extend(without_overlaps(candidates).map(|candidate| Found {
            tuple: candidate.tuple,
            at: candidate.at,
            place: own_place(candidate.tuple, block),
        }));
    }
    found
}

/// A place where a row may begin, and where the next one may.
struct Candidate<'p> {
    at: usize,
    end: usize,
    evidence: usize,
    tuple: HeapTuple<'p>,
}

impl<'p> Candidate<'p> {
    /// Its bytes speak for it, once more for each thing in its header that chance seldom gives: its
    /// own block, and hints of what became of its transactions.
    fn new(at: usize, tuple: HeapTuple<'p>, block: BlockNo) -> Self {
        let end = (at + tuple.bytes().len()).next_multiple_of(8);
        let has_any = |flags: u16| tuple.t_infomask() & flags != 0;
        let signs = [
            tuple.t_ctid().block == block,
            has_any(HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID),
            has_any(HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID),
        ];
        let weight = 1 + signs.into_iter().filter(|sign| *sign).count();
        Candidate {
            at,
            end,
            evidence: (end - at) * weight,
            tuple,
        }
    }
}

/// The candidates, in order of their places, that do not overlap and have most evidence together.
/// A value that holds the image of a row has less than the row that it is part of.
fn without_overlaps<'p>(candidates: Vec<Candidate<'p>>) -> impl Iterator<Item = Candidate<'p>> {
    // Of the candidates from each one on: the most evidence, and whether it takes that one.
    let mut best = vec![(0usize, false); candidates.len() + 1];
    let behind =
        |candidate: &Candidate<'_>| candidates.partition_point(|other| other.at < candidate.end);
    for (index, candidate) in candidates.iter().enumerate().rev() {
        let evidence = |index: usize| best.get(index).map_or(0, |(evidence, _)| *evidence);
        let (with, without) = (
            candidate.evidence + evidence(behind(candidate)),
            evidence(index + 1),
        );
        if let Some(place) = best.get_mut(index) {
            *place = (with.max(without), with >= without);
        }
    }
    let mut free_from = 0;
    let taken = best.into_iter().map(|(_, is_taken)| is_taken);
    candidates
        .into_iter()
        .zip(taken)
        .filter_map(move |(candidate, is_taken)| {
            let is_kept = is_taken && candidate.at >= free_from;
            free_from = if is_kept { candidate.end } else { free_from };
            is_kept.then_some(candidate)
        })
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
/// say the same of themselves and hold the same the last one counts, and none that is known
/// already.
fn without_copies<'p>(found: Vec<Found<'p>>, known: &[Found<'p>]) -> Vec<Found<'p>> {
    let same = |a: &Found<'_>, b: &Found<'_>| {
        let key = |found: &Found<'_>| (found.tuple.t_xmin(), found.tuple.t_ctid());
        key(a) == key(b) && values(a.tuple) == values(b.tuple)
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

/// What stands behind the header. A line pointer may name some bytes more than the row has.
fn values(tuple: HeapTuple<'_>) -> &[u8] {
    let bytes = tuple.bytes().get(usize::from(tuple.t_hoff())..);
    bytes.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(places: &[(usize, usize, usize)]) -> Vec<usize> {
        let tuple = HeapTuple::parse(&[0; 32]).expect("a header");
        let candidates = places.iter().map(|(at, end, evidence)| Candidate {
            at: *at,
            end: *end,
            evidence: *evidence,
            tuple,
        });
        let kept = without_overlaps(candidates.collect());
        kept.map(|candidate| candidate.at).collect()
    }

    #[test]
    fn most_evidence_wins_where_rows_overlap() {
        assert_eq!(kept(&[]), [0; 0]);
        assert_eq!(kept(&[(0, 64, 64), (64, 128, 64)]), [0, 64]);
        // The image of a row within a row.
        assert_eq!(
            kept(&[(0, 400, 1600), (80, 120, 160), (200, 240, 160)]),
            [0]
        );
        // Garbage that begins like a row, and hides two.
        assert_eq!(
            kept(&[(0, 200, 200), (40, 120, 320), (120, 200, 320)]),
            [40, 120]
        );
    }
}
