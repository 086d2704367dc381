//! Damaged files of every kind, made on real clusters: whatever stands there, a checkup ends,
//! balances its books and says that something is wrong. `docs/cases.md` tells which case is proven
//! where.

mod catalogs;
mod deep_trees;
mod files;
mod heap_rows;
mod links;
mod scene;
