//! What is wrong with a cluster's files, and how much was looked at.
#![forbid(unsafe_code)]

mod advice;
pub mod anatomy;
mod backup_files;
mod block_set;
pub(crate) mod brin;
pub mod btree;
mod catalog_references;
mod catalog_rows;
pub mod causes;
pub mod check;
pub mod checks;
mod chunks;
pub mod consequences;
pub mod diff;
mod entries;
mod fates;
pub mod findings;
mod front_bits;
pub mod gin;
mod gist_keys;
mod gist_tree;
mod heap_aids;
pub mod in_flight;
mod index_words;
pub mod inventory;
mod line_pointers;
pub mod measures;
mod named_blocks;
mod neighbours;
mod oid_set;
mod pass_records;
mod ranges;
pub mod relation_check;
mod run_state;
pub mod screen;
pub mod server_messages;
mod small_files;
mod spgist_chains;
mod spgist_nodes;
mod spgist_tree;
mod stored_values;
mod toast;
#[cfg(test)]
mod trial;
mod tuples;
mod unknown_storage;
mod unreachable;
mod update_chains;
mod visibility_bits;
mod wal_breaks;
pub mod walker;

#[cfg(test)]
mod cluster_trial;
#[cfg(test)]
mod database_trial;
#[cfg(test)]
mod fork_trial;

pub use check::{
    Checksum, ClusterCheck, DatabaseCheck, DatabaseCx, ForkCx, Limits, PageCheck, PageClass,
    PageCx, Wants,
};
pub use checks::{
    CLUSTER_CHECKS, DATABASE_CHECKS, PAGE_CHECKS, RELATION_CHECKS, is_comparison, level_of,
    rule_named, rules,
};
pub use diff::{DiffOptions, NoCopies, diff_clusters};
pub use findings::{Draft, Findings};
pub use heap_aids::HeapAids;
pub use measures::{MeasureOptions, measure_cluster};
pub use relation_check::{PageReader, RelationCheck, RelationCx};
pub use run_state::RunState;
pub use visibility_bits::VisibilityBits;
pub use walker::{
    AskedPage, Bystander, CheckOptions, Course, ServerSays, Since, StateKeeper,
    account_for_remains, check_cluster, check_cluster_on, check_file, check_page, check_running,
    fork_cx, is_expected,
};
