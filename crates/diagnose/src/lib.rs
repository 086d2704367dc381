//! What is wrong with a cluster's files, and how much was looked at.
#![forbid(unsafe_code)]

pub mod anatomy;
pub mod causes;
pub mod check;
pub mod checks;
mod chunks;
pub mod consequences;
pub mod document;
pub mod findings;
pub mod inventory;
mod line_pointers;
pub mod places;
pub mod plan;
pub mod rule;
pub mod screen;
pub mod server_messages;
#[cfg(test)]
mod trial;
mod tuples;
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
pub use checks::{CLUSTER_CHECKS, DATABASE_CHECKS, PAGE_CHECKS, rule_named, rules};
pub use document::{CheckDocument, Finding, Level, Place, Verdict};
pub use findings::{Draft, Findings};
pub use rule::{Rule, Severity};
pub use walker::{
    CheckOptions, Glob, Progress, Selection, check_cluster, check_file, check_page, fork_cx,
    target_of,
};
