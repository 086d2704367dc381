//! What `pgstattuple` says of a table: rows that are live, rows that are dead, free space.
//!
//! Truth: `pgstat_heap` in `contrib/pgstattuple/pgstattuple.c`, `PageGetHeapFreeSpace` in
//! `src/backend/storage/page/bufpage.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::heap_tuple::HEADER_BYTES;
use pgclinic_format::line_pointer::LpFlags;
use pgclinic_format::page::{HEADER_BYTES as PAGE_HEADER_BYTES, PD_HAS_FREE_LINES};
use pgclinic_format::{Page, index_page::AccessMethod};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent;
use super::{Measure, PageAt, Sums, Whole, bytes, number, share};

/// Measures live rows, dead rows and free space, as `pgstattuple` does.
pub struct TableSpace;

const LIVE: u8 = 0;
const LIVE_BYTES: u8 = 1;
const DEAD: u8 = 2;
const DEAD_BYTES: u8 = 3;
const FREE_BYTES: u8 = 4;
const UNKNOWN: u8 = 5;
const LIVE_ON_PAGE: u8 = 6;
const STORED_ON_PAGE: u8 = 7;

impl Measure for TableSpace {
    fn section(&self) -> &'static str {
        "table"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
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
                number("tuples_per_page", "live rows on a page"),
                number(
                    "stored_tuples_per_page",
                    "row versions, live or dead, on a page that has some",
                ),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Heap)
    }

    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool {
        let Some(look) = at.heap else {
            return true;
        };
        let ([live, live_bytes], [dead, dead_bytes]) = (look.live, look.dead);
        sums.add(LIVE, live);
        sums.add(LIVE_BYTES, live_bytes);
        sums.add(DEAD, dead);
        sums.add(DEAD_BYTES, dead_bytes);
        sums.add(UNKNOWN, look.unknown);
        sums.note(LIVE_ON_PAGE, live);
        if live + dead > 0 {
            sums.note(STORED_ON_PAGE, live + dead);
        }
        sums.add(FREE_BYTES, u64::from(heap_free_space(page, at)));
        true
    }

    fn total(&self, sums: &Sums, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let length = whole.bytes(whole.fork.blocks);
        let of_table =
            |slot| percent(sums.sum(slot) as f64, length as f64).or(Some(Figure::Real(0.0)));
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        vec![
            Some(Figure::Count(length)),
            count(LIVE),
            count(LIVE_BYTES),
            of_table(LIVE_BYTES),
            count(DEAD),
            count(DEAD_BYTES),
            of_table(DEAD_BYTES),
            count(FREE_BYTES),
            of_table(FREE_BYTES),
            count(UNKNOWN),
            sums.spread(LIVE_ON_PAGE).as_ref().and_then(super::spread),
            sums.spread(STORED_ON_PAGE).as_ref().and_then(super::spread),
        ]
    }
}

/// Room for one more row: the hole less a line pointer, nothing where all line pointers are taken.
fn heap_free_space(page: Page<'_>, at: &PageAt<'_>) -> u16 {
    let space = super::free_space(page, at);
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
