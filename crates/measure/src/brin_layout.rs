//! What a BRIN index sums up, and which ranges of its table nobody has summed up yet.

use pgclinic_cluster::ForkContext;
use pgclinic_format::LpFlags;
use pgclinic_format::brin::{self, Meta};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::sums::Highest;
use super::{PageAt, PageMeasure, Sums, Whole, count, number};

sums! {
    /// Measures which ranges of its table a BRIN index has summed up.
    pub struct BrinLayout {
        pages_per_range: Highest,
        map_pages: u64,
        summary_pages: u64,
        summaries: u64,
        mapped_ranges: u64,
    }
}

impl PageMeasure for BrinLayout {
    const SECTION: &'static str = "brin";
    const FIGURES: &'static [FigureKind] = &[
        number("pages_per_range", "pages of the table in a range"),
        number("map_pages", "pages of the map of ranges"),
        number("summary_pages", "pages of summaries"),
        number("summary_count", "summaries, superseded ones too"),
        number("summarized_ranges", "ranges that have a summary"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Brin)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let page = at.page;
        if at.block == 0 {
            let meta = Meta::of(page);
            let pages = meta.map_or(0, |meta| u64::from(meta.pages_per_range));
            self.pages_per_range.note(pages);
            return meta.is_some();
        }
        match brin::page_type(page) {
            Some(brin::PAGE_REVMAP) => {
                self.map_pages += 1;
                let ranges = brin::ranges_per_map_page(page.len());
                let mapped = (0..ranges).filter(|index| brin::map_entry(page, *index).is_some());
                self.mapped_ranges += mapped.count() as u64;
            }
            Some(brin::PAGE_REGULAR) => {
                self.summary_pages += 1;
                let pointers = page.line_pointers();
                let used = pointers.filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
                self.summaries += used.count() as u64;
            }
            _ => return false,
        }
        true
    }

    fn figures(&self, _: &Whole<'_>) -> Vec<Option<Figure>> {
        vec![
            self.pages_per_range.figure(),
            count(self.map_pages),
            count(self.summary_pages),
            count(self.summaries),
            count(self.mapped_ranges),
        ]
    }
}
