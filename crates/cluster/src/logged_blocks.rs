//! Blocks of a table that held something, by WAL. Where nothing else speaks for a table, because it
//! has no index, WAL does: a shutdown has written every page, one that held something is never all
//! zero again, and what recovery has an image of was there when the last checkpoint began.

use pgclinic_format::BlockNo;

use crate::cluster::Cluster;
use crate::files::ForkFiles;
use crate::wal::{Chain, Replay, ReplayEffect};

impl Cluster {
    /// Blocks of this main fork that must be there and hold something, by all WAL that there is;
    /// where recovery is due those past the end of its files alone, and nothing where a server
    /// runs.
    pub fn logged_blocks(&self, fork: &ForkFiles) -> Vec<BlockNo> {
        self.logged_blocks_by(fork, Cluster::older_wal)
    }

    /// The same by WAL that was read already, or is soon read.
    pub fn logged_blocks_aside(&self, fork: &ForkFiles) -> Vec<BlockNo> {
        self.logged_blocks_by(fork, Cluster::older_wal_aside)
    }

    /// WAL from before the last checkpoint was asked, and speaks of more blocks than are
    /// remembered: it says nothing.
    pub fn older_wal_overflows(&self) -> bool {
        let older = self.wal.older.get();
        let older = older.and_then(Option::as_ref);
        older.is_some_and(Chain::overflows)
    }

    fn logged_blocks_by<'c>(
        &'c self,
        fork: &ForkFiles,
        older: impl FnOnce(&'c Cluster) -> Option<&'c Chain>,
    ) -> Vec<BlockNo> {
        // Those of a cluster that was replayed in memory may be longer.
        let files = &self.fork_files(&fork.home, fork.filenode, fork.fork);
        let end = files.blocks(self.build.block_size, self.build.segment_bytes);
        if self.is_running() || self.is_partial() || self.control.trusted().is_none() {
            Vec::new()
        } else if self.needs_recovery() {
            let replay = self.replay();
            replay.map_or_else(Vec::new, |replay| before_recovery(replay, files, end))
        } else {
            let older = older(self);
            older.map_or_else(Vec::new, |older| older.blocks_left(files.number(), end))
        }
    }
}

/// What a later block proves to have been there, past the end of the files, and that recovery does
/// not bring: one whose first record brings an image of it, or reads it, is older than recovery.
fn before_recovery(replay: &Replay, files: &ForkFiles, end: u64) -> Vec<BlockNo> {
    let file = files.number();
    if !replay.keeps_length(file) {
        return Vec::new();
    }
    let fate = |block| replay.fate(file, files.fork, block);
    let was_there = |block: &BlockNo| {
        replay.had_content(file, files.fork, *block) || fate(*block) == ReplayEffect::Read
    };
    let Some(last) = replay.blocks_of(file).filter(was_there).last() else {
        return Vec::new();
    };
    let is_kept = |block: &BlockNo| fate(*block) == ReplayEffect::Kept;
    let first = BlockNo::try_from(end).unwrap_or(BlockNo::MAX);
    (first..=last).filter(is_kept).collect()
}
