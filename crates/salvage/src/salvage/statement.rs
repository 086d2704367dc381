//! What an index says of the rows of its table, and which blocks of the table it may speak of.

use std::collections::BTreeMap;

use pgclinic_cluster::wal::{Replay, ReplayEffect};
use pgclinic_cluster::{BlockSet, Cluster, ForkFiles};
use pgclinic_format::types::Tid;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::document::{LossPlace, TableAccount};
use pgclinic_model::{plural, verb_of};

use super::roots::Lack;

/// Blocks past the end that are told apart; beyond them an entry is believed only as one of many.
const MISSING_MAX: BlockNo = 1 << 27;
/// Segments that may be missing for each that is there.
const SEGMENT_GAP_MAX: u64 = 64;
/// Pages that lack rows and are kept one by one.
const PAGES_KEPT: usize = 1 << 16;
/// Rows without their line pointers that are kept by place.
const ITEMS_MAX: usize = 1 << 20;

/// What an index says.
#[derive(Default, Debug)]
pub(super) struct Statement {
    /// Its name, with its schema, and its number.
    pub(super) index: String,
    pub(super) oid: Oid,
    /// Entries that nobody killed.
    pub(super) entries: u64,
    /// Those that lead past the end or into a missing segment, and the blocks.
    pub(super) missing: u64,
    pub(super) missing_blocks: BlockSet,
    /// Those that lead to pages without any row, and the pages.
    pub(super) emptied: u64,
    pub(super) emptied_blocks: BlockSet,
    /// Those that lead to damaged pages.
    pub(super) damaged: u64,
    /// Pages without any row that leaves name which are not believed.
    pub(super) unheard_blocks: BlockSet,
    /// It is of before a recovery that changes table and index.
    pub(super) is_earlier: bool,
    /// Of such an index, more entries that may lead to lost rows: those on leaves that may be torn,
    /// and those that lead to pages which were made anew since, with rows of before or new ones.
    pub(super) doubtful: u64,
    /// Entries of an index that need not have all rows may be lost themselves.
    pub(super) is_hurt: bool,
    /// Those that lead to line pointers that their pages do not have, the pages, each with how many
    /// there are, and the first of the rows.
    pub(super) lost: u64,
    pub(super) lost_blocks: BTreeMap<BlockNo, u64>,
    pub(super) lost_items: Vec<(BlockNo, u16)>,
    /// Those that lead to line pointers which their pages do not have, or past the end, and that
    /// prove nothing: the index may be older than its table.
    pub(super) outdated: u64,
    /// Most entries have other keys than the rows that they lead to.
    pub(super) is_foreign: bool,
    /// It was read whole, and has fewer entries than there are rows.
    pub(super) is_short: bool,
    /// Another index of the table whose entries have other keys than their rows.
    pub(super) foreign: Option<String>,
}

/// Which blocks of a table are there, and on which of them rows may be lost.
pub(super) struct Extent {
    /// Blocks up to the end of the last segment that is there.
    pub(super) end: u64,
    /// Before the end: missing ones, those without rows, damaged ones. Together they are the
    /// suspects.
    holes: Vec<(u64, u64)>,
    pub(super) vacant: BlockSet,
    pub(super) damaged: BlockSet,
}

impl Extent {
    pub(super) fn of(table: &TableAccount, files: &ForkFiles, cluster: &Cluster) -> Self {
        let page = u64::from(cluster.build.block_size);
        let whole = cluster.build.segment_blocks();
        let (mut end, mut holes) = (0, Vec::new());
        // A number that no table with so many segments has is that of a stray file.
        let strays = (files.segments.len() as u64 + 1).saturating_mul(SEGMENT_GAP_MAX);
        let segments = files.segments.iter();
        for segment in segments.filter(|own| u64::from(own.number) < strays) {
            let first = u64::from(segment.number) * whole;
            if first > end {
                holes.push((end, first));
            }
            // A block that is cut is there as far as it goes.
            end = first + (segment.len.div_ceil(page)).min(whole);
        }
        let vacant = table.pages.vacant.iter();
        Extent {
            end,
            holes,
            vacant: vacant.flat_map(|(start, behind)| *start..*behind).collect(),
            damaged: table.pages.damaged.iter().copied().collect(),
        }
    }

    /// The same where recovery changes the table: of pages that it changes, an index of before it
    /// tells nothing.
    pub(super) fn left_alone(&self, replay: &Replay, file: FileNumber) -> Self {
        let is_kept = |block: &BlockNo| replay.fate(file, Fork::Main, *block) == ReplayEffect::Kept;
        Extent {
            end: self.end,
            holes: self.holes.clone(),
            vacant: self.vacant.blocks().filter(is_kept).collect(),
            damaged: BlockSet::default(),
        }
    }

    /// With the blocks that recovery begins as empty pages: of those that had content before, the
    /// first record brings it.
    pub(super) fn with_refilled(&self, replay: &Replay, file: FileNumber) -> Self {
        let is_begun = |block: &BlockNo| {
            replay.fate(file, Fork::Main, *block) == ReplayEffect::Rewritten
                && !replay.had_content(file, Fork::Main, *block)
        };
        let end = BlockNo::try_from(self.end).unwrap_or(BlockNo::MAX);
        let refilled = (0..end).filter(is_begun);
        Extent {
            end: self.end,
            holes: self.holes.clone(),
            vacant: self.vacant.blocks().chain(refilled).collect(),
            damaged: BlockSet::default(),
        }
    }

    #[inline]
    pub(super) fn is_suspect(&self, block: BlockNo) -> bool {
        u64::from(block) >= self.end
            || self.vacant.holds(block)
            || self.damaged.holds(block)
            || self.is_in_hole(block)
    }

    fn is_in_hole(&self, block: BlockNo) -> bool {
        let block = u64::from(block);
        let mut holes = self.holes.iter();
        holes.any(|(start, end)| (*start..*end).contains(&block))
    }
}

impl Statement {
    pub(super) fn take(&mut self, block: BlockNo, extent: &Extent) {
        if extent.vacant.holds(block) && !extent.damaged.holds(block) {
            self.emptied += 1;
            self.emptied_blocks.insert(block);
        } else if extent.damaged.holds(block) {
            self.damaged += 1;
        } else {
            self.missing += 1;
            let end = BlockNo::try_from(extent.end).unwrap_or(BlockNo::MAX);
            if block < end.saturating_add(MISSING_MAX) {
                self.missing_blocks.insert(block);
            }
        }
    }

    /// An entry leads to a line pointer that its page does not have.
    pub(super) fn take_item(&mut self, tid: Tid, lack: Lack) {
        if lack == Lack::Doubtful {
            self.outdated += 1;
            return;
        }
        self.lost += 1;
        if self.lost_blocks.len() < PAGES_KEPT || self.lost_blocks.contains_key(&tid.block) {
            *self.lost_blocks.entry(tid.block).or_default() += 1;
        }
        if self.lost_items.len() < ITEMS_MAX {
            self.lost_items.push((tid.block, tid.offset));
        }
    }

    /// Each row once: while a hash bucket is split, two entries name a row. VACUUM that took rows
    /// from an index's table may have cut it too.
    pub(super) fn settle_items(&mut self) {
        if self.outdated > 0 {
            self.outdated += std::mem::take(&mut self.missing);
            self.missing_blocks = BlockSet::default();
        }
        if self.lost_items.len() as u64 != self.lost {
            // Not all were kept.
            return;
        }
        self.lost_items.sort_unstable();
        self.lost_items.dedup();
        self.lost = self.lost_items.len() as u64;
        self.lost_blocks.clear();
        for (block, _) in &self.lost_items {
            *self.lost_blocks.entry(*block).or_default() += 1;
        }
    }

    /// All that it misses are line pointers: it counts the rows.
    pub(super) fn counts_items(&self) -> bool {
        self.lost > 0 && self.missing + self.emptied == 0
    }

    /// It names rows that are not there.
    pub(super) fn accuses(&self) -> bool {
        self.claimed() > 0
    }

    /// It names rows that are not there, whatever that proves.
    pub(super) fn speaks(&self) -> bool {
        self.accuses() || self.outdated > 0
    }

    /// Rows that it does not name: those that live, and one entry leads to each of them.
    pub(super) fn unseen_rows(&self, table: &TableAccount) -> u64 {
        let there = table.rows.live + table.rows.carved;
        self.entries.saturating_sub(there)
    }

    /// Entries lead past the end of a table, or of a page, that has all rows which the index
    /// counts: a number in the index is wrong.
    pub(super) fn contradicts_itself(&self, table: &TableAccount) -> bool {
        !self.is_earlier
            && self.missing + self.lost > 0
            && self.emptied == 0
            && table.pages.damaged.is_empty()
            && self.unseen_rows(table) == 0
    }

    /// Entries that lead to what is not there.
    pub(super) fn claimed(&self) -> u64 {
        self.missing + self.emptied + self.lost
    }

    /// Rows that are lost, at most.
    pub(super) fn rows(&self, table: &TableAccount) -> u64 {
        let damaged = self.damaged.saturating_sub(table.pages.found_on_damaged);
        let claimed = self.claimed() + damaged;
        if self.is_earlier {
            // Rows that came since are not in it.
            claimed
        } else {
            claimed.min(self.unseen_rows(table))
        }
    }
}

/// Tells pages without rows to which entries lead; how many.
pub(super) fn note_emptied(statement: &Statement, table: &mut TableAccount) -> u64 {
    let (index, mut count) = (&statement.index, 0);
    for range in statement.emptied_blocks.ranges() {
        count += u64::from(range.end - range.start);
        let (first, last) = (range.start, range.end - 1);
        let why = if first == last {
            format!("the page holds nothing, and entries of {index} lead to rows on it")
        } else {
            format!(
                "the pages up to block {last} hold nothing, and entries of {index} lead to rows on them"
            )
        };
        table.places.push(LossPlace::page(first, why));
    }
    table.damaged_pages += count;
    count
}

/// Tells pages that lack line pointers to which entries lead; how many.
pub(super) fn note_items(statement: &Statement, table: &mut TableAccount) {
    let index = &statement.index;
    for (block, entries) in &statement.lost_blocks {
        let why = format!(
            "{entries} of {index} {lead} to line pointers that the page does not have: rows are missing from it",
            entries = plural(*entries, "entry"),
            lead = verb_of(*entries, "lead")
        );
        table.places.push(LossPlace::page(*block, why));
    }
    table.damaged_pages += statement.lost_blocks.len() as u64;
    table.pages.lost_items.extend(&statement.lost_items);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_model::document::RowCounts;

    fn table(live: u64) -> TableAccount {
        TableAccount {
            rows: RowCounts {
                live,
                ..RowCounts::default()
            },
            ..TableAccount::default()
        }
    }

    #[test]
    fn entries_count_no_more_rows_than_are_unseen() {
        // Entries, those past the end, those to emptied pages, rows that live; rows that are lost,
        // and whether the index is wrong.
        let cases = [
            ((1000, 200, 0, 800), (200, false)),
            ((1000, 0, 200, 800), (200, false)),
            // Old versions have entries too.
            ((1500, 0, 200, 900), (200, false)),
            ((1500, 0, 200, 1400), (100, false)),
            // All rows are there: one entry has a wrong number.
            ((1000, 1, 0, 1000), (0, true)),
            // A page of zeros that entries lead to was a page, whatever else is there twice.
            ((1000, 0, 50, 1000), (0, false)),
        ];
        for ((entries, missing, emptied, live), expected) in cases {
            let statement = Statement {
                entries,
                missing,
                emptied,
                ..Statement::default()
            };
            let table = table(live);
            let found = (statement.rows(&table), statement.contradicts_itself(&table));
            assert_eq!(found, expected, "{statement:?}");
        }
    }

    #[test]
    fn line_pointers_that_are_missing_count_up_to_the_rows_that_are_unseen() {
        let mut statement = Statement {
            entries: 1000,
            ..Statement::default()
        };
        for offset in 1..=50 {
            statement.take_item(Tid { block: 7, offset }, Lack::Proven);
        }
        assert!(statement.accuses());
        assert_eq!(statement.lost_blocks, BTreeMap::from([(7, 50)]));
        let found = [950, 990, 1000].map(|live| {
            let table = table(live);
            (statement.rows(&table), statement.contradicts_itself(&table))
        });
        assert_eq!(found, [(50, false), (10, false), (0, true)]);
    }

    #[test]
    fn an_index_that_may_be_older_than_its_table_accuses_nobody() {
        let mut statement = Statement {
            entries: 1000,
            missing: 60,
            missing_blocks: [9].into_iter().collect(),
            ..Statement::default()
        };
        let place = Tid {
            block: 7,
            offset: 1,
        };
        statement.take_item(place, Lack::Doubtful);
        statement.settle_items();
        assert!(statement.speaks() && !statement.accuses());
        assert_eq!((statement.outdated, statement.rows(&table(900))), (61, 0));
        assert_eq!(statement.missing_blocks.blocks().next(), None);
    }

    #[test]
    fn suspects_are_what_is_not_there_and_what_holds_nothing() {
        let extent = Extent {
            end: 300,
            holes: vec![(100, 200)],
            vacant: [7].into_iter().collect(),
            damaged: [8].into_iter().collect(),
        };
        let suspects = [7, 8, 100, 199, 300, BlockNo::MAX];
        assert!(suspects.iter().all(|block| extent.is_suspect(*block)));
        assert!(
            ![0, 6, 9, 99, 200, 299]
                .iter()
                .any(|block| extent.is_suspect(*block))
        );
    }
}
