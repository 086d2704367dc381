//! What `pgstatginindex` says of a GIN index, and what its pages are used for.
//!
//! Truth: `pgstatginindex_internal` in `contrib/pgstattuple/pgstatindex.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::gin::{Meta, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::density;
use super::sums::Highest;
use super::{PageAt, PageMeasure, Sums, Whole, count, hole, number, room, share};

sums! {
    /// Measures the pages of a GIN index, as `pgstatginindex` does.
    pub struct GinLayout {
        version: Highest,
        pending_pages: Highest,
        pending_rows: Highest,
        entry_leaf_pages: u64,
        entry_inner_pages: u64,
        posting_leaf_pages: u64,
        posting_inner_pages: u64,
        deleted_pages: u64,
        entries: u64,
        /// Bytes of the leaves of keys that are left, of those that they have for entries.
        entry_free: u64,
        entry_room: u64,
    }
}

impl PageMeasure for GinLayout {
    const SECTION: &'static str = "gin";
    const FIGURES: &'static [FigureKind] = &[
        number("version", "version of the index"),
        number("pending_pages", "pages of entries that wait"),
        number("pending_tuples", "rows whose entries wait"),
        number("entry_leaf_pages", "leaves of keys"),
        number("entry_inner_pages", "inner pages of keys"),
        number("posting_leaf_pages", "posting tree leaves"),
        number("posting_inner_pages", "inner posting tree pages"),
        number("deleted_pages", "deleted pages, to be used again"),
        number("entry_count", "keys on the leaves"),
        share("entry_leaf_density", "how full the leaves of keys are"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Gin)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        if at.block == 0 {
            let Some(meta) = Meta::of(at.page) else {
                return false;
            };
            self.version.note(u64::from(meta.version));
            self.pending_pages.note(u64::from(meta.pending_pages));
            self.pending_rows
                .note(u64::try_from(meta.pending_rows).unwrap_or(0));
            return true;
        }
        let Some(kind) = Opaque::of(at.page).and_then(Opaque::kind) else {
            return false;
        };
        match kind {
            PageKind::EntryLeaf => {
                self.entry_leaf_pages += 1;
                self.entries += u64::from(at.page.line_pointer_count());
                self.entry_free += hole(at.page);
                self.entry_room += room(at.page);
            }
            PageKind::EntryInner => self.entry_inner_pages += 1,
            PageKind::PostingLeaf => self.posting_leaf_pages += 1,
            PageKind::PostingInner => self.posting_inner_pages += 1,
            PageKind::Deleted => self.deleted_pages += 1,
            PageKind::Pending => {}
            PageKind::Meta => return false,
        }
        true
    }

    fn figures(&self, _: &Whole<'_>) -> Vec<Option<Figure>> {
        vec![
            self.version.figure(),
            self.pending_pages.figure(),
            self.pending_rows.figure(),
            count(self.entry_leaf_pages),
            count(self.entry_inner_pages),
            count(self.posting_leaf_pages),
            count(self.posting_inner_pages),
            count(self.deleted_pages),
            count(self.entries),
            density(self.entry_free, self.entry_room),
        ]
    }
}
