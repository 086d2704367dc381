//! More than one folder: the same plan on several machines, or two experiments that differ in one thing.

mod compare;
mod differences;
mod gather;
mod merge;

use crate::cell::RunResult;
use crate::plan::Plan;

pub use compare::compare;
pub use differences::{Difference, Group, differences};
pub use gather::gather;
pub use merge::{merge, unique_names};

/// What a folder holds.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// How the user named it.
    pub name: &'a str,
    /// Where it is for a page that links to its raw files: relative to the page where it lies below it.
    pub place: &'a str,
    /// What was asked.
    pub plan: &'a Plan,
    /// What was measured.
    pub results: &'a [RunResult],
}

#[cfg(test)]
mod tests;
