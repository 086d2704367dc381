//! A row is made visible to everybody for ever, as `heap_force_freeze` does: whatever its
//! transactions were, nobody asks them any more.

use pgclinic_cluster::{RowState, Visibility};
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_KEYS_UPDATED, HEAP_MOVED, HEAP_MOVED_OFF, HEAP_XMAX_INVALID,
    HEAP_XMAX_IS_MULTI, HEAP_XMIN_FROZEN,
};
use pgclinic_format::{HeapTuple, MultiXactId, Xid};
use pgclinic_model::plan::Safety;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::{Cure, CureUnit, CuredFiles};
use crate::byte_edits::put_block;
use crate::error::Result;

pub(super) const FREEZE: Cure = Cure {
    name: "freeze",
    summary: "make a row visible to everybody: frozen, as heap_force_freeze",
    unit: CureUnit::Item,
    files: CuredFiles::Tables,
    draft: freeze,
};

/// `HEAP_XACT_MASK`: all that says something about transactions.
const HEAP_XACT_MASK: u16 = 0xFFF0;

fn freeze(place: &HeapPlace<'_>) -> Result<Draft> {
    let (item, tuple) = place.row()?;
    check_chain(place, item)?;
    check_prepared(place, tuple)?;
    let mut after = place.bytes.to_vec();
    let at = offset_of(place, item);
    write_frozen(
        after.get_mut(at..).unwrap_or_default(),
        tuple,
        place.block,
        item,
    );
    if after == place.bytes {
        return place
            .refuse("the row is frozen, and nobody deleted or locked it: nothing is left to do");
    }
    let summary = format!(
        "row {item} is frozen: every transaction sees it, and nobody asks its transactions again"
    );
    let state = Visibility::new(place.cluster).state(tuple);
    let words = format!("what became of the row up to now: {}", state.words());
    if state == RowState::Visible {
        let why = "everybody sees it already, so that no answer of the server changes";
        return Ok(Draft::new(after, summary, Safety::Exact)
            .because(words)
            .because(why));
    }
    let draft = Draft::new(after, summary, Safety::Lossy)
        .because(words)
        .because("it will be visible: whether it should be, nothing in the files proves")
        .row(item, false);
    Ok(with_copies(draft, tuple, item))
}

/// A row that comes back may stand beside its newer version, or meet a unique key.
fn with_copies(draft: Draft, tuple: HeapTuple<'_>, item: u16) -> Draft {
    let ctid = tuple.t_ctid();
    let draft = draft.warn(
        "a row that comes back may have the same key as a newer row: compare before the table is used, REINDEX of a unique index says so",
    );
    if ctid.offset == item || tuple.has(HEAP_XMAX_INVALID) {
        return draft;
    }
    draft.warn(format!(
        "its newer version stood at {ctid}: both may be visible afterwards"
    ))
}

/// Offset of the row on the page.
pub(super) fn offset_of(place: &HeapPlace<'_>, item: u16) -> usize {
    let page = pgclinic_format::Page::parse(place.bytes);
    let pointer = page.and_then(|page| page.line_pointer(item));
    pointer.map_or(usize::MAX, |pointer| usize::from(pointer.lp_off()))
}

/// A frozen version in the middle of a chain is not found: the version before leads to it by the
/// number of its transaction, and its own link is forgotten.
fn check_chain(place: &HeapPlace<'_>, item: u16) -> Result<()> {
    let chain = place.chain(item)?;
    if let Some(newer) = chain.newer {
        return place.refuse(format!(
            "its newer version at item {newer} is found through it alone: kill item {newer} first, or freeze that one"
        ));
    }
    if let Some(older) = chain.older {
        return place.refuse(format!(
            "its older version at item {older} leads to it by xmin, which freezing forgets: kill item {older} first, which lets the index lead here"
        ));
    }
    Ok(())
}

/// A prepared transaction still decides about the row.
fn check_prepared(place: &HeapPlace<'_>, tuple: HeapTuple<'_>) -> Result<()> {
    let log = &place.cluster.transactions;
    let mut holders = vec![tuple.t_xmin()];
    if tuple.has(HEAP_XMAX_IS_MULTI) {
        let members = place
            .cluster
            .multixacts
            .members(MultiXactId(tuple.t_xmax().0));
        holders.extend(members.unwrap_or_default().iter().map(|member| member.xid));
    } else {
        holders.push(tuple.t_xmax());
    }
    match holders.into_iter().find(|xid| log.is_prepared(*xid)) {
        Some(xid) => place.refuse(format!(
            "the prepared transaction {xid} still decides about the row: start the server and commit or roll it back first"
        )),
        None => Ok(()),
    }
}

/// As `heap_force_common` of pg_surgery writes it.
fn write_frozen(row: &mut [u8], tuple: HeapTuple<'_>, block: u32, item: u16) {
    let infomask = tuple.t_infomask();
    put_u32(row, 0, Xid::FROZEN.0);
    put_u32(row, 4, Xid::INVALID.0);
    if infomask & HEAP_MOVED != 0 {
        let is_off = infomask & HEAP_MOVED_OFF != 0;
        let xvac = if is_off { Xid::INVALID } else { Xid::FROZEN };
        put_u32(row, 8, xvac.0);
    }
    put_block(row, 12, block);
    put_u16(row, 16, item);
    let infomask2 = tuple.t_infomask2() & !(HEAP_HOT_UPDATED | HEAP_KEYS_UPDATED);
    put_u16(row, 18, infomask2);
    let infomask = infomask & !HEAP_XACT_MASK | HEAP_XMIN_FROZEN | HEAP_XMAX_INVALID;
    put_u16(row, 20, infomask);
}
