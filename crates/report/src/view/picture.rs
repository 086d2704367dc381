//! Drawings of a page, as values.

use std::collections::BTreeMap;

use pgclinic_model::document::{Coverage, HexRange};

use crate::block_map::BlockMap;
use crate::chart::Chart;
use crate::words as say;

/// A drawing.
pub(crate) enum Picture {
    /// The blocks of a fork, the damaged ones crossed.
    Map(ForkMap),
    /// A page drawn to scale.
    Strip(Strip),
    /// Parts of a whole side by side.
    Shares(Shares),
    /// Relations as tiles of their size.
    Treemap(Treemap),
    /// How often values occur.
    Histogram(Histogram),
    /// Points of two numbers: the first to the right, the second upwards.
    Scatter(&'static str, Vec<[u64; 2]>),
    /// Curves with their legend.
    Curves(Curves),
}

/// A whole and what became of its parts, the good one first.
pub(crate) struct PartsBar {
    /// The parts; those of nothing are left out.
    pub(crate) parts: Vec<BarPart>,
}

/// A part of a bar.
pub(crate) struct BarPart {
    /// How it is meant.
    pub(crate) fate: Fate,
    /// How much it is.
    pub(crate) number: u64,
    /// The same in words: `1.2 MiB damaged`.
    pub(crate) words: String,
}

/// What became of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// As it should be.
    Sound,
    /// In doubt, or not looked at.
    Doubtful,
    /// Damaged, lost.
    Bad,
    /// Not there at all.
    Missing,
    /// Nobody can tell.
    Unknown,
}

impl PartsBar {
    /// Parts with their numbers in words.
    pub(crate) fn of(
        parts: impl IntoIterator<Item = (Fate, u64, &'static str)>,
        words: impl Fn(u64) -> String,
    ) -> Self {
        let parts = parts.into_iter().map(|(fate, number, name)| BarPart {
            fate,
            number,
            words: format!("{} {name}", words(number)),
        });
        PartsBar {
            parts: parts.filter(|part| part.number > 0).collect(),
        }
    }

    /// With one more part whose extent nobody knows, where it `is_there`.
    pub(crate) fn add(&mut self, fate: Fate, words: String, is_there: bool) {
        let number = 0;
        let part = BarPart {
            fate,
            number,
            words,
        };
        self.parts.extend(is_there.then_some(part));
    }

    /// Of all bytes of a target, and of those that are missing of its files.
    pub(crate) fn of_coverage(coverage: &Coverage, hurt: &HurtBytes) -> Self {
        let damaged = hurt.damaged.min(coverage.bytes_checked);
        let rest = coverage.bytes_checked - damaged;
        let doubted = hurt.doubted.min(rest);
        let parts = [
            (Fate::Sound, rest - doubted, "sound"),
            (Fate::Doubtful, doubted, "with rows at risk"),
            (Fate::Bad, damaged, "damaged"),
            (Fate::Missing, hurt.missing, "missing"),
            (Fate::Doubtful, coverage.bytes_skipped, "not checked"),
            (Fate::Unknown, coverage.bytes_unreadable, "unreadable"),
        ];
        PartsBar::of(parts, say::bytes)
    }
}

/// Bytes of a target that are not as they should be.
#[derive(Clone, Copy, Default)]
pub(crate) struct HurtBytes {
    /// Of pages that hold damage.
    pub(crate) damaged: u64,
    /// Of further pages with rows that something elsewhere denies.
    pub(crate) doubted: u64,
    /// That should be there and are not.
    pub(crate) missing: u64,
}

/// A page drawn to scale.
pub(crate) struct Strip {
    /// Its length.
    pub(crate) len: usize,
    /// What its bytes are.
    pub(crate) ranges: Vec<HexRange>,
    /// What is wrong with them.
    pub(crate) marks: Vec<StripMark>,
}

/// Bytes that something is wrong with.
pub(crate) struct StripMark {
    /// The bytes.
    pub(crate) bytes: std::ops::Range<usize>,
    /// What is wrong.
    pub(crate) words: String,
    /// Where the page tells of it.
    pub(crate) link: Option<String>,
}

/// The blocks of a fork.
pub(crate) struct ForkMap {
    /// Its first file.
    pub(crate) path: String,
    /// `main`, `fsm`, ….
    pub(crate) fork: String,
    /// Its blocks.
    pub(crate) blocks: u64,
    /// The first of those that are missing at its end.
    pub(crate) first_missing: Option<u64>,
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

/// Relations as tiles of their size, the largest first.
pub(crate) struct Treemap {
    /// The tiles.
    pub(crate) tiles: Vec<Space>,
}

/// What one tile stands for.
pub(crate) struct Space {
    /// Its name.
    pub(crate) name: String,
    /// Class of its colour.
    pub(crate) class: &'static str,
    /// Its size.
    pub(crate) bytes: u64,
    /// How much of it would come back.
    pub(crate) freed: u64,
    /// Where the page tells of it.
    pub(crate) link: Option<String>,
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
