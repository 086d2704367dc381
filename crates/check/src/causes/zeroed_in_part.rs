//! Sectors of zeros where line pointers say that items are, or where the header was.

use pgclinic_format::{LpFlags, Page};
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::PageCx;

/// Bytes of the smallest unit that a disk writes as a whole.
const SECTOR: usize = 512;
/// Zeros at the beginning of an item's header that no tuple has: its `xmin` and more.
const ITEM_HEADER: usize = 16;

/// The cause of a page of which some sectors are zeros.
pub struct ZeroedInPart;

impl CauseOf for ZeroedInPart {
    fn name(&self) -> &'static str {
        "zeroed-sectors"
    }

    fn evidence(&self, page: Page<'_>, _cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let (start, end, confidence) = match zeroed_items(page) {
            Some((start, end)) => (start, end, 0.8),
            None => zeroed_values(page).map(|(start, end)| (start, end, 0.5))?,
        };
        // Zeros from the start on take the header along, of which a page never used has none.
        let whole = end < page.len() && (start > 0 || page.is_new());
        whole.then(|| (confidence, facts([("bytes", vec![start, end].into())])))
    }
}

/// The first run of whole sectors of zeros in the room of the items. No item begins there, so
/// they may be somebody's values.
fn zeroed_values(page: Page<'_>) -> Option<(usize, usize)> {
    let upper = usize::from(page.pd_upper());
    zero_runs(page.bytes()).find(|(start, _)| *start >= upper)
}

/// The first run of whole sectors of zeros that should hold the header or items.
pub(super) fn zeroed_items(page: Page<'_>) -> Option<(usize, usize)> {
    zero_runs(page.bytes()).find(|(start, end)| *start == 0 || holds_items(page, *start, *end))
}

fn holds_items(page: Page<'_>, start: usize, end: usize) -> bool {
    page.line_pointers().any(|(_, pointer)| {
        let range = pointer
            .range()
            .filter(|_| pointer.flags() == LpFlags::Normal);
        range.is_some_and(|range| range.start >= start && range.start + ITEM_HEADER <= end)
    })
}

fn zero_runs(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let zero: Vec<bool> = bytes
        .chunks(SECTOR)
        .map(|sector| sector.iter().all(|byte| *byte == 0))
        .collect();
    let mut runs = Vec::new();
    let mut at = 0;
    for run in zero.chunk_by(|a, b| a == b) {
        if run.first() == Some(&true) {
            runs.push((at * SECTOR, (at + run.len()) * SECTOR));
        }
        at += run.len();
    }
    runs.into_iter()
}
