//! What `pgstathashindex` says of a hash index: buckets, overflow, items, room.
//!
//! Truth: `pgstathashindex` in `contrib/pgstattuple/pgstatindex.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, hash};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::sums::Highest;
use super::{PageAt, PageMeasure, Sums, Whole, count, hole, number, share};

sums! {
    /// Measures the pages of a hash index, as `pgstathashindex` does.
    pub struct HashLayout {
        bucket_pages: u64,
        overflow_pages: u64,
        bitmap_pages: u64,
        unused_pages: u64,
        live: u64,
        dead: u64,
        free: u64,
        room_of_page: Highest,
    }
}

impl PageMeasure for HashLayout {
    const SECTION: &'static str = "hash";
    const FIGURES: &'static [FigureKind] = &[
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
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Hash)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        if at.block == 0 {
            let meta = hash::Meta::parse(at.page);
            self.room_of_page
                .note(meta.map_or(0, |meta| u64::from(meta.bsize())));
            return meta.is_some();
        }
        let Some(opaque) = hash::opaque(at.page) else {
            return false;
        };
        match opaque.page_type() {
            hash::LH_UNUSED_PAGE => self.unused_pages += 1,
            hash::LH_BITMAP_PAGE => self.bitmap_pages += 1,
            hash::LH_BUCKET_PAGE => self.bucket_pages += 1,
            hash::LH_OVERFLOW_PAGE => self.overflow_pages += 1,
            _ => return false,
        }
        if opaque.holds_entries() {
            let all = u64::from(at.page.line_pointer_count());
            let pointers = at.page.line_pointers();
            let dead = pointers.filter(|(_, pointer)| pointer.flags() == LpFlags::Dead);
            let dead = dead.count() as u64;
            self.dead += dead;
            self.live += all.saturating_sub(dead);
            self.free += hole(at.page);
        }
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let unused = self.unused_pages + whole.empty_pages;
        let room_of_page = self.room_of_page.0.unwrap_or(0);
        let free = self.free + unused * room_of_page;
        let pages = whole.fork.blocks.saturating_sub(self.bitmap_pages + 1);
        let room = pages * room_of_page;
        let free_percent = match room {
            0 => 0.0,
            _ => 100.0 * free as f64 / room as f64,
        };
        vec![
            // The only version that `hash::Meta` accepts.
            count(4),
            count(self.bucket_pages),
            count(self.overflow_pages),
            count(self.bitmap_pages),
            count(unused),
            count(self.live),
            count(self.dead),
            Some(Figure::Real(free_percent)),
        ]
    }
}
