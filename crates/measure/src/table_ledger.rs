//! Where every byte of a table goes: a ledger that adds up to the file, and what cleaning gives back.

use pgclinic_cluster::ForkContext;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{Page, index_page::AccessMethod};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::{HeapLook, Measure, PageAt, Sums, Whole, bytes, number};

/// Measures what every byte of a table is used for.
pub struct TableLedger;

const HEADERS: u8 = 0;
const POINTERS: u8 = 1;
const LIVE: u8 = 2;
const DEAD: u8 = 3;
const PADDING: u8 = 4;
const HOLE: u8 = 5;
const REDIRECTS: u8 = 6;
const DEAD_POINTERS: u8 = 7;
const UNUSED_POINTERS: u8 = 8;
const PACKED: u8 = 9;
const LAST_LIVE_BLOCK: u8 = 10;
const FILL: u8 = 11;
const LIVE_ROWS: u8 = 12;

impl Measure for TableLedger {
    fn section(&self) -> &'static str {
        "table"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                bytes("header_bytes", "headers of pages"),
                bytes("line_pointer_bytes", "their line pointers"),
                bytes("live_bytes", "rows that are live"),
                bytes("dead_bytes", "dead row versions, until VACUUM takes them"),
                bytes(
                    "padding_bytes",
                    "alignment between rows, and space that no row names any more",
                ),
                bytes("hole_bytes", "the free middle of pages"),
                bytes("empty_bytes", "pages that were never used"),
                bytes("not_measured_bytes", "pages that could not be measured"),
                number("redirect_count", "line pointers that lead to another"),
                number(
                    "dead_line_pointer_count",
                    "line pointers that VACUUM has yet to free",
                ),
                number("unused_line_pointer_count", "free line pointers"),
                bytes(
                    "vacuum_reuses_bytes",
                    "what VACUUM makes free inside the table",
                ),
                bytes(
                    "vacuum_truncates_bytes",
                    "what VACUUM can cut off at the end of the table",
                ),
                bytes(
                    "rewrite_gives_back_bytes",
                    "what VACUUM FULL gives back, about, by the rows' mean size at a fillfactor of 100",
                ),
                number("fill_percent", "pages by how full they are, in hundredths"),
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
        let Some(ledger) = Ledger::of(page, look) else {
            return false;
        };
        let ([live_rows, live], [_, dead]) = (look.live, look.dead);
        sums.add(HEADERS, HEADER_BYTES as u64);
        sums.add(POINTERS, ledger.pointers);
        sums.add(LIVE, live);
        sums.add(DEAD, dead);
        sums.add(PADDING, ledger.padding);
        sums.add(HOLE, ledger.hole);
        sums.add(REDIRECTS, look.redirects);
        sums.add(DEAD_POINTERS, look.dead_pointers);
        sums.add(UNUSED_POINTERS, look.unused_pointers);
        sums.add(PACKED, look.packed_bytes);
        sums.add(LIVE_ROWS, live_rows);
        if live > 0 {
            sums.raise(LAST_LIVE_BLOCK, u64::from(at.block) + 1);
        }
        let len = page.len() as u64;
        sums.note(FILL, (len - ledger.hole) * 100 / len.max(1));
        true
    }

    fn total(&self, sums: &Sums, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let block = whole.bytes(1);
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        let measured = sums
            .spread(FILL)
            .map_or(0, |fill| fill.values().sum::<u64>());
        let tail = whole
            .fork
            .blocks
            .saturating_sub(sums.highest(LAST_LIVE_BLOCK).unwrap_or(0));
        let packed = block * pages_when_packed(sums, block);
        let now = measured * block;
        vec![
            count(HEADERS),
            count(POINTERS),
            count(LIVE),
            count(DEAD),
            count(PADDING),
            count(HOLE),
            Some(Figure::Count(whole.bytes(whole.empty_pages))),
            Some(Figure::Count(whole.bytes(whole.broken_pages))),
            count(REDIRECTS),
            count(DEAD_POINTERS),
            count(UNUSED_POINTERS),
            count(DEAD),
            Some(Figure::Count(tail * block)),
            Some(Figure::Count(now.saturating_sub(packed))),
            sums.spread(FILL).as_ref().and_then(super::spread),
        ]
    }
}

/// Pages that the live rows would take, as many of their mean size on each as fit.
fn pages_when_packed(sums: &Sums, block: u64) -> u64 {
    let rows = sums.sum(LIVE_ROWS);
    let room = block.saturating_sub(HEADER_BYTES as u64);
    let mean = sums.sum(PACKED).div_ceil(rows.max(1)).max(1);
    rows.div_ceil((room / mean).max(1))
}

/// The bytes of one page that are no row's.
struct Ledger {
    pointers: u64,
    padding: u64,
    hole: u64,
}

impl Ledger {
    /// Nothing where the parts do not add up: rows that overlap, a header that lies.
    fn of(page: Page<'_>, look: &HeapLook) -> Option<Ledger> {
        let (lower, upper) = (u64::from(page.pd_lower()), u64::from(page.pd_upper()));
        let items = (page.len() as u64).checked_sub(upper)?;
        let ([_, live], [_, dead]) = (look.live, look.dead);
        Some(Ledger {
            pointers: lower.checked_sub(HEADER_BYTES as u64)?,
            padding: items.checked_sub(live + dead)?,
            hole: upper.checked_sub(lower)?,
        })
    }
}
