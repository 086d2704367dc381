//! The four hint bits of a row are cleared, so that the server asks `pg_xact` and `pg_multixact`
//! again. Truth: `src/backend/access/heap/heapam_visibility.c`.

use pgclinic_cluster::{RowState, Visibility};
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, MultiXactId, Page, Xid};
use pgclinic_model::plan::Safety;

use super::draft::Draft;
use super::freeze::offset_of;
use super::heap_place::HeapPlace;
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

pub(super) const CLEAR_HINT_BITS: Cure = Cure {
    name: "clear-hint-bits",
    summary: "let the server ask pg_xact again what became of a row",
    unit: CureUnit::Item,
    files: CuredFiles::Tables,
    draft: clear_hint_bits,
};

const XMIN_HINTS: u16 = HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;
const XMAX_HINTS: u16 = HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
const INFOMASK_AT: usize = 20;

fn clear_hint_bits(place: &HeapPlace<'_>) -> Result<Draft> {
    let (item, tuple) = place.row()?;
    check_can_be_asked(place, tuple)?;
    let mask = tuple.t_infomask() & !hints_to_clear(tuple);
    if mask == tuple.t_infomask() {
        return place.refuse("the row has no hint bits: the server asks pg_xact already");
    }
    let mut after = place.bytes.to_vec();
    let at = offset_of(place, item);
    put_u16(&mut after, at.saturating_add(INFOMASK_AT), mask);
    let visibility = Visibility::new(place.cluster);
    let now = visibility.state(tuple);
    let then = state_after(&visibility, &after, item);
    let summary = format!("the hint bits of row {item} are cleared: the server asks pg_xact again");
    let draft = match then {
        Some(RowState::Undecided(_)) | None => {
            return place.refuse("pg_xact or pg_multixact do not say what became of its transactions: without hint bits the server could not read the row");
        }
        Some(then) if then == now => Draft::new(after, summary, Safety::Exact).because(format!(
            "pg_xact says the same as the hint bits: {}",
            now.words()
        )),
        Some(then) => Draft::new(after, summary, Safety::Lossy)
            .because(format!("by its hint bits the row is: {}", now.words()))
            .because(format!("by pg_xact it is: {}", then.words()))
            .row(item, now.may_count() && !then.may_count()),
    };
    Ok(draft.clears_map())
}

/// Hints about a transaction that there is. Where `xmax` is 0, `HEAP_XMAX_INVALID` is no hint but
/// the truth.
fn hints_to_clear(tuple: HeapTuple<'_>) -> u16 {
    if tuple.t_xmax() == Xid::INVALID {
        XMIN_HINTS
    } else {
        XMIN_HINTS | XMAX_HINTS
    }
}

fn state_after(visibility: &Visibility<'_>, page: &[u8], item: u16) -> Option<RowState> {
    let page = Page::parse(page)?;
    let tuple = HeapTuple::parse(page.item(page.line_pointer(item)?)?)?;
    Some(visibility.state(tuple))
}

/// The status files still hold the answer: VACUUM removes what is older than every row that is not
/// frozen, and asking for that is an error in the server.
fn check_can_be_asked(place: &HeapPlace<'_>, tuple: HeapTuple<'_>) -> Result<()> {
    if tuple.xmin_is_frozen() {
        return place.refuse("the row is frozen: HEAP_XMIN_COMMITTED and HEAP_XMIN_INVALID together say so and are no hints. Cleared, the row would depend on pg_xact, from which VACUUM may have removed its transaction");
    }
    if tuple.t_infomask() & HEAP_MOVED != 0 {
        return place.refuse("the row was moved by a VACUUM FULL before 9.0: freeze or kill it");
    }
    let is_multi = tuple.has(HEAP_XMAX_IS_MULTI);
    check_xid(place, "xmin", tuple.t_xmin())?;
    match tuple.t_xmax() {
        Xid::INVALID => Ok(()),
        multi if is_multi => check_multi(place, tuple, MultiXactId(multi.0)),
        xmax => check_xid(place, "xmax", xmax),
    }
}

fn check_xid(place: &HeapPlace<'_>, name: &str, xid: Xid) -> Result<()> {
    let Some(control) = place.cluster.control.trusted() else {
        return place.refuse("the control file does not say which transactions pg_xact knows");
    };
    let (oldest, next) = (control.checkpoint.oldest_xid, control.checkpoint.next_xid());
    if xid.is_normal() && xid.precedes(oldest) {
        return place.refuse(format!(
            "{name} {xid} is older than {oldest}, before which pg_xact is removed: without hint bits the server could not read the row"
        ));
    }
    if xid.is_normal() && !xid.precedes(next) {
        return place.refuse(format!(
            "{name} {xid} was never given to a transaction, the next one is {next}: pg_xact knows nothing of it. Freeze or kill the row"
        ));
    }
    if place.cluster.transactions.status(xid).is_none() {
        return place.refuse(format!(
            "{} does not say what became of {name} {xid}",
            place.cluster.transactions.file_of(xid)
        ));
    }
    Ok(())
}

fn check_multi(place: &HeapPlace<'_>, tuple: HeapTuple<'_>, multi: MultiXactId) -> Result<()> {
    let multixacts = &place.cluster.multixacts;
    let is_lost = !tuple.xmax_is_from_before_93() && multixacts.members(multi).is_none();
    let too_old = place.cluster.control.trusted().is_some_and(|control| {
        // Multixact numbers wrap around as transaction numbers do.
        let oldest = control.checkpoint.oldest_multi.0;
        multi.0.wrapping_sub(oldest).cast_signed() < 0
    });
    if is_lost || too_old {
        return place.refuse(format!(
            "pg_multixact does not give the members of xmax {}: without hint bits the server could not read the row",
            multi.0
        ));
    }
    Ok(())
}
