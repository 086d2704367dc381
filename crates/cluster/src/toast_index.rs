//! Where the chunks of each long value stand.
//!
//! Chunks of one value nearly always follow each other in the file, so that a run of them needs one
//! entry: where the first stands, and how many follow.

use std::io;
use std::path::{Path, PathBuf};

use pgclinic_format::BlockNo;
use pgclinic_format::toast_chunk::PlainChunk;
use pgclinic_spill::{Budget, Lease, Lookup, LookupBlock, LookupWriter, SortedRuns};

/// Chunks of one value that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChunkRun {
    pub(crate) value: u32,
    pub(crate) seq: u32,
    /// 0 for chunks of rows that count, more for those that less probably belong to one.
    rank: u8,
    pub(crate) item: u16,
    pub(crate) block: BlockNo,
    pub(crate) count: u32,
}

impl ChunkRun {
    /// Its chunks are those of rows that count.
    pub(crate) fn is_of_row(&self) -> bool {
        self.rank == 0
    }

    /// The number of the chunk behind the last.
    pub(crate) fn end(&self) -> u32 {
        self.seq.saturating_add(self.count)
    }
}

/// Gathers runs from pages that come in order.
#[derive(Default)]
pub struct RunGatherer {
    runs: Vec<ChunkRun>,
}

impl RunGatherer {
    /// The next chunk of the file; `rank` as in [`ChunkRun`].
    #[inline]
    pub fn push(&mut self, chunk: PlainChunk<'_>, block: BlockNo, item: u16, rank: u8) {
        if let Some(last) = self.runs.last_mut()
            && last.value == chunk.value
            && last.end() == chunk.seq
            && last.rank == rank
        {
            last.count += 1;
            return;
        }
        self.runs.push(ChunkRun {
            value: chunk.value,
            seq: chunk.seq,
            rank,
            item,
            block,
            count: 1,
        });
    }

    /// All pages were seen.
    pub fn finish(self) -> Vec<ChunkRun> {
        self.runs
    }
}

/// Bytes of a run in a file.
const RUN_BYTES: usize = 19;

impl ChunkRun {
    /// So that bytes sort as runs do.
    #[expect(
        clippy::indexing_slicing,
        reason = "places of an array whose length is known"
    )]
    fn to_bytes(self) -> [u8; RUN_BYTES] {
        let mut bytes = [0; RUN_BYTES];
        let (head, tail) = bytes.split_at_mut(9);
        head[..4].copy_from_slice(&self.value.to_be_bytes());
        head[4..8].copy_from_slice(&self.seq.to_be_bytes());
        head[8] = self.rank;
        tail[..2].copy_from_slice(&self.item.to_be_bytes());
        tail[2..6].copy_from_slice(&self.block.to_be_bytes());
        tail[6..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let four = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(ChunkRun {
            value: four(0)?,
            seq: four(4)?,
            rank: *bytes.get(8)?,
            item: u16::from_be_bytes(*bytes.get(9..)?.first_chunk()?),
            block: four(11)?,
            count: four(15)?,
        })
    }
}

/// Takes the runs of a TOAST relation in any order; those that do not fit in memory are sorted on
/// disk.
pub struct RunCollector {
    runs: Vec<ChunkRun>,
    sorter: Option<SortedRuns>,
    folder: PathBuf,
    memory: Budget,
    lease: Lease,
}

impl RunCollector {
    /// With what this part of the plan has left when it is needed.
    pub fn new(memory: &Budget, folder: &Path) -> Self {
        RunCollector {
            runs: Vec::new(),
            sorter: None,
            folder: folder.to_owned(),
            memory: memory.clone(),
            lease: memory.take(0),
        }
    }

    /// Takes the runs of some pages.
    ///
    /// # Errors
    ///
    /// What the spill folder says.
    pub fn add(&mut self, runs: Vec<ChunkRun>) -> io::Result<()> {
        self.runs.extend(runs);
        // A vector that grows holds up to twice its bytes.
        let held = self.runs.len() * size_of::<ChunkRun>() * 2;
        if self.sorter.is_some() || !self.has_room(held as u64) {
            self.sort_away()?;
        }
        Ok(())
    }

    fn has_room(&mut self, held: u64) -> bool {
        let more = held.saturating_sub(self.lease.bytes());
        more == 0 || self.lease.try_grow(more)
    }

    fn sort_away(&mut self) -> io::Result<()> {
        let sorter = match &mut self.sorter {
            Some(sorter) => sorter,
            none => {
                // The sorter has a lease of its own.
                drop(std::mem::replace(&mut self.lease, self.memory.take(0)));
                none.insert(SortedRuns::within(&self.memory, &self.folder)?)
            }
        };
        for run in std::mem::take(&mut self.runs) {
            sorter.push(&run.to_bytes(), &[])?;
        }
        Ok(())
    }

    /// All runs are there.
    ///
    /// # Errors
    ///
    /// What the spill folder says.
    pub fn finish(mut self) -> io::Result<ChunkIndex> {
        let Some(sorter) = self.sorter.take() else {
            self.runs.sort_unstable();
            return Ok(ChunkIndex::Memory(self.runs, Some(self.lease)));
        };
        let mut writer = LookupWriter::create(&self.folder, RUN_BYTES, 4)?;
        for record in sorter.finish()? {
            writer.push(&record?.0)?;
        }
        Ok(ChunkIndex::Spilled(writer.finish()?))
    }
}

/// All runs of a TOAST relation, by value and number.
#[derive(Debug)]
pub enum ChunkIndex {
    /// They fit, on this lease.
    Memory(Vec<ChunkRun>, Option<Lease>),
    /// They do not.
    Spilled(Lookup),
}

/// What one reader keeps between look-ups.
#[derive(Default, Debug)]
pub(crate) struct KeptRuns {
    block: LookupBlock,
    runs: Vec<ChunkRun>,
}

impl ChunkIndex {
    /// Of runs in any order.
    pub fn new(mut runs: Vec<ChunkRun>) -> Self {
        runs.sort_unstable();
        ChunkIndex::Memory(runs, None)
    }

    /// The runs of a value, by number, the better ones first.
    pub(crate) fn runs<'a>(&'a self, value: u32, kept: &'a mut KeptRuns) -> &'a [ChunkRun] {
        let runs = match self {
            ChunkIndex::Memory(runs, _) => runs,
            ChunkIndex::Spilled(lookup) => {
                let KeptRuns { block, runs } = kept;
                runs.clear();
                let read = lookup.find(&value.to_be_bytes(), block, |record| {
                    runs.extend(ChunkRun::of_bytes(record));
                });
                if read.is_err() {
                    // What cannot be read back is missing, and told with the value.
                    runs.clear();
                }
                return runs;
            }
        };
        let start = runs.partition_point(|run| run.value < value);
        let rest = runs.get(start..).unwrap_or_default();
        let len = rest.partition_point(|run| run.value == value);
        rest.get(..len).unwrap_or_default()
    }
}

/// The run that holds chunk `seq`, the best one if there are several.
pub(crate) fn run_with(runs: &[ChunkRun], seq: u32) -> Option<&ChunkRun> {
    let holds = |run: &&ChunkRun| run.seq <= seq && seq < run.end();
    runs.iter().filter(holds).min_by_key(|run| run.rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(value: u32, seq: u32) -> PlainChunk<'static> {
        PlainChunk {
            value,
            seq,
            data: b"",
        }
    }

    #[test]
    fn chunks_in_a_row_are_one_run_and_live_ones_are_preferred() {
        let mut gatherer = RunGatherer::default();
        for (place, (value, seq, rank)) in
            (1..).zip([(7, 0, 3), (7, 1, 3), (9, 0, 0), (9, 1, 0), (7, 0, 0)])
        {
            gatherer.push(chunk(value, seq), 3, place, rank);
        }
        let runs = gatherer.finish();
        let folder = std::env::temp_dir();
        let spilled = |memory_bytes| {
            let mut collector = RunCollector::new(&Budget::new(memory_bytes), &folder);
            collector.add(runs.clone()).expect("taken");
            collector.finish().expect("an index")
        };
        for index in [spilled(1 << 20), spilled(0)] {
            let mut kept = KeptRuns::default();
            assert_eq!(index.runs(9, &mut kept).len(), 1);
            let runs = index.runs(7, &mut kept);
            assert_eq!(run_with(runs, 0).map(|run| run.item), Some(5));
            assert_eq!(run_with(runs, 1).map(|run| run.item), Some(1));
            assert_eq!(run_with(runs, 2), None);
            assert_eq!(index.runs(8, &mut kept), []);
        }
        assert!(matches!(spilled(0), ChunkIndex::Spilled(_)));
    }
}
