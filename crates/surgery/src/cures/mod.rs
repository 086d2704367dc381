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
mod clear_hint_bits;
mod control;
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
mod restore_page;
mod saved_rows;
mod working_pages;
mod zero_page;

pub use check_again::check_again;
pub use control::control_file_hash;
pub use plan::{HealPlan, plan_heal};
pub use restore_page::{ProvenPage, ProvenPages, RESTORE_PAGE, is_same_page};
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

/// A cure that a person asks for.
pub struct Cure {
    /// Kebab-case; names what is done, and the option that asks for it.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// What it is done to.
    pub unit: CureUnit,
    /// The page afterwards, or why it cannot be done here.
    draft: fn(&HeapPlace<'_>) -> Result<Draft>,
}

/// Every cure, in the order of `--help`.
pub static CURES: [&Cure; 7] = [
    &restore_page::CURE,
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
