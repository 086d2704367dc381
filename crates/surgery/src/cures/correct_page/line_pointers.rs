//! Line pointers that follow from the tuples: what no sound line pointer names between `pd_upper`
//! and `pd_special` is what the damaged ones named.
//!
//! A tuple's length follows from its columns, and the newest version of a row names its own line
//! pointer in `t_ctid`.

use std::collections::BTreeSet;
use std::ops::Range;

use pgclinic_format::attribute::{Attributes, ColumnLayout};
use pgclinic_format::build::put_u32;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{BlockNo, HeapTuple, LinePointer, LpFlags, Page};

use super::trial::PageTrial;
use super::{Candidate, CandidateSource};

const MAXALIGN: usize = 8;
/// As many tuples whose line pointer nothing names are tried in every order.
const ORDERS_OF_MAX: usize = 4;

/// The page with its damaged line pointers made from the tuples.
pub(super) fn candidates(trial: &PageTrial<'_>, page: Page<'_>, named: &[u16]) -> Vec<Candidate> {
    if page.is_new() || !page.header_is_sane_to_the_server() {
        return Vec::new();
    }
    let damaged = damaged_pointers(page, named);
    let Some(columns) = trial.fork.columns.filter(|_| !damaged.is_empty()) else {
        return Vec::new();
    };
    let Some(tuples) = lost_tuples(page, &damaged, columns) else {
        return Vec::new();
    };
    let choices = choices(trial.block, page, &damaged, &tuples);
    let made = choices.into_iter().map(|pointers| put(page, &pointers));
    made.filter(|candidate| candidate.page.as_slice() != page.bytes())
        .collect()
}

/// Those that findings name, those that lead out of the tuples' room, and those that overlap.
fn damaged_pointers(page: Page<'_>, named: &[u16]) -> BTreeSet<u16> {
    let room = usize::from(page.pd_upper())..usize::from(page.pd_special());
    let mut damaged: BTreeSet<u16> = named.iter().copied().collect();
    let mut stored: Vec<(Range<usize>, u16)> = Vec::new();
    for (item, pointer) in page.line_pointers() {
        let Some(range) = pointer.range() else {
            continue;
        };
        if range.start < room.start || range.end > room.end || range.start % MAXALIGN != 0 {
            damaged.insert(item);
        } else {
            stored.push((range, item));
        }
    }
    stored.sort_by_key(|(range, item)| (range.start, *item));
    for ((one, first), (other, second)) in stored.iter().zip(stored.iter().skip(1)) {
        if other.start < one.end {
            damaged.extend([first, second]);
        }
    }
    let count = page.line_pointer_count();
    damaged.retain(|item| (1..=count).contains(item));
    damaged
}

/// A tuple that no sound line pointer names.
struct LostTuple {
    pointer: LinePointer,
    /// The line pointer that it names itself.
    own: Option<u16>,
}

/// Nothing where the room is not filled with tuples of these columns.
fn lost_tuples(
    page: Page<'_>,
    damaged: &BTreeSet<u16>,
    columns: &[ColumnLayout],
) -> Option<Vec<LostTuple>> {
    let sound = page
        .line_pointers()
        .filter(|(item, _)| !damaged.contains(item));
    let mut stored: Vec<Range<usize>> = sound.filter_map(|(_, pointer)| pointer.range()).collect();
    stored.sort_by_key(|range| range.start);
    let special = usize::from(page.pd_special());
    stored.push(special..special);
    let mut at = usize::from(page.pd_upper());
    let mut tuples = Vec::new();
    for range in stored {
        while at < range.start {
            let room = page.bytes().get(at..range.start)?;
            let (len, tuple) = tuple_at_start(room, columns)?;
            tuples.push(LostTuple {
                pointer: LinePointer::new(
                    u16::try_from(at).ok()?,
                    LpFlags::Normal,
                    u16::try_from(len).ok()?,
                ),
                own: Some(tuple.t_ctid().offset).filter(|item| damaged.contains(item)),
            });
            at = at.checked_add(len)?.next_multiple_of(MAXALIGN);
        }
        at = range.end.next_multiple_of(MAXALIGN);
    }
    (tuples.len() <= damaged.len()).then_some(tuples)
}

/// The tuple with which the bytes begin, and its length.
fn tuple_at_start<'a>(room: &'a [u8], columns: &[ColumnLayout]) -> Option<(usize, HeapTuple<'a>)> {
    let tuple = HeapTuple::parse(room)?;
    let stored = usize::from(tuple.attribute_count());
    let hoff = usize::from(tuple.t_hoff());
    if hoff != tuple.expected_hoff() || stored > columns.len() || hoff > room.len() {
        return None;
    }
    let mut walk = Attributes::new(tuple, columns);
    if walk.by_ref().any(|attribute| attribute.is_err()) {
        return None;
    }
    Some((walk.end(), tuple))
}

/// Every way to give the tuples to the damaged line pointers; what is left over is unused.
fn choices(
    block: BlockNo,
    page: Page<'_>,
    damaged: &BTreeSet<u16>,
    tuples: &[LostTuple],
) -> Vec<Vec<(u16, LinePointer)>> {
    let mut free: BTreeSet<u16> = damaged.clone();
    let (mut given, mut others) = (Vec::new(), Vec::new());
    // An older version of a row names the line pointer of the newer one.
    let is_alone = |item: &u16| tuples.iter().filter(|own| own.own == Some(*item)).count() == 1;
    for tuple in tuples {
        match tuple
            .own
            .filter(|item| is_at(page, tuple, block) && is_alone(item))
        {
            Some(item) => {
                free.remove(&item);
                given.push((item, tuple.pointer));
            }
            None => others.push(tuple.pointer),
        }
    }
    if others.len() > ORDERS_OF_MAX || (!others.is_empty() && free.len() > ORDERS_OF_MAX) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for order in orders(&others, &free.into_iter().collect::<Vec<_>>()) {
        let (last, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(|(_, own)| own.is_some());
        let named = last
            .into_iter()
            .filter_map(|(item, own)| Some((item, own?)));
        let base: Vec<(u16, LinePointer)> = given.iter().copied().chain(named).collect();
        let rest: Vec<u16> = rest.into_iter().map(|(item, _)| item).collect();
        found.extend(without_storage(page, &rest).into_iter().map(|own| {
            let mut all = base.clone();
            all.extend(own);
            all
        }));
    }
    found
}

/// The tuple's `t_ctid` is of this block.
fn is_at(page: Page<'_>, tuple: &LostTuple, block: BlockNo) -> bool {
    let bytes = tuple
        .pointer
        .range()
        .and_then(|range| page.bytes().get(range));
    let tuple = bytes.and_then(HeapTuple::parse);
    tuple.is_some_and(|tuple| tuple.t_ctid().block == block)
}

/// Tuples given to line pointers in every order; a line pointer may go without.
fn orders(tuples: &[LinePointer], items: &[u16]) -> Vec<Vec<(u16, Option<LinePointer>)>> {
    let mut found: Vec<Vec<(u16, Option<LinePointer>)>> =
        vec![items.iter().map(|item| (*item, None)).collect()];
    for tuple in tuples {
        found = found
            .iter()
            .flat_map(|order| {
                let free = order.iter().filter(|(_, own)| own.is_none());
                free.map(|(free, _)| {
                    let own = order.iter().map(|(item, own)| {
                        (*item, own.or_else(|| (item == free).then_some(*tuple)))
                    });
                    own.collect::<Vec<_>>()
                })
            })
            .collect();
    }
    found
}

/// What line pointers without a tuple may be: one alone anything, several as they are or unused.
fn without_storage(page: Page<'_>, items: &[u16]) -> Vec<Vec<(u16, LinePointer)>> {
    let unused = LinePointer(0);
    let [item] = items else {
        let keep = |item: &u16| {
            let own = page.line_pointer(*item).unwrap_or(unused);
            let is_plain = own.range().is_none() && own.flags() != LpFlags::Normal;
            (*item, if is_plain { own } else { unused })
        };
        return vec![items.iter().map(keep).collect()];
    };
    let redirects = (1..=page.line_pointer_count())
        .map(|target| LinePointer::new(target, LpFlags::Redirect, 0));
    let all = [unused, LinePointer::new(0, LpFlags::Dead, 0)]
        .into_iter()
        .chain(redirects);
    all.map(|pointer| vec![(*item, pointer)]).collect()
}

/// `line pointer 7 is`, `150 line pointers from 70 to 219 are`.
fn named(mut items: Vec<u16>) -> String {
    items.sort_unstable();
    match items.as_slice() {
        [first, .., last] => format!("{} line pointers from {first} to {last} are", items.len()),
        [only] => format!("line pointer {only} is"),
        [] => "no line pointer is".into(),
    }
}

fn put(page: Page<'_>, pointers: &[(u16, LinePointer)]) -> Candidate {
    let mut bytes = page.bytes().to_vec();
    let mut words = Vec::new();
    for (item, pointer) in pointers {
        let index = usize::from(item.saturating_sub(1));
        put_u32(
            &mut bytes,
            HEADER_BYTES + index * LinePointer::SIZE,
            pointer.0,
        );
        if page.line_pointer(*item) != Some(*pointer) {
            words.push(*item);
        }
    }
    Candidate {
        page: bytes,
        what: format!("{} made again from the tuples of the page", named(words)),
        source: CandidateSource::LinePointers,
    }
}
