//! What the pages of a GiST index are used for.

use pgclinic_cluster::ForkContext;
use pgclinic_format::gist::GistPage;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::density;
use super::sums::Counts;
use super::{PageAt, PageMeasure, Sums, Whole, count, hole, number, room, share};

sums! {
    /// Measures the pages of a GiST index.
    pub struct GistLayout {
        inner_pages: u64,
        leaf_pages: u64,
        deleted_pages: u64,
        /// Bytes of the leaves that are left, of those that they have for items.
        free: u64,
        room: u64,
        items_on_leaf: Counts,
    }
}

impl PageMeasure for GistLayout {
    const SECTION: &'static str = "gist";
    const FIGURES: &'static [FigureKind] = &[
        number("inner_pages", "pages above the leaves"),
        number("leaf_pages", "pages that point to rows"),
        number("deleted_pages", "deleted pages, to be used again"),
        share("avg_leaf_density", "how full the leaves are"),
        number("items_per_leaf", "items on a leaf"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Gist)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let Some(own) = GistPage::parse(at.page) else {
            return false;
        };
        match (own.is_deleted(), own.is_leaf()) {
            (true, _) => self.deleted_pages += 1,
            (false, false) => self.inner_pages += 1,
            (false, true) => {
                self.leaf_pages += 1;
                self.free += hole(at.page);
                self.room += room(at.page);
                self.items_on_leaf.note(own.item_count().into());
            }
        }
        true
    }

    fn figures(&self, _: &Whole<'_>) -> Vec<Option<Figure>> {
        vec![
            count(self.inner_pages),
            count(self.leaf_pages),
            count(self.deleted_pages),
            density(self.free, self.room),
            self.items_on_leaf.figure(),
        ]
    }
}
