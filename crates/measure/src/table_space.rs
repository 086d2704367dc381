//! What `pgstattuple` says of a table: rows that are live, rows that are dead, free space.
//!
//! Truth: `pgstat_heap` in `contrib/pgstattuple/pgstattuple.c`, `PageGetHeapFreeSpace` in
//! `src/backend/storage/page/bufpage.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::heap_tuple::HEADER_BYTES;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::line_pointer::LpFlags;
use pgclinic_format::page::{HEADER_BYTES as PAGE_HEADER_BYTES, PD_HAS_FREE_LINES};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent_of;
use super::sums::{Counts, Items};
use super::{PageAt, PageMeasure, Sums, Whole, bytes, count, number, share};

sums! {
    /// Measures live rows, dead rows and free space, as `pgstattuple` does.
    pub struct TableSpace {
        live: Items,
        dead: Items,
        unknown: u64,
        aborted: u64,
        free_bytes: u64,
        live_on_page: Counts,
        stored_on_page: Counts,
    }
}

impl PageMeasure for TableSpace {
    const SECTION: &'static str = "table";
    const FIGURES: &'static [FigureKind] = &[
        bytes("table_len", "length of the table"),
        number("tuple_count", "rows that are live"),
        bytes("tuple_len", "bytes of live rows"),
        share("tuple_percent", "live rows' share of the table"),
        number("dead_tuple_count", "dead row versions"),
        bytes("dead_tuple_len", "bytes of dead row versions"),
        share(
            "dead_tuple_percent",
            "dead row versions' share of the table",
        ),
        bytes("free_space", "bytes that new rows may take"),
        share("free_percent", "free space's share of the table"),
        number(
            "unknown_tuple_count",
            "row versions whose transaction's fate is lost, counted as dead",
        ),
        number(
            "aborted_tuple_count",
            "dead row versions whose INSERT or UPDATE was rolled back",
        ),
        number("tuples_per_page", "live rows on a page"),
        number(
            "stored_tuples_per_page",
            "row versions, live or dead, on a page that has some",
        ),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Heap)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let Some(look) = at.heap else {
            return true;
        };
        self.live.absorb(&look.live);
        self.dead.absorb(&look.dead);
        self.unknown += look.unknown;
        self.aborted += look.aborted;
        self.live_on_page.note(look.live.count);
        let stored = look.live.count + look.dead.count;
        if stored > 0 {
            self.stored_on_page.note(stored);
        }
        self.free_bytes += u64::from(heap_free_space(at));
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let length = whole.bytes(whole.fork.blocks);
        vec![
            count(length),
            count(self.live.count),
            count(self.live.bytes),
            percent_of(self.live.bytes, length),
            count(self.dead.count),
            count(self.dead.bytes),
            percent_of(self.dead.bytes, length),
            count(self.free_bytes),
            percent_of(self.free_bytes, length),
            count(self.unknown),
            count(self.aborted),
            self.live_on_page.figure(),
            self.stored_on_page.figure(),
        ]
    }
}

/// Room for one more row: the hole less a line pointer, nothing where all line pointers are taken.
fn heap_free_space(at: &PageAt<'_>) -> u16 {
    let (page, space) = (at.page, super::free_space(at));
    if at.counts_whole_holes() {
        return space;
    }
    let aligned_header = HEADER_BYTES.next_multiple_of(8);
    let most = page.len().saturating_sub(PAGE_HEADER_BYTES) / (aligned_header + 4);
    let is_crowded = usize::from(page.line_pointer_count()) >= most;
    let unused = |flags: LpFlags| flags == LpFlags::Unused;
    let has_unused = page.pd_flags() & PD_HAS_FREE_LINES != 0
        && page
            .line_pointers()
            .any(|(_, pointer)| unused(pointer.flags()));
    if is_crowded && !has_unused { 0 } else { space }
}
