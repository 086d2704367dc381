//! Rows of a table against the entries of its indexes.
//!
//! ```text
//! heap pages ──► row map: what each line pointer is to an index      ┐
//!            └─► per block, the sum of the hashes of (row, key)      ├─► equal, or told row by row
//! leaf pages ──► which rows were seen, and the same sums from there  ┘
//! ```
//!
//! Sums do not depend on order, so that neither side is sorted; two different sets of keys have the
//! same sum once in 2^64. Memory is some bits a row; a table too large for the budget is looked at a
//! range of blocks at a time, and its indexes once a range.

pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod heap;
pub(crate) mod index;
pub(crate) mod row_map;
