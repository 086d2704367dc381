//! A line pointer is emptied: `LP_UNUSED`, as VACUUM leaves one whose index entries it has removed.
//! The next row that is inserted may take it, so that no index entry may lead there.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_ONLY_TUPLE;
use pgclinic_format::page::PD_HAS_FREE_LINES;
use pgclinic_format::{HeapTuple, LinePointer, LpFlags, Page};
use pgclinic_model::plan::Safety;

use super::dangling::Gone;
use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::kill::{fate, put_pointer};
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

pub(super) const EMPTY_LINE_POINTER: Cure = Cure {
    name: "empty-line-pointer",
    summary: "set a line pointer LP_UNUSED, with the row it may have",
    unit: CureUnit::Item,
    files: CuredFiles::Tables,
    draft: empty_line_pointer,
};

const FLAGS_AT: usize = 10;

fn empty_line_pointer(place: &HeapPlace<'_>) -> Result<Draft> {
    let (item, pointer) = place.pointer()?;
    let page = place.page()?;
    let chain = place.chain(item)?;
    if pointer.flags() == LpFlags::Unused && pointer == LinePointer::new(0, LpFlags::Unused, 0) {
        return place.refuse("the line pointer is LP_UNUSED already, and empty");
    }
    if let Some(newer) = chain.newer {
        return place.refuse(format!(
            "its newer version at item {newer} is found through it alone: --kill lets the index lead there"
        ));
    }
    if let Some(before) = chain.redirect.or(chain.older) {
        return place.refuse(format!(
            "item {before} leads to it, and would lead to whatever row comes here next: --kill takes it out of its chain first"
        ));
    }
    if pointer.flags() == LpFlags::Redirect {
        return redirect(place, item, pointer.lp_off());
    }
    let mut draft =
        Draft::new(emptied(place.bytes, item), summary(item), Safety::Lossy).clears_map();
    let tuple = page.item(pointer).and_then(HeapTuple::parse);
    match pointer.flags() {
        LpFlags::Normal => {
            let (state, lost) = fate(place, tuple);
            draft = draft.because(state).row(item, lost);
        }
        flags => {
            let words = format!("it is {} and has no row that anybody sees", flags.name());
            draft = draft.because(words);
            draft.is_exact_without_entries = true;
        }
    }
    draft.gone = Some(Gone::Items(vec![item]));
    Ok(draft.warn(REUSE))
}

const REUSE: &str = "the next row that is inserted may take this line pointer, and index entries that still lead here would then lead to that row: REINDEX comes before anything is written to the table. --kill leaves that to VACUUM, and is the better choice while indexes lead here";

/// A redirect is the root of a chain, whose version would be found by no index.
fn redirect(place: &HeapPlace<'_>, item: u16, to: u16) -> Result<Draft> {
    let page = place.page()?;
    let target = page.line_pointer(to).filter(|_| to > 0);
    let row = target
        .filter(|target| target.flags() == LpFlags::Normal)
        .and_then(|target| HeapTuple::parse(page.item(target)?));
    if row.is_some_and(|row| row.t_infomask2() & HEAP_ONLY_TUPLE != 0) {
        return place.refuse(format!(
            "it is LP_REDIRECT to item {to}, whose row is found through it alone: kill item {to}, which takes the redirect along"
        ));
    }
    let mut draft = Draft::new(emptied(place.bytes, item), summary(item), Safety::Lossy)
        .because(format!(
            "it is LP_REDIRECT to item {to}, where no heap-only row stands"
        ))
        .clears_map()
        .warn(REUSE);
    draft.gone = Some(Gone::Items(vec![item]));
    Ok(draft)
}

fn summary(item: u16) -> String {
    format!("line pointer {item} becomes LP_UNUSED, free for the next row")
}

fn emptied(bytes: &[u8], item: u16) -> Vec<u8> {
    let mut after = bytes.to_vec();
    put_pointer(&mut after, item, LinePointer::new(0, LpFlags::Unused, 0));
    let flags = Page::parse(bytes).map_or(0, Page::pd_flags);
    put_u16(&mut after, FLAGS_AT, flags | PD_HAS_FREE_LINES);
    after
}
