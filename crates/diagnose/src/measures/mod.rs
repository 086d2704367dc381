//! How much of what stands where: the register of measures. Each is one file here and one line below.
//!
//! A measure sees the pages of a relation in any order and on any thread, adds up, and makes figures
//! of the sums. Where PostgreSQL's own extensions give the same quantity, name and value are theirs.

mod percent;
mod run;
mod sums;

use std::collections::BTreeMap;

use pgclinic_cluster::{RowState, row_state};
use pgclinic_format::line_pointer::LinePointer;
use pgclinic_format::{BlockNo, HeapTuple, Page, registry};

use crate::check::ForkCx;
use crate::document::{Figure, Spread};

pub use run::{MeasureOptions, measure_cluster};
pub use sums::Sums;

/// A measure of a relation's main fork.
pub trait Measure: Sync {
    /// Where its figures stand: `table` or `index`.
    fn section(&self) -> &'static str;
    /// What it gives, in the order in which people read it.
    fn figures(&self) -> &'static [FigureKind];
    /// Relations of this kind are measured.
    fn fits(&self, fork: &ForkCx<'_>) -> bool;
    /// Adds a page up. `false`: no server writes such a page, and nothing of it was added.
    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool;
    /// The figures, in the order of [`Measure::figures`]; nothing for what cannot be computed.
    fn total(&self, sums: &Sums, whole: &Whole<'_>) -> Vec<Option<Figure>>;
}

/// A relation whose pages have all been added up.
pub struct Whole<'a> {
    /// The relation.
    pub fork: &'a ForkCx<'a>,
    /// Pages of zeros: added to the file, never used.
    pub empty_pages: u64,
    /// Pages that could not be measured.
    pub broken_pages: u64,
}

impl Whole<'_> {
    /// Bytes of so many pages.
    fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(u64::from(self.fork.build.block_size))
    }
}

/// Where a page stands, and what may be known of it.
pub struct PageAt<'a> {
    /// Its relation.
    pub fork: &'a ForkCx<'a>,
    /// Its number in the fork.
    pub block: BlockNo,
}

impl PageAt<'_> {
    /// From 18 on `pgstattuple` counts the hole as it is (`PageGetExactFreeSpace`); before, a line
    /// pointer less, and nothing where no line pointer is left (`PageGetHeapFreeSpace`).
    fn counts_whole_holes(&self) -> bool {
        self.fork.major() >= 18
    }

    /// What became of a row version of this relation.
    fn row_state(&self, tuple: HeapTuple<'_>) -> RowState {
        let Some(cluster) = self.fork.cluster else {
            return RowState::Unknown;
        };
        row_state(tuple, &cluster.transactions, &cluster.multixacts)
    }
}

/// The free middle of a page as `pgstattuple` counts it.
fn free_space(page: Page<'_>, at: &PageAt<'_>) -> u16 {
    let hole = page.pd_upper().saturating_sub(page.pd_lower());
    if at.counts_whole_holes() {
        hole
    } else {
        hole.saturating_sub(LinePointer::SIZE as u16)
    }
}

fn spread(counts: &BTreeMap<u64, u64>) -> Option<Figure> {
    Spread::of(counts).map(Figure::Spread)
}

/// What a figure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureKind {
    /// Its key in JSON.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// One line for people.
    pub summary: &'static str,
}

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things.
    Number,
    /// Of a hundred.
    Percent,
}

const fn bytes(name: &'static str, summary: &'static str) -> FigureKind {
    let unit = Unit::Bytes;
    FigureKind {
        name,
        unit,
        summary,
    }
}

const fn number(name: &'static str, summary: &'static str) -> FigureKind {
    let unit = Unit::Number;
    FigureKind {
        name,
        unit,
        summary,
    }
}

const fn share(name: &'static str, summary: &'static str) -> FigureKind {
    let unit = Unit::Percent;
    FigureKind {
        name,
        unit,
        summary,
    }
}

registry! {
    /// Every measure, in the order of the figures on a page.
    pub static MEASURES: [Measure] = [
        table_space::TableSpace,
        table_ledger::TableLedger,
        btree_layout::BtreeLayout,
        index_space::IndexSpace,
    ];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_figure_has_a_name_of_its_own_and_words() {
        let mut seen = BTreeSet::new();
        for measure in MEASURES {
            for figure in measure.figures() {
                assert!(
                    seen.insert((measure.section(), figure.name)),
                    "{} twice",
                    figure.name
                );
                assert!(
                    figure.summary.contains(' '),
                    "{} says too little",
                    figure.name
                );
            }
        }
    }
}
