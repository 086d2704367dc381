//! Drawings of a page, as values.

use std::collections::BTreeMap;

use pgclinic_model::document::{Coverage, HexRange};

use crate::block_map::BlockMap;
use crate::chart::Chart;

/// A drawing.
pub(crate) enum Picture {
    /// The blocks of a fork, the damaged ones crossed.
    Map(ForkMap),
    /// A page drawn to scale: its length and what its bytes are.
    Strip(usize, Vec<HexRange>),
    /// Parts of a whole side by side.
    Shares(Shares),
    /// How often values occur.
    Histogram(Histogram),
    /// Points of two numbers: the first to the right, the second upwards.
    Scatter(&'static str, Vec<[u64; 2]>),
    /// Curves with their legend.
    Curves(Curves),
}

/// How many bytes were seen, and what became of them.
pub(crate) struct CoverageBar {
    /// Bytes of the target.
    pub(crate) seen: u64,
    /// Checked.
    pub(crate) checked: u64,
    /// Left out.
    pub(crate) skipped: u64,
    /// Not readable.
    pub(crate) unreadable: u64,
}

impl From<&Coverage> for CoverageBar {
    fn from(coverage: &Coverage) -> Self {
        CoverageBar {
            seen: coverage.bytes_seen,
            checked: coverage.bytes_checked,
            skipped: coverage.bytes_skipped,
            unreadable: coverage.bytes_unreadable,
        }
    }
}

/// The blocks of a fork.
pub(crate) struct ForkMap {
    /// Its first file.
    pub(crate) path: String,
    /// `main`, `fsm`, ….
    pub(crate) fork: String,
    /// Its blocks.
    pub(crate) blocks: u64,
    /// Its blocks as cells.
    pub(crate) map: BlockMap,
    /// Where the page tells of a block.
    pub(crate) anchors: BTreeMap<u64, String>,
}

/// Parts of a whole.
pub(crate) struct Shares {
    /// For those who do not see it.
    pub(crate) label: &'static str,
    /// The whole, in bytes.
    pub(crate) total: u64,
    /// Bytes, class of the colour, words.
    pub(crate) parts: Vec<(u64, &'static str, &'static str)>,
}

/// How often values occur, one bar a value or a range of values.
pub(crate) struct Histogram {
    /// What is counted.
    pub(crate) caption: &'static str,
    /// Height and words of each bar.
    pub(crate) bars: Vec<(u64, String)>,
    /// The first value and the last.
    pub(crate) ends: [String; 2],
}

/// A chart with its legend.
pub(crate) struct Curves {
    /// The chart.
    pub(crate) chart: Chart,
    /// Style of a line, whether it was measured elsewhere, its name.
    pub(crate) names: Vec<(usize, bool, String)>,
    /// What stands under it.
    pub(crate) caption: String,
}
