//! Where every byte of a table goes: a ledger that adds up to the file, and what cleaning gives
//! back.

use pgclinic_cluster::ForkContext;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{Page, index_page::AccessMethod};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::sums::{Counts, Highest, Items};
use super::{HeapLook, PageAt, PageMeasure, Sums, Whole, bytes, count, number};

sums! {
    /// Measures what every byte of a table is used for.
    pub struct TableLedger {
        header_bytes: u64,
        pointer_bytes: u64,
        live: Items,
        dead_bytes: u64,
        padding_bytes: u64,
        hole_bytes: u64,
        redirects: u64,
        dead_pointers: u64,
        unused_pointers: u64,
        /// What the live rows take on new pages.
        packed_bytes: u64,
        /// The number behind the last block with a live row.
        live_end: Highest,
        fill: Counts,
    }
}

impl PageMeasure for TableLedger {
    const SECTION: &'static str = "table";
    const FIGURES: &'static [FigureKind] = &[
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
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Heap)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let Some(look) = at.heap else {
            return true;
        };
        let Some(ledger) = Ledger::of(at.page, look) else {
            return false;
        };
        self.header_bytes += HEADER_BYTES as u64;
        self.pointer_bytes += ledger.pointers;
        self.live.absorb(&look.live);
        self.dead_bytes += look.dead.bytes;
        self.padding_bytes += ledger.padding;
        self.hole_bytes += ledger.hole;
        self.redirects += look.redirects;
        self.dead_pointers += look.dead_pointers;
        self.unused_pointers += look.unused_pointers;
        self.packed_bytes += look.packed_bytes;
        if look.live.bytes > 0 {
            self.live_end.note(u64::from(at.block) + 1);
        }
        let len = at.page.len() as u64;
        self.fill.note((len - ledger.hole) * 100 / len.max(1));
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let block = whole.bytes(1);
        let live_end = self.live_end.0.unwrap_or(0);
        let tail = whole.fork.blocks.saturating_sub(live_end);
        let packed = block * self.pages_when_packed(block);
        let now = self.fill.total() * block;
        vec![
            count(self.header_bytes),
            count(self.pointer_bytes),
            count(self.live.bytes),
            count(self.dead_bytes),
            count(self.padding_bytes),
            count(self.hole_bytes),
            count(whole.bytes(whole.empty_pages)),
            count(whole.bytes(whole.broken_pages)),
            count(self.redirects),
            count(self.dead_pointers),
            count(self.unused_pointers),
            count(self.dead_bytes),
            count(tail * block),
            count(now.saturating_sub(packed)),
            self.fill.figure(),
        ]
    }
}

impl TableLedger {
    /// Pages that the live rows would take, as many of their mean size on each as fit.
    fn pages_when_packed(&self, block: u64) -> u64 {
        let rows = self.live.count;
        let room = block.saturating_sub(HEADER_BYTES as u64);
        let mean = self.packed_bytes.div_ceil(rows.max(1)).max(1);
        rows.div_ceil((room / mean).max(1))
    }
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
        Some(Ledger {
            pointers: lower.checked_sub(HEADER_BYTES as u64)?,
            padding: items.checked_sub(look.live.bytes + look.dead.bytes)?,
            hole: upper.checked_sub(lower)?,
        })
    }
}
