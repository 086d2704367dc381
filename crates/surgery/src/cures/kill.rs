//! A row is given up: its line pointer becomes `LP_DEAD` without storage, as `heap_force_kill` and
//! pruning leave one. VACUUM then removes its index entries and frees it.

use pgclinic_cluster::Visibility;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE};
use pgclinic_format::{HeapTuple, LinePointer, LpFlags, Page};
use pgclinic_model::plan::Safety;

use super::chain::Chain;
use super::dangling::Gone;
use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::{Cure, CureUnit, CuredFiles};
use crate::byte_edits::put_block;
use crate::error::Result;
use crate::injury_target::InjuryTarget;

pub(super) const KILL: Cure = Cure {
    name: "kill",
    summary: "give up a row: LP_DEAD, as heap_force_kill",
    unit: CureUnit::Item,
    files: CuredFiles::Tables,
    draft: kill,
};

const CTID_AT: usize = 12;
const CTID_OFFSET_AT: usize = 16;
const INFOMASK2_AT: usize = 18;

fn kill(place: &HeapPlace<'_>) -> Result<Draft> {
    let (item, pointer) = place.pointer()?;
    match pointer.flags() {
        LpFlags::Normal => {}
        LpFlags::Unused => {
            return place.refuse("the line pointer is LP_UNUSED: there is no row to kill");
        }
        LpFlags::Dead => {
            return place.refuse(
                "the line pointer is LP_DEAD already: VACUUM removes it and its index entries",
            );
        }
        LpFlags::Redirect => {
            return place.refuse(format!(
                "the line pointer is LP_REDIRECT: the row stands at item {}, name that one",
                pointer.lp_off()
            ));
        }
    }
    let page = place.page()?;
    let chain = place.chain(item)?;
    if let (Some(older), Some(newer)) = (chain.older, chain.newer) {
        return place.refuse(format!(
            "its version before stands at item {older} and its version after at item {newer}: without it no index would lead to the newer one. Kill item {older} first"
        ));
    }
    let tuple = page.item(pointer).and_then(HeapTuple::parse);
    let mut after = place.bytes.to_vec();
    let gone = detach(
        &mut after,
        place,
        item,
        chain,
        tuple.is_some_and(is_heap_only),
    );
    let (state, lost) = fate(place, tuple);
    let mut draft = Draft::new(after, summary(item, chain, tuple), Safety::Lossy)
        .because(state)
        .clears_map()
        .row(item, lost);
    draft.gone = Some(Gone::Items(gone));
    Ok(draft)
}

fn is_heap_only(tuple: HeapTuple<'_>) -> bool {
    tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0
}

/// What became of the row up to now, and whether somebody may miss it.
pub(super) fn fate(place: &HeapPlace<'_>, tuple: Option<HeapTuple<'_>>) -> (String, bool) {
    let Some(tuple) = tuple else {
        return (
            "the line pointer names no row that could be read".into(),
            true,
        );
    };
    let state = Visibility::new(place.cluster).state(tuple);
    let words = format!("what became of the row up to now: {}", state.words());
    (words, state.may_count())
}

fn summary(item: u16, chain: Chain, tuple: Option<HeapTuple<'_>>) -> String {
    let is_heap_only = tuple.is_some_and(is_heap_only);
    match chain.newer {
        Some(newer) if !is_heap_only => {
            format!(
                "line pointer {item} becomes LP_REDIRECT to item {newer}, the newer version of its row; the older one goes"
            )
        }
        Some(newer) => format!(
            "line pointer {item} becomes LP_DEAD without storage; what led to it leads to item {newer}, the newer version"
        ),
        None => format!("line pointer {item} becomes LP_DEAD without storage, and its row goes"),
    }
}

/// Takes the item out of its chain as pruning would; the line pointers to which no index entry may
/// lead afterwards.
fn detach(
    page: &mut [u8],
    place: &HeapPlace<'_>,
    item: u16,
    chain: Chain,
    is_heap_only: bool,
) -> Vec<u16> {
    let dead = LinePointer::new(0, LpFlags::Dead, 0);
    let redirect = |to: u16| LinePointer::new(to, LpFlags::Redirect, 0);
    match chain.newer {
        // Index entries lead to the root, so that it leads on to the version that stays.
        Some(newer) if !is_heap_only => {
            put_pointer(page, item, redirect(newer));
            return Vec::new();
        }
        _ => put_pointer(page, item, dead),
    }
    let mut gone = vec![item];
    match (chain.redirect, chain.newer) {
        (Some(root), Some(newer)) => put_pointer(page, root, redirect(newer)),
        (Some(root), None) => {
            // A redirect to a dead line pointer is what amcheck complains about.
            put_pointer(page, root, dead);
            gone.push(root);
        }
        (None, _) => {}
    }
    if let Some(older) = chain.older {
        end_chain_at(page, place, older);
    }
    gone
}

/// The row says that it was deleted, and no longer that a newer version stands on the page.
fn end_chain_at(page: &mut [u8], place: &HeapPlace<'_>, item: u16) {
    let found = Page::parse(place.bytes).and_then(|page| {
        let pointer = page.line_pointer(item)?;
        let tuple = HeapTuple::parse(page.item(pointer)?)?;
        Some((usize::from(pointer.lp_off()), tuple.t_infomask2()))
    });
    let Some((at, infomask2)) = found else { return };
    put_block(page, at + CTID_AT, place.block);
    put_u16(page, at + CTID_OFFSET_AT, item);
    put_u16(page, at + INFOMASK2_AT, infomask2 & !HEAP_HOT_UPDATED);
}

/// Writes a line pointer.
pub(super) fn put_pointer(page: &mut [u8], item: u16, pointer: LinePointer) {
    put_u32(page, InjuryTarget::pointer_at(item), pointer.0);
}
