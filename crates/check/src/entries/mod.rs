//! Rows of a table against the entries of its indexes.
//!
//! ```text
//! heap pages ──► per block, the sum of the hashes of (row, key) of its live rows  ┐
//!            └─► blocks where sums do not tell all: what each line pointer is     ├─► equal, or told
//! leaf pages ──► the same sums; in those blocks each entry is looked up           ┘   row by row
//! ```
//!
//! Sums do not depend on order, so that neither side is sorted. In a block in which every row is
//! live or nobody's, equal sums mean that each row has its entry, once and with its key, and that
//! no entry names anything else: two different sets have the same sum once in 2^64. A block with
//! rows that may have an entry and need not (dead ones), or whose keys stand in TOAST, is looked at
//! entry by entry, and so is one whose sums differ. Memory is eight bytes a block and index, and
//! some bits a row of the other blocks; a table too large for the budget is looked at a range of
//! blocks at a time, and its indexes once a range.

pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod contradiction;
pub(crate) mod foreign_index;
pub(crate) mod heap;
pub(crate) mod index;
pub(crate) mod lost_map;
pub(crate) mod lost_rows;
pub(crate) mod named_blocks;
pub(crate) mod row_map;

use pgclinic_format::registry;

use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        against_rows::EntriesAgainstRows,
    ];
}
