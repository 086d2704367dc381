//! What a BRIN index sums up, and which ranges of its table nobody has summed up yet.

use pgclinic_cluster::ForkContext;
use pgclinic_format::brin::{self, Meta};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::{Measure, PageAt, Sums, Whole, number};

/// Measures which ranges of its table a BRIN index has summed up.
pub struct BrinLayout;

const PAGES_PER_RANGE: u8 = 0;
const MAP_PAGES: u8 = 1;
const SUMMARY_PAGES: u8 = 2;
const SUMMARIES: u8 = 3;
const MAPPED: u8 = 4;

impl Measure for BrinLayout {
    fn section(&self) -> &'static str {
        "brin"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("pages_per_range", "pages of the table in a range"),
                number("map_pages", "pages of the map of ranges"),
                number("summary_pages", "pages of summaries"),
                number("summary_count", "summaries, superseded ones too"),
                number("summarized_ranges", "ranges that have a summary"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Brin)
    }

    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool {
        if at.block == 0 {
            let meta = Meta::of(page);
            let pages = meta.map_or(0, |meta| u64::from(meta.pages_per_range));
            sums.raise(PAGES_PER_RANGE, pages);
            return meta.is_some();
        }
        match brin::page_type(page) {
            Some(brin::PAGE_REVMAP) => {
                sums.add(MAP_PAGES, 1);
                let ranges = brin::ranges_per_map_page(page.len());
                let mapped = (0..ranges).filter(|index| brin::map_entry(page, *index).is_some());
                sums.add(MAPPED, mapped.count() as u64);
            }
            Some(brin::PAGE_REGULAR) => {
                sums.add(SUMMARY_PAGES, 1);
                let used = |(_, pointer): &(u16, pgclinic_format::LinePointer)| {
                    pointer.flags() == LpFlags::Normal
                };
                let used = page.line_pointers().filter(used);
                sums.add(SUMMARIES, used.count() as u64);
            }
            _ => return false,
        }
        true
    }

    fn total(&self, sums: &Sums, _: &Whole<'_>) -> Vec<Option<Figure>> {
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        vec![
            sums.highest(PAGES_PER_RANGE).map(Figure::Count),
            count(MAP_PAGES),
            count(SUMMARY_PAGES),
            count(SUMMARIES),
            count(MAPPED),
        ]
    }
}
