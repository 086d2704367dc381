//! A page is given up: all of its bytes become zero, which the server takes for a new page and uses
//! again, as `zero_damaged_pages` does in memory.

use pgclinic_format::{HeapTuple, LpFlags, Page};
use pgclinic_model::plan::Safety;
use pgclinic_model::plural;

use super::dangling::Gone;
use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::kill::fate;
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

pub(super) const ZERO_PAGE: Cure = Cure {
    name: "zero-page",
    summary: "give up a page: zeros, as zero_damaged_pages",
    unit: CureUnit::Page,
    files: CuredFiles::Tables,
    draft: zero_page,
};

fn zero_page(place: &HeapPlace<'_>) -> Result<Draft> {
    if place.bytes.iter().all(|byte| *byte == 0) {
        return place.refuse("the page is all zero already");
    }
    let summary = "the page becomes all zero: a new page to the server, and everything on it goes";
    let after = vec![0; place.bytes.len()];
    let mut draft = Draft::new(after, summary, Safety::Lossy)
        .clears_map()
        .warn("index entries that lead to this page lead to other rows once it is used again: REINDEX comes before anything is written to the table");
    draft.gone = Some(Gone::Page);
    let page = Page::parse(place.bytes);
    let Some(page) = page.filter(|page| !page.is_new() && page.header_is_sane_to_the_server())
    else {
        draft.rows_unknown = true;
        return Ok(draft
            .because("the page header makes no sense, so that nobody can say which rows it holds")
            .warn("its rows cannot be listed here: pgclinic salvage finds rows on such a page by their structure; the bytes stay in the journal"));
    };
    let normal = page
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    let mut rows = 0u64;
    for (item, pointer) in normal {
        let (_, lost) = fate(place, page.item(pointer).and_then(HeapTuple::parse));
        draft = draft.row(item, lost);
        rows += 1;
    }
    Ok(draft.because(format!(
        "the page holds {rows}",
        rows = plural(rows, "row version")
    )))
}
