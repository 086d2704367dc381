//! What is wrong with a cluster's files, and how much was looked at.
#![forbid(unsafe_code)]

mod advice;
pub mod backup;
mod block_set;
pub mod brin;
pub mod btree;
pub mod catalogs;
pub mod causes;
pub mod check;
pub mod consequences;
pub mod control_file;
pub mod entries;
pub mod fast_path;
pub mod files;
mod files_alone;
pub mod findings;
pub mod gin;
pub mod gist;
pub mod hash;
pub mod heap;
pub mod index;
pub mod maps;
pub mod page;
pub mod register;
pub mod relation_check;
mod run_state;
pub mod sequence;
pub mod slru;
pub mod spgist;
pub mod stream;
pub mod toast;
#[cfg(test)]
mod trial;
pub mod wal;
pub mod walker;

#[cfg(test)]
mod cluster_trial;
#[cfg(test)]
mod database_trial;
#[cfg(test)]
mod fork_trial;

pub use advice::plan_again;
pub use check::{
    Checksum, ClusterCheck, DatabaseCheck, ForkCx, Limits, PageCheck, PageClass, PageCx, Wants,
};
pub use files::missing_directory::missing_directories;
pub use files_alone::{check_status_files, check_wal_files};
pub use findings::{Draft, Findings};
pub use heap::context::HeapContext;
pub use heap::visibility_bits::VisibilityBits;
pub use pgclinic_scan::live::{AskedPage, LiveServer, ServerSays};
pub use register::{
    CLUSTER_CHECKS, DATABASE_CHECKS, PAGE_CHECKS, RELATION_CHECKS, is_comparison, level_of,
    rule_named, rules,
};
pub use relation_check::{RelationCheck, RelationCx};
pub use run_state::RunState;
pub use walker::{
    CheckOptions, ResumableRun, Since, StateKeeper, account_for_remains, check_cluster,
    check_cluster_on, check_cluster_with, check_file, check_page, check_running, fork_cx,
    is_expected,
};
