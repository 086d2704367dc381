//! What is wrong with a cluster's files, and how much was looked at.
#![forbid(unsafe_code)]

pub mod document;
pub mod plan;
pub mod rule;

pub use document::{CheckDocument, Finding, Level, Place, Verdict};
pub use rule::{Rule, Severity};
