//! `PD_ALL_VISIBLE` and the bits of the visibility map are cleared, so that the server looks at the
//! rows of a page again. Truth: `visibilitymap_clear` in
//! `src/backend/access/heap/visibilitymap.c`.

use pgclinic_model::plan::Safety;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::restore_page::is_same_page;
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

/// Name of the cure.
pub const CLEAR_ALL_VISIBLE: &str = "clear-all-visible";

pub(super) const CURE: Cure = Cure {
    name: CLEAR_ALL_VISIBLE,
    summary: "let the server look again at which rows of a page are visible",
    unit: CureUnit::Page,
    files: CuredFiles::Tables,
    draft: clear_all_visible,
};

fn clear_all_visible(place: &HeapPlace<'_>) -> Result<Draft> {
    place.page()?;
    let summary = "the page no longer counts as all-visible: the server examines its rows again";
    let draft = Draft::new(place.bytes.to_vec(), summary, Safety::Exact).clears_map();
    let proven = place
        .proven
        .filter(|proven| is_same_page(place.cluster, place.bytes, &proven.bytes));
    Ok(match proven {
        Some(proven) => {
            let mut draft = draft.because("the page itself is as it should be, so that the map is wrong");
            draft.evidence.extend(proven.evidence.iter().cloned());
            draft
        }
        None => Draft {
            safety: Safety::Lossy,
            ..draft
        }
        .because("page and map contradict each other, and neither WAL nor a copy proves the page")
        .warn("if the page is an older one, rows that came later are missing on it, and this makes the contradiction go away that says so"),
    })
}
