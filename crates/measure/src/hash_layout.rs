//! What `pgstathashindex` says of a hash index: buckets, overflow, items, room.
//!
//! Truth: `pgstathashindex` in `contrib/pgstattuple/pgstatindex.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page, hash};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::{Measure, PageAt, Sums, Whole, number, share};

/// Measures the pages of a hash index, as `pgstathashindex` does.
pub struct HashLayout;

const BUCKETS: u8 = 0;
const OVERFLOW: u8 = 1;
const BITMAPS: u8 = 2;
const UNUSED: u8 = 3;
const LIVE: u8 = 4;
const DEAD: u8 = 5;
const FREE: u8 = 6;
const ROOM_OF_PAGE: u8 = 7;

impl Measure for HashLayout {
    fn section(&self) -> &'static str {
        "hash"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("version", "version of the index"),
                number("bucket_pages", "first pages of buckets"),
                number("overflow_pages", "further pages of buckets"),
                number(
                    "bitmap_pages",
                    "pages that say which overflow pages are free",
                ),
                number("unused_pages", "pages that no bucket uses"),
                number("live_items", "items that are not marked dead"),
                number("dead_items", "items that are marked dead"),
                share("free_percent", "free space's share of the room for items"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Hash)
    }

    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool {
        if at.block == 0 {
            let meta = hash::Meta::parse(page);
            sums.raise(ROOM_OF_PAGE, meta.map_or(0, |meta| u64::from(meta.bsize())));
            return meta.is_some();
        }
        let Some(opaque) = hash::opaque(page) else {
            return false;
        };
        match opaque.page_type() {
            hash::LH_UNUSED_PAGE => sums.add(UNUSED, 1),
            hash::LH_BITMAP_PAGE => sums.add(BITMAPS, 1),
            hash::LH_BUCKET_PAGE => sums.add(BUCKETS, 1),
            hash::LH_OVERFLOW_PAGE => sums.add(OVERFLOW, 1),
            _ => return false,
        }
        if opaque.holds_entries() {
            let all = u64::from(page.line_pointer_count());
            let dead = |(_, pointer): &(u16, pgclinic_format::LinePointer)| {
                pointer.flags() == LpFlags::Dead
            };
            let dead = page.line_pointers().filter(dead).count() as u64;
            sums.add(DEAD, dead);
            sums.add(LIVE, all.saturating_sub(dead));
            let hole = page.pd_upper().saturating_sub(page.pd_lower());
            sums.add(FREE, u64::from(hole));
        }
        true
    }

    fn total(&self, sums: &Sums, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        let unused = sums.sum(UNUSED) + whole.empty_pages;
        let room_of_page = sums.highest(ROOM_OF_PAGE).unwrap_or(0);
        let free = sums.sum(FREE) + unused * room_of_page;
        let pages = whole.fork.blocks.saturating_sub(sums.sum(BITMAPS) + 1);
        let room = pages * room_of_page;
        let free_percent = match room {
            0 => 0.0,
            _ => 100.0 * free as f64 / room as f64,
        };
        vec![
            // The only version that `hash::Meta` accepts.
            Some(Figure::Count(4)),
            count(BUCKETS),
            count(OVERFLOW),
            count(BITMAPS),
            Some(Figure::Count(unused)),
            count(LIVE),
            count(DEAD),
            Some(Figure::Real(free_percent)),
        ]
    }
}
