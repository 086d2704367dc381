//! A write that did not finish: from a sector border on, the page does not hold what its line
//! pointers name.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{HeapTuple, LpFlags, Page};
use serde_json::{Map, Value};

use crate::causes::zeroed_in_part::zeroed_items;
use crate::causes::{CauseOf, facts};
use crate::check::PageCx;

/// The cause of a page that was written in part.
pub struct TornPage;

impl CauseOf for TornPage {
    fn name(&self) -> &'static str {
        "torn-page"
    }

    fn evidence(&self, page: Page<'_>, cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        // Both halves of a write are missing: nothing is torn.
        if page.is_zeroed() {
            return None;
        }
        let zeros = zeroed_items(page).filter(|(start, end)| *start == 0 || *end == page.len());
        let border = match zeros {
            Some((0, end)) => Some(end),
            Some((start, _)) => Some(start),
            None if cx.fork.method == Some(AccessMethod::Heap) => foreign_half(page),
            None => None,
        };
        border.map(|border| {
            (
                if zeros.is_some() { 0.75 } else { 0.6 },
                facts([("border_byte", border.into())]),
            )
        })
    }
}

/// A border with whole tuples on one side only.
fn foreign_half(page: Page<'_>) -> Option<usize> {
    let mut items: Vec<(usize, bool)> = Vec::new();
    for (_, pointer) in page
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
    {
        let tuple = page.item(pointer).and_then(HeapTuple::parse);
        let sound = tuple.is_some_and(|tuple| usize::from(tuple.t_hoff()) == tuple.expected_hoff());
        items.push((usize::from(pointer.lp_off()), sound));
    }
    items.sort_unstable();
    let mut borders = (512..page.len()).step_by(512);
    borders.find(|border| {
        let (before, after) = items.split_at(items.partition_point(|(at, _)| at < border));
        let all = |side: &[(usize, bool)], sound: bool| {
            side.len() >= 2 && side.iter().all(|(_, it)| *it == sound)
        };
        (all(before, true) && all(after, false)) || (all(before, false) && all(after, true))
    })
}
