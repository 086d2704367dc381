//! What the pages of a GiST index are used for.

use pgclinic_cluster::ForkContext;
use pgclinic_format::Page;
use pgclinic_format::gist::GistPage;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent;
use super::{Measure, PageAt, Sums, Whole, number, share};

/// Measures the pages of a GiST index.
pub struct GistLayout;

const INNER: u8 = 0;
const LEAVES: u8 = 1;
const DELETED: u8 = 2;
const FREE: u8 = 3;
const ROOM: u8 = 4;
const ITEMS: u8 = 5;

impl Measure for GistLayout {
    fn section(&self) -> &'static str {
        "gist"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("inner_pages", "pages above the leaves"),
                number("leaf_pages", "pages that point to rows"),
                number("deleted_pages", "deleted pages, to be used again"),
                share("avg_leaf_density", "how full the leaves are"),
                number("items_per_leaf", "items on a leaf"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Gist)
    }

    fn page(&self, page: Page<'_>, _: &PageAt<'_>, sums: &mut Sums) -> bool {
        let Some(own) = GistPage::parse(page) else {
            return false;
        };
        match (own.is_deleted(), own.is_leaf()) {
            (true, _) => sums.add(DELETED, 1),
            (false, false) => sums.add(INNER, 1),
            (false, true) => {
                sums.add(LEAVES, 1);
                let hole = page.pd_upper().saturating_sub(page.pd_lower());
                sums.add(FREE, u64::from(hole));
                sums.add(ROOM, u64::from(page.pd_special().saturating_sub(24)));
                sums.note(ITEMS, u64::from(own.item_count()));
            }
        }
        true
    }

    fn total(&self, sums: &Sums, _: &Whole<'_>) -> Vec<Option<Figure>> {
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        let (free, room) = (sums.sum(FREE), sums.sum(ROOM));
        vec![
            count(INNER),
            count(LEAVES),
            count(DELETED),
            percent(room.saturating_sub(free) as f64, room as f64),
            sums.spread(ITEMS).as_ref().and_then(super::spread),
        ]
    }
}
