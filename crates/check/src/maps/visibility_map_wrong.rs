//! The visibility map says more of a page than the page says itself.

use pgclinic_format::heap_tuple::{HEAP_MOVED, HEAP_XMAX_IS_MULTI};
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use pgclinic_format::{HeapTuple, Page, Xid};
use pgclinic_model::Rule;
use pgclinic_model::plan::Safety;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{XMAX, XMIN, tuples};

/// The rule.
pub static VISIBILITY_MAP_WRONG: Rule =
    Rule::from_page(include_str!("../../rules/visibility-map-wrong.md"));

/// The rule.
pub static ZEROED_PAGE_MARKED_VISIBLE: Rule =
    Rule::from_page(include_str!("../../rules/zeroed-page-marked-visible.md"));

/// See [`VISIBILITY_MAP_WRONG`] and [`ZEROED_PAGE_MARKED_VISIBLE`].
pub struct VisibilityMapWrong;

impl PageCheck for VisibilityMapWrong {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&VISIBILITY_MAP_WRONG, &ZEROED_PAGE_MARKED_VISIBLE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    fn check_zeroed(&self, cx: &PageCx<'_>, out: &mut Findings) {
        let bits = cx.fork.heap.visibility().map_or(0, |map| map.of(cx.block));
        if bits != 0 {
            let message = "the page is all zeros, and the visibility map has a bit set for it";
            out.add(Draft::new(&ZEROED_PAGE_MARKED_VISIBLE, message).fact("map_bits", bits));
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(map) = cx.fork.heap.visibility() else {
            return;
        };
        let bits = map.of(cx.block);
        if bits & ALL_FROZEN != 0 && bits & ALL_VISIBLE == 0 {
            let message = "the visibility map says all-frozen and not all-visible";
            out.add(with_map(
                Draft::new(&VISIBILITY_MAP_WRONG, message),
                bits,
                cx,
            ));
        } else if bits & ALL_VISIBLE != 0 && page.pd_flags() & PD_ALL_VISIBLE == 0 {
            let message = "the visibility map says all-visible, and the page does not";
            let draft = Draft::new(&VISIBILITY_MAP_WRONG, message).bytes(10, 12);
            out.add(with_map(draft, bits, cx));
        }
        if bits & ALL_FROZEN != 0 {
            thawed(page, bits, cx, out);
        }
    }
}

fn thawed(page: Page<'_>, bits: u8, cx: &PageCx<'_>, out: &mut Findings) {
    for stored in tuples(page) {
        let (xmin, xmax) = (stored.tuple.t_xmin(), stored.tuple.t_xmax());
        let (words, bytes) = match thaw(stored.tuple) {
            Some(Thaw::Xmin) => (format!("xmin {xmin} is not frozen"), XMIN),
            Some(Thaw::Xmax) => (format!("xmax {xmax} is still there"), XMAX),
            Some(Thaw::Moved) => ("the row was moved by an old VACUUM FULL".into(), 8..12),
            None => continue,
        };
        let message = format!("the visibility map says all-frozen, and {words}");
        let draft = stored.draft(&VISIBILITY_MAP_WRONG, message, bytes);
        out.add(with_map(draft, bits, cx));
    }
}

/// What somebody will have to freeze: `heap_tuple_needs_eventual_freeze`.
enum Thaw {
    Xmin,
    Xmax,
    Moved,
}

fn thaw(tuple: HeapTuple<'_>) -> Option<Thaw> {
    let xmax = tuple.t_xmax();
    if tuple.t_xmin().is_normal() && !tuple.xmin_is_frozen() {
        return Some(Thaw::Xmin);
    }
    let still = if tuple.has(HEAP_XMAX_IS_MULTI) {
        xmax != Xid::INVALID
    } else {
        xmax.is_normal()
    };
    if still {
        return Some(Thaw::Xmax);
    }
    let moved = tuple.t_infomask() & HEAP_MOVED != 0 && Xid(tuple.t_field3()).is_normal();
    moved.then_some(Thaw::Moved)
}

/// With the bits as a fact, and the way to make the map anew.
pub(crate) fn with_map(draft: Draft, bits: u8, cx: &PageCx<'_>) -> Draft {
    let name = cx.fork.relation.map_or_else(
        || cx.fork.files.path(0),
        |relation| relation.sql_name().replace('\'', "''"),
    );
    let words = format!(
        "copy the cluster first; if the page is right: SELECT pg_truncate_visibility_map('{name}'); VACUUM {name};"
    );
    draft
        .fact("map_bits", bits)
        .remedy("rebuild-visibility-map", Safety::ShowOnly, words)
}
