//! What `pgstatginindex` says of a GIN index, and what its pages are used for.
//!
//! Truth: `pgstatginindex_internal` in `contrib/pgstattuple/pgstatindex.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::Page;
use pgclinic_format::gin::{Meta, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent;
use super::{Measure, PageAt, Sums, Whole, number, share};

/// Measures the pages of a GIN index, as `pgstatginindex` does.
pub struct GinLayout;

const VERSION: u8 = 0;
const PENDING_PAGES: u8 = 1;
const PENDING_ROWS: u8 = 2;
const ENTRY_LEAVES: u8 = 3;
const ENTRY_INNER: u8 = 4;
const POSTING_LEAVES: u8 = 5;
const POSTING_INNER: u8 = 6;
const DELETED: u8 = 7;
const ENTRIES: u8 = 8;
const ENTRY_FREE: u8 = 9;
const ENTRY_ROOM: u8 = 10;

impl Measure for GinLayout {
    fn section(&self) -> &'static str {
        "gin"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("version", "version of the index"),
                number("pending_pages", "pages of entries that wait"),
                number("pending_tuples", "rows whose entries wait"),
                number("entry_leaf_pages", "leaves of keys"),
                number("entry_inner_pages", "inner pages of keys"),
                number("posting_leaf_pages", "leaves of row numbers"),
                number("posting_inner_pages", "inner pages of row numbers"),
                number("deleted_pages", "deleted pages, to be used again"),
                number("entry_count", "keys on the leaves"),
                share("entry_leaf_density", "how full the leaves of keys are"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Gin)
    }

    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool {
        if at.block == 0 {
            let Some(meta) = Meta::of(page) else {
                return false;
            };
            sums.raise(VERSION, u64::from(meta.version));
            sums.raise(PENDING_PAGES, u64::from(meta.pending_pages));
            sums.raise(PENDING_ROWS, u64::try_from(meta.pending_rows).unwrap_or(0));
            return true;
        }
        let Some(kind) = Opaque::of(page).and_then(Opaque::kind) else {
            return false;
        };
        match kind {
            PageKind::EntryLeaf => {
                sums.add(ENTRY_LEAVES, 1);
                sums.add(ENTRIES, u64::from(page.line_pointer_count()));
                let hole = page.pd_upper().saturating_sub(page.pd_lower());
                let room = page.pd_special().saturating_sub(24);
                sums.add(ENTRY_FREE, u64::from(hole));
                sums.add(ENTRY_ROOM, u64::from(room));
            }
            PageKind::EntryInner => sums.add(ENTRY_INNER, 1),
            PageKind::PostingLeaf => sums.add(POSTING_LEAVES, 1),
            PageKind::PostingInner => sums.add(POSTING_INNER, 1),
            PageKind::Deleted => sums.add(DELETED, 1),
            PageKind::Pending => {}
            PageKind::Meta => return false,
        }
        true
    }

    fn total(&self, sums: &Sums, _: &Whole<'_>) -> Vec<Option<Figure>> {
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        let highest = |slot| sums.highest(slot).map(Figure::Count);
        let (free, room) = (sums.sum(ENTRY_FREE), sums.sum(ENTRY_ROOM));
        vec![
            highest(VERSION),
            highest(PENDING_PAGES),
            highest(PENDING_ROWS),
            count(ENTRY_LEAVES),
            count(ENTRY_INNER),
            count(POSTING_LEAVES),
            count(POSTING_INNER),
            count(DELETED),
            count(ENTRIES),
            percent(room.saturating_sub(free) as f64, room as f64),
        ]
    }
}
