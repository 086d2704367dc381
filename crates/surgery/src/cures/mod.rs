//! Cures of single pages: what is done to them, how sure it is, and what goes with it.
//!
//! ```text
//! request ─► place ─► cure: page after, safety ─┬─► bits of the visibility map, checksum
//!                                               ├─► fields, rows, index entries: the preview
//!                                               └─► patch ─► journal, write, read back ─► check again
//! ```
//!
//! [`plan_heal`] makes a plan of requests and the bytes of a stopped cluster, [`HealPlan::carry_out`]
//! writes it, [`check_again`] looks at what was healed. A cure is a `const` in its file and a line
//! in [`CURES`]. What they do to a page is what `contrib/pg_surgery/heap_surgery.c` and
//! `src/backend/access/heap/pruneheap.c` do.

mod chain;
mod check_again;
mod clear_all_visible;
mod clear_hint_bits;
mod clear_map_page;
mod control;
mod correct_page;
mod cut_toast_value;
mod dangling;
mod databases;
mod draft;
mod empty_line_pointer;
mod fields;
mod freeze;
mod heap_place;
mod kill;
mod plan;
mod preview;
mod proven_pages;
mod rebuild_sequence;
mod restore_end;
mod restore_page;
mod restore_segment;
mod restore_status;
mod saved_rows;
mod working_pages;
mod zero_page;

pub use check_again::check_again;
pub use clear_all_visible::CLEAR_ALL_VISIBLE;
pub use clear_map_page::CLEAR_MAP_PAGE;
pub use control::control_file_hash;
pub use correct_page::{CORRECT_PAGE, PageCorrection, page_correction, page_corrections};
pub use plan::{HealPlan, plan_heal};
pub use proven_pages::{PageRun, ProvenByBlock, ProvenPage, ProvenPages, ProvenRun};
pub use rebuild_sequence::REBUILD_SEQUENCE;
pub use restore_end::RESTORE_END;
pub use restore_page::{RESTORE_PAGE, is_same_page};
pub use restore_segment::RESTORE_SEGMENT;
pub use restore_status::RESTORE_STATUS;
pub use saved_rows::rows_to_save;

use draft::Draft;
use heap_place::HeapPlace;

use crate::error::Result;

/// What a cure is done to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CureUnit {
    /// A line pointer and its row.
    Item,
    /// A whole page.
    Page,
    /// A value of a row.
    Column,
}

/// The files in which a cure is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CuredFiles {
    /// The rows of a table.
    Tables,
    /// Pages of tables, sequences and indexes, as evidence has them.
    Proven,
    /// Visibility maps and free space maps.
    Maps,
    /// The pages of sequences.
    Sequences,
    /// What stood past the end of a table's file, or in one that is missing.
    Ends,
    /// `pg_xact`, `pg_multixact` and `pg_commit_ts`.
    StatusLogs,
    /// Segments of WAL.
    Wal,
}

/// A cure that a person asks for.
pub struct Cure {
    /// Kebab-case; names what is done, and the option that asks for it.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// What it is done to.
    pub unit: CureUnit,
    /// In which files.
    files: CuredFiles,
    /// The page afterwards, or why it cannot be done here.
    draft: fn(&HeapPlace<'_>) -> Result<Draft>,
}

/// Every cure, in the order of `--help`.
pub static CURES: [&Cure; 14] = [
    &restore_page::CURE,
    &restore_end::CURE,
    &restore_status::CURE,
    &restore_segment::CURE,
    &correct_page::CURE,
    &clear_all_visible::CURE,
    &clear_map_page::CURE,
    &rebuild_sequence::CURE,
    &freeze::FREEZE,
    &kill::KILL,
    &clear_hint_bits::CLEAR_HINT_BITS,
    &empty_line_pointer::EMPTY_LINE_POINTER,
    &zero_page::ZERO_PAGE,
    &cut_toast_value::CUT_TOAST_VALUE,
];

/// The cure of this name.
pub fn cure_named(name: &str) -> Option<&'static Cure> {
    CURES.iter().copied().find(|cure| cure.name == name)
}
