//! What the pages and tuples of an SP-GiST index are used for; the figures that its own VACUUM looks at.

use pgclinic_cluster::ForkContext;
use pgclinic_format::Page;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::spgist::{SpgistPage, State};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent;
use super::{Measure, PageAt, Sums, Whole, number, share};

/// Measures the pages and tuples of an SP-GiST index.
pub struct SpgistLayout;

const INNER_PAGES: u8 = 0;
const LEAF_PAGES: u8 = 1;
const INNER_TUPLES: u8 = 2;
const LEAF_TUPLES: u8 = 3;
const REDIRECTS: u8 = 4;
const DEAD: u8 = 5;
const PLACEHOLDERS: u8 = 6;
const FREE: u8 = 7;
const ROOM: u8 = 8;

impl Measure for SpgistLayout {
    fn section(&self) -> &'static str {
        "spgist"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("inner_pages", "pages of inner tuples"),
                number("leaf_pages", "pages of rows"),
                number("inner_tuples", "inner tuples"),
                number("leaf_tuples", "rows on the leaves"),
                number("redirect_tuples", "tuples that lead to where one was moved"),
                number("dead_tuples", "dead tuples to which a node still leads"),
                number("placeholder_tuples", "tuples that only keep a number"),
                share("density_percent", "how full the pages are"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Spgist)
    }

    fn page(&self, page: Page<'_>, _: &PageAt<'_>, sums: &mut Sums) -> bool {
        let Some(own) = SpgistPage::parse(page) else {
            return false;
        };
        if own.is_meta() {
            return true;
        }
        let [pages, live] = match own.is_leaf() {
            true => [LEAF_PAGES, LEAF_TUPLES],
            false => [INNER_PAGES, INNER_TUPLES],
        };
        sums.add(pages, 1);
        for (_, tuple) in own.tuples() {
            let slot = match tuple.state() {
                State::Live => live,
                State::Redirect => REDIRECTS,
                State::Dead => DEAD,
                State::Placeholder => PLACEHOLDERS,
            };
            sums.add(slot, 1);
        }
        let hole = page.pd_upper().saturating_sub(page.pd_lower());
        sums.add(FREE, u64::from(hole));
        sums.add(ROOM, u64::from(page.pd_special().saturating_sub(24)));
        true
    }

    fn total(&self, sums: &Sums, _: &Whole<'_>) -> Vec<Option<Figure>> {
        let counts = [
            INNER_PAGES,
            LEAF_PAGES,
            INNER_TUPLES,
            LEAF_TUPLES,
            REDIRECTS,
            DEAD,
            PLACEHOLDERS,
        ];
        let counts = counts.map(|slot| Some(Figure::Count(sums.sum(slot))));
        let (free, room) = (sums.sum(FREE), sums.sum(ROOM));
        let density = percent(room.saturating_sub(free) as f64, room as f64);
        counts.into_iter().chain([density]).collect()
    }
}
