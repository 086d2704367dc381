//! What a relation had when the last checkpoint was taken, told by the WAL since.

use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork};

use super::replay::Replay;
use super::touched::ReplayEffect;

impl Replay {
    /// Pages came to the main fork since the checkpoint, which has so many blocks now; in an index,
    /// entries of older pages may have moved to them, which only WAL has.
    pub fn adds_pages(&self, file: FileNumber, blocks: u64) -> bool {
        let end = BlockNo::try_from(blocks).unwrap_or(BlockNo::MAX);
        let is_new = |block: BlockNo| {
            let effect = self.fate(file, Fork::Main, block);
            effect == ReplayEffect::Rewritten && !self.had_content(file, Fork::Main, block)
        };
        !self.keeps_length(file) || (0..end).any(is_new)
    }

    /// Before this block the table of so many blocks had pages before the checkpoint: `pg_class`
    /// counts it, or a page with content that no record touches follows. Pages that were added
    /// ahead of rows stand after it.
    pub fn end_before_checkpoint(
        &self,
        file: FileNumber,
        (relpages, blocks): (i32, u64),
        is_vacant: impl Fn(BlockNo) -> bool,
    ) -> u64 {
        let counted = u64::try_from(relpages).unwrap_or(0);
        let end = BlockNo::try_from(blocks).unwrap_or(BlockNo::MAX);
        let is_kept = |block| self.fate(file, Fork::Main, block) == ReplayEffect::Kept;
        let mut later = (0..end).rev();
        let last = later.find(|block| !is_vacant(*block) && is_kept(*block));
        counted.max(last.map_or(0, u64::from))
    }
}
