//! A page of a visibility map or free space map becomes all zero: the server takes it for a page
//! that says nothing, and VACUUM fills it again. Truth: `vm_readbuf` in
//! `src/backend/access/heap/visibilitymap.c`, `fsm_readbuf` in
//! `src/backend/storage/freespace/freespace.c`.

use pgclinic_format::Fork;
use pgclinic_model::plan::Safety;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

/// Name of the cure.
pub const CLEAR_MAP_PAGE: &str = "clear-map-page";

pub(super) const CURE: Cure = Cure {
    name: CLEAR_MAP_PAGE,
    summary: "empty a page of a visibility map or free space map",
    unit: CureUnit::Page,
    files: CuredFiles::Maps,
    draft: clear_map_page,
};

fn clear_map_page(place: &HeapPlace<'_>) -> Result<Draft> {
    if place.bytes.iter().all(|byte| *byte == 0) {
        return place.refuse("the page is all zero already");
    }
    let (map, effect) = match place.files.fork {
        Fork::Vm => (
            "visibility map",
            "no page of the table counts as all-visible by it, which is always right; index-only scans read the table until VACUUM sets the bits again",
        ),
        _ => (
            "free space map",
            "no free space is known by it, which is always right: new rows go to other pages until VACUUM notes free space again",
        ),
    };
    let summary = format!("the page of the {map} becomes all zero: it says nothing");
    let after = vec![0; place.bytes.len()];
    let mut draft = Draft::new(after, summary, Safety::Exact).because(effect);
    draft.replaces_page = true;
    Ok(draft)
}
