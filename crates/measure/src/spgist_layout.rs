//! What the pages and tuples of an SP-GiST index are used for; the figures that its own VACUUM
//! looks at.

use pgclinic_cluster::ForkContext;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::spgist::{SpgistPage, State};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::density;
use super::{PageAt, PageMeasure, Sums, Whole, count, hole, number, room, share};

sums! {
    /// Measures the pages and tuples of an SP-GiST index.
    pub struct SpgistLayout {
        inner_pages: u64,
        leaf_pages: u64,
        inner_tuples: u64,
        leaf_tuples: u64,
        redirects: u64,
        dead: u64,
        placeholders: u64,
        /// Bytes of the pages that are left, of those that they have for tuples.
        free: u64,
        room: u64,
    }
}

impl PageMeasure for SpgistLayout {
    const SECTION: &'static str = "spgist";
    const FIGURES: &'static [FigureKind] = &[
        number("inner_pages", "pages of inner tuples"),
        number("leaf_pages", "pages of rows"),
        number("inner_tuples", "inner tuples"),
        number("leaf_tuples", "rows on the leaves"),
        number("redirect_tuples", "tuples that lead to where one was moved"),
        number("dead_tuples", "dead tuples to which a node still leads"),
        number("placeholder_tuples", "tuples that only keep a number"),
        share("density_percent", "how full the pages are"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Spgist)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let Some(own) = SpgistPage::parse(at.page) else {
            return false;
        };
        if own.is_meta() {
            return true;
        }
        let (pages, live) = if own.is_leaf() {
            (&mut self.leaf_pages, &mut self.leaf_tuples)
        } else {
            (&mut self.inner_pages, &mut self.inner_tuples)
        };
        *pages += 1;
        for (_, tuple) in own.tuples() {
            match tuple.state() {
                State::Live => *live += 1,
                State::Redirect => self.redirects += 1,
                State::Dead => self.dead += 1,
                State::Placeholder => self.placeholders += 1,
            }
        }
        self.free += hole(at.page);
        self.room += room(at.page);
        true
    }

    fn figures(&self, _: &Whole<'_>) -> Vec<Option<Figure>> {
        vec![
            count(self.inner_pages),
            count(self.leaf_pages),
            count(self.inner_tuples),
            count(self.leaf_tuples),
            count(self.redirects),
            count(self.dead),
            count(self.placeholders),
            density(self.free, self.room),
        ]
    }
}
