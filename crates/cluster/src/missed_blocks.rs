//! Blocks of a table of which WAL from before the last checkpoint has records, and that hold
//! nothing. Where nothing else speaks for a table, because it has no index, WAL does: a shutdown
//! has written every page, and one that held something is never all zero again.

use pgclinic_format::BlockNo;

use crate::cluster::Cluster;
use crate::files::{ForkFiles, read_block};
use crate::wal::ReplayEffect;

/// What WAL misses of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MissedBlocks {
    /// Pages that are all zeros.
    pub zeroed: Vec<BlockNo>,
    /// Blocks behind the end of the files.
    pub beyond: Vec<BlockNo>,
}

impl Cluster {
    /// What WAL from before the redo point misses of the main fork in these files; where recovery
    /// is due, what WAL from then on does. Nothing where a server runs.
    pub fn missed_by_wal(&self, files: &ForkFiles) -> MissedBlocks {
        if self.is_running() || self.is_partial() {
            MissedBlocks::default()
        } else if self.needs_recovery() {
            self.missed_by_recovery(files)
        } else {
            self.missed_by_older_wal(files)
        }
    }

    /// Blocks of which recovery has images: they were there when the last checkpoint began, and so
    /// was all before them.
    fn missed_by_recovery(&self, files: &ForkFiles) -> MissedBlocks {
        let file = files.number();
        let Some(replay) = self.replay().filter(|replay| replay.keeps_length(file)) else {
            return MissedBlocks::default();
        };
        let now = self.fork_files(&files.home, files.filenode, files.fork);
        let end = now.blocks(self.build.block_size, self.build.segment_bytes);
        let mut known = replay.blocks_of(file).collect::<Vec<_>>().into_iter();
        let had_content = |block: &BlockNo| replay.had_content(file, files.fork, *block);
        let Some(last) = known.rfind(had_content).map(u64::from) else {
            return MissedBlocks::default();
        };
        MissedBlocks {
            zeroed: Vec::new(),
            beyond: (end..=last)
                .filter_map(|block| BlockNo::try_from(block).ok())
                .filter(|block| replay.fate(file, files.fork, *block) == ReplayEffect::Kept)
                .collect(),
        }
    }

    fn missed_by_older_wal(&self, files: &ForkFiles) -> MissedBlocks {
        let mut missed = MissedBlocks::default();
        let is_known = self.control.trusted().is_some();
        let Some(older) = is_known.then(|| self.older_wal_aside()).flatten() else {
            return missed;
        };
        let end = files.blocks(self.build.block_size, self.build.segment_bytes);
        for block in older.touched.blocks_of(files.number()) {
            if older.touched.may_lack(files.number(), block, end) {
                continue;
            }
            if u64::from(block) >= end {
                missed.beyond.push(block);
                continue;
            }
            let page = read_block(self.source().as_ref(), files, self.build, block);
            if page.is_some_and(|page| page.iter().all(|byte| *byte == 0)) {
                missed.zeroed.push(block);
            }
        }
        missed
    }
}
