//! What indexes say of a table before a recovery that changes them.

use pgclinic_cluster::wal::ReplayEffect;
use pgclinic_cluster::{BlockSet, ForkFiles, Pieces, Relation};
use pgclinic_format::{BlockNo, Fork, Page};

use super::super::own_keys::read_page;
use super::{Hearing, Witness, Witnesses};

impl Witnesses<'_> {
    /// Indexes as they lie there, before a recovery that changes them and their table. What their
    /// entries lead to was there when they were written, and stays until VACUUM removes the entry
    /// and then cuts the table: where recovery does not cut it, a block past its end is lost, and
    /// so is what stood on a page of zeros that recovery leaves alone. A page of an index that was
    /// being written when the server went down may be torn and would name anything: only its
    /// checksum makes it a witness, or that recovery leaves it alone, as then nobody had changed it
    /// since the checkpoint.
    pub(super) fn earlier(
        &self,
        heard: &Hearing<'_>,
        indexes: &[(&Relation, ForkFiles)],
    ) -> Witness {
        let Some(replay) = self.replay else {
            return Witness::Earlier(None);
        };
        let keeps = |files: &ForkFiles| replay.keeps_length(files.number());
        let table = heard.heap.number();
        let asked = indexes.iter().filter(|(_, files)| keeps(files));
        let asked: Vec<_> = asked.filter(|_| keeps(heard.heap)).collect();
        let extent = heard.extent.left_alone(replay, table);
        let has_checksums = self.cluster.checksums() == Some(true);
        let is_kept = |file, block| replay.fate(file, Fork::Main, block) == ReplayEffect::Kept;
        let (mut foreign, mut unheard) = (None, None);
        for (index, files) in asked {
            let earlier = Hearing {
                extent: &extent,
                hears: &|block| has_checksums || is_kept(files.number(), block),
                tells: &|block| is_kept(table, block) && !heard.extent.damaged.holds(block),
                ..*heard
            };
            let (mut statement, _) = self.hear_leaves(index, files, &earlier);
            statement.is_earlier = true;
            if statement.is_foreign {
                foreign = Some(statement);
            } else if statement.speaks() {
                let refilled = extent.with_refilled(replay, table);
                let all = Hearing {
                    extent: &refilled,
                    hears: &|_| true,
                    ..earlier
                };
                let (all, _) = self.hear_leaves(index, files, &all);
                statement.doubtful = all.claimed().saturating_sub(statement.claimed());
                return Witness::Broken(statement);
            } else {
                unheard = Some(statement.unheard_blocks);
            }
        }
        match foreign {
            Some(statement) => self.foreign(heard.table, statement),
            None => {
                let files: Vec<_> = indexes.iter().map(|(_, files)| files).collect();
                Witness::Earlier(self.doubted_zeros(heard, &files, unheard.as_ref()))
            }
        }
    }

    /// The first page of zeros that recovery leaves alone and of which rows may be lost: leaves
    /// that recovery changes name them as they lie there, or the entries that would name them may
    /// have gone to pages which only the write-ahead log has, and the page stood there before the
    /// last checkpoint, as `pg_class` counts it or an untouched page with rows follows. Pages that
    /// were added ahead of rows are legal.
    pub(super) fn doubted_zeros(
        &self,
        heard: &Hearing<'_>,
        indexes: &[&ForkFiles],
        unheard: Option<&BlockSet>,
    ) -> Option<BlockNo> {
        let (replay, file) = (self.replay?, heard.heap.number());
        // What is zero in a file that came since was never written.
        replay.keeps_length(file).then_some(())?;
        let is_kept = |block: BlockNo| replay.fate(file, Fork::Main, block) == ReplayEffect::Kept;
        let pieces = Pieces::of(heard.heap, self.cluster.build);
        let is_zeroed = |block: BlockNo| {
            let bytes = read_page(block, self.cluster, &pieces);
            let page = bytes.as_deref().and_then(Page::parse);
            page.is_some_and(Page::is_zeroed)
        };
        let selection = &self.options.selection;
        let mut zeros = heard.extent.vacant.blocks().filter(|block| {
            selection.takes_block((*block).into()) && is_kept(*block) && is_zeroed(*block)
        });
        let first = zeros.next()?;
        let mut zeros = std::iter::once(first).chain(zeros);
        let has_new_pages = || {
            let mut indexes = indexes.iter();
            indexes.any(|files| replay.adds_pages(files.number(), self.blocks_at_most(files)))
        };
        // Beside a server pages of zeros may wait for rows anywhere.
        if self.cluster.is_running() || (unheard.is_some() && !has_new_pages()) {
            return zeros.find(|block| unheard.is_some_and(|named| named.holds(*block)));
        }
        let length = (heard.table.relpages, heard.extent.end);
        let inside =
            replay.end_before_checkpoint(file, length, |block| heard.extent.is_suspect(block));
        zeros.find(|block| u64::from(*block) < inside)
    }

    /// Of a file that pretends to be longer than a segment the rest is no part of it.
    fn blocks_at_most(&self, index: &ForkFiles) -> u64 {
        let build = self.cluster.build;
        let blocks = index.bytes() / u64::from(build.block_size);
        let most = (index.segments.len() as u64).saturating_mul(build.segment_blocks());
        blocks.min(most)
    }
}
