//! More than one folder: the same plan on several machines, or two experiments that differ in one
//! thing.

mod differences;
mod gather;
mod merge;
mod source;
mod two_experiments;

use crate::cell::{Cell, RunResult};
use crate::plan::Plan;
use crate::runner::Unreadable;

pub use differences::{Difference, Group, differences};
pub use gather::{Gathered, gather};
pub use merge::{Joined, joined, merge, unique_names};
pub use source::{Source, is_merged};
pub use two_experiments::compare;

/// What a folder holds.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// How the user named it.
    pub name: &'a str,
    /// Where it is for a page that links to its raw files: relative to the page where it lies below
    /// it.
    pub place: &'a str,
    /// What was asked, without the blocks that the budget did not hold.
    pub plan: &'a Plan,
    /// What was measured.
    pub results: &'a [RunResult],
    /// What was measured and cannot be read.
    pub unreadable: &'a [Unreadable],
}

impl Recorded<'_> {
    /// The runs that were to be made: those of the spare blocks only where they were made.
    fn cells(&self) -> impl Iterator<Item = &Cell> {
        let is_made =
            move |cell: &Cell| self.results.iter().any(|result| result.cell.id == cell.id);
        let cells = self.plan.cells.iter();
        cells.filter(move |cell| !self.plan.is_spare(cell) || is_made(cell))
    }

    /// What a reader must know of results that are missing though they were made.
    fn unreadable_words(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests;
