//! The pass over the blocks of both copies: threads take stretches of forks until none is left.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_cluster::{Build, ForkFiles, Relation, kind_of};
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::Progress;
use pgclinic_model::document::{Copy, DiffBlock, DiffCoverage, DiffDocument, DiffFork, Difference};

use crate::diff::DiffOptions;
use crate::diff::again::{self, Again, Suspect};
use crate::diff::judge::{Judge, Side};
use crate::diff::pairs::{Names, Pair, pairs};
use crate::walker::Bystander;

/// Bytes of one read from each copy.
const CHUNK_BYTES: u64 = 256 << 10;
/// Blocks that a thread takes at once.
const STRETCH_BLOCKS: u64 = 4096;
/// Blocks of one fork that are told; the rest is counted.
const BLOCKS_MAX: usize = 1000;

/// Blocks of one pair.
#[derive(Clone, Copy)]
struct Stretch {
    pair: usize,
    first: u64,
    end: u64,
}

/// What was seen of one pair.
#[derive(Default)]
struct Seen {
    /// Blocks that may be on their way, with how many each stands for.
    suspects: BTreeMap<BlockNo, u64>,
    counts: BTreeMap<Difference, u64>,
    /// Contradictions first, then by number.
    blocks: BTreeMap<(bool, BlockNo), DiffBlock>,
}

/// What one thread has seen.
#[derive(Default)]
struct Share {
    coverage: DiffCoverage,
    pairs: BTreeMap<usize, Seen>,
}

struct Pass<'a> {
    sides: (Side<'a>, Side<'a>),
    build: Build,
    pairs: &'a [Pair],
    names: &'a Names,
    stretches: Vec<Stretch>,
    next: AtomicUsize,
    options: &'a DiffOptions,
    progress: &'a dyn Progress,
}

/// Compares the forks of one database, or the shared ones.
pub(crate) fn compare_database(
    sides: (Side<'_>, Side<'_>),
    database: Oid,
    options: &DiffOptions,
    (progress, bystander): (&dyn Progress, &dyn Bystander),
    document: &mut DiffDocument,
) {
    let names = Names::read(sides, database);
    let pairs = pairs(sides, database, &names, options, &mut document.coverage);
    let build = sides.0.cluster.build;
    let both = pairs
        .iter()
        .filter(|pair| pair.a.is_some() && pair.b.is_some());
    document.coverage.forks += both.count() as u64;
    let pass = Pass {
        sides,
        build,
        pairs: &pairs,
        names: &names,
        stretches: stretches(&pairs, build),
        next: AtomicUsize::new(0),
        options,
        progress,
    };
    let blocks = pass.stretches.iter().map(|own| own.end - own.first);
    progress.expect(blocks.sum::<u64>() * u64::from(build.block_size));
    let threads = options.threads.get().min(pass.stretches.len().max(1));
    let shares = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| pass.work())).collect();
        let mut shares = vec![pass.work()];
        let joined = others
            .into_iter()
            .map(|other| other.join().expect("a thread of the pass does not panic"));
        shares.extend(joined);
        shares
    });
    pass.settle(shares, bystander, document);
}

fn blocks_of(files: Option<&ForkFiles>, build: Build) -> u64 {
    files.map_or(0, |files| {
        files.blocks(build.block_size, build.segment_bytes)
    })
}

/// A file that only one copy has is judged by its first block.
fn stretches(pairs: &[Pair], build: Build) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for (pair, own) in pairs.iter().enumerate() {
        let (in_a, in_b) = (
            blocks_of(own.a.as_ref(), build),
            blocks_of(own.b.as_ref(), build),
        );
        let end = match own.a.is_some() && own.b.is_some() {
            true => in_a.max(in_b),
            false => in_a.max(in_b).min(1),
        };
        let mut first = 0;
        while first < end {
            let stop = end.min(first + STRETCH_BLOCKS);
            stretches.push(Stretch {
                pair,
                first,
                end: stop,
            });
            first = stop;
        }
    }
    stretches
}

impl Pass<'_> {
    fn work(&self) -> Share {
        let mut share = Share::default();
        let len = usize::try_from(CHUNK_BYTES).unwrap_or(0);
        let mut buffers = (vec![0; len], vec![0; len]);
        loop {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(stretch) = self.stretches.get(next) else {
                return share;
            };
            let Some(pair) = self.pairs.get(stretch.pair) else {
                return share;
            };
            let whole = CHUNK_BYTES / u64::from(self.build.block_size).max(1);
            let mut first = stretch.first;
            while first < stretch.end && !self.progress.is_interrupted() {
                let segment = self.build.segment_blocks().max(1);
                let end = stretch.end.min((first / whole + 1) * whole);
                let end = end.min((first / segment + 1) * segment);
                self.chunk(stretch.pair, pair, (first, end), &mut buffers, &mut share);
                let bytes = (end - first) * u64::from(self.build.block_size);
                self.progress.advance(bytes);
                first = end;
            }
        }
    }

    fn chunk(
        &self,
        number: usize,
        pair: &Pair,
        (first, end): (u64, u64),
        buffers: &mut (Vec<u8>, Vec<u8>),
        share: &mut Share,
    ) {
        let a = self.read(self.sides.0, pair.a.as_ref(), (first, end), &mut buffers.0);
        let b = self.read(self.sides.1, pair.b.as_ref(), (first, end), &mut buffers.1);
        let block_size = usize::try_from(self.build.block_size).unwrap_or(8192);
        let (bytes_a, bytes_b) = (
            buffers.0.get(..a.unwrap_or(0)),
            buffers.1.get(..b.unwrap_or(0)),
        );
        let page = |at: usize| at * block_size..(at + 1) * block_size;
        let judge = self.judge(pair);
        share.coverage.bytes_read += a.unwrap_or(0) as u64 + b.unwrap_or(0) as u64;
        for (at, block) in (first..end).enumerate() {
            if !self.options.selection.takes_block(block) {
                continue;
            }
            let Ok(block) = BlockNo::try_from(block) else {
                return;
            };
            let own_a = bytes_a.and_then(|bytes| bytes.get(page(at)));
            let own_b = bytes_b.and_then(|bytes| bytes.get(page(at)));
            let told = match (own_a, own_b) {
                (Some(in_a), Some(in_b)) => {
                    share.coverage.blocks += 1;
                    if in_a == in_b {
                        share.coverage.blocks_equal += 1;
                        continue;
                    }
                    judge.differing(in_a, in_b, block)
                }
                (Some(there), None) if is_beyond(pair.b.as_ref(), self.build, block) => {
                    judge.missing(there, Copy::B, block)
                }
                (None, Some(there)) if is_beyond(pair.a.as_ref(), self.build, block) => {
                    judge.missing(there, Copy::A, block)
                }
                _ => unreadable(block),
            };
            let alone = pair.a.is_none() || pair.b.is_none();
            let count = if alone {
                blocks_of(pair.any(), self.build)
            } else {
                1
            };
            let seen = share.pairs.entry(number).or_default();
            match self.is_moving() && again::is_open(told.difference) {
                true => drop(seen.suspects.insert(told.block, count)),
                false => seen.keep(told, count),
            }
        }
    }

    /// Reads blocks of one copy; how many bytes are there, or nothing.
    fn read(
        &self,
        side: Side<'_>,
        files: Option<&ForkFiles>,
        (first, end): (u64, u64),
        buffer: &mut [u8],
    ) -> Option<usize> {
        let files = files?;
        let block_size = u64::from(self.build.block_size);
        let per_segment = self.build.segment_blocks().max(1);
        let segment = u32::try_from(first / per_segment).ok()?;
        let offset = first % per_segment * block_size;
        let len = usize::try_from((end - first) * block_size).ok()?;
        let room = buffer.get_mut(..len)?;
        let source = side.cluster.source();
        source.read_at(&files.path(segment), offset, room).ok()
    }

    fn judge(&self, pair: &Pair) -> Judge<'_> {
        judge_of(self.sides, self.names, pair)
    }

    /// A server is at work on one of the copies.
    fn is_moving(&self) -> bool {
        let (a, b) = self.sides;
        a.cluster.is_running() || b.cluster.is_running()
    }

    fn settle(&self, shares: Vec<Share>, bystander: &dyn Bystander, document: &mut DiffDocument) {
        let mut all: BTreeMap<usize, Seen> = BTreeMap::new();
        for share in shares {
            document.coverage.bytes_read += share.coverage.bytes_read;
            document.coverage.blocks += share.coverage.blocks;
            document.coverage.blocks_equal += share.coverage.blocks_equal;
            for (pair, seen) in share.pairs {
                all.entry(pair).or_default().absorb(seen);
            }
        }
        self.look_again(&mut all, bystander, &mut document.coverage);
        let forks = all.into_iter().filter(|(_, seen)| !seen.counts.is_empty());
        let forks = forks.filter_map(|(pair, seen)| self.told(self.pairs.get(pair)?, seen));
        document.forks.extend(forks);
    }

    fn look_again(
        &self,
        all: &mut BTreeMap<usize, Seen>,
        bystander: &dyn Bystander,
        coverage: &mut DiffCoverage,
    ) {
        let mut open = Vec::new();
        for (pair, seen) in all.iter_mut() {
            let suspects = std::mem::take(&mut seen.suspects).into_iter();
            open.extend(suspects.map(|(block, count)| Suspect::new(*pair, block, count)));
        }
        let again = Again {
            sides: self.sides,
            pairs: self.pairs,
            names: self.names,
            bystander,
        };
        again.look(open, coverage, &mut |pair, told, count| {
            all.entry(pair).or_default().keep(told, count);
        });
    }

    fn told(&self, pair: &Pair, seen: Seen) -> Option<DiffFork> {
        let files = pair.any()?;
        let relation = self.names.relation(files);
        let blocks =
            |files: Option<&ForkFiles>| files.map(|files| blocks_of(Some(files), self.build));
        let of_interest = seen
            .counts
            .iter()
            .filter(|(way, _)| **way != Difference::Hints);
        let total: u64 = of_interest.map(|(_, count)| count).sum();
        let kept: Vec<DiffBlock> = seen.blocks.into_values().collect();
        Some(DiffFork {
            database: self.names.database().map(str::to_owned),
            schema: relation.map(|relation| relation.schema.clone()),
            relation: relation.map(|relation| relation.name.clone()),
            filenode: files.filenode,
            path: files.path(0),
            kind: kind_of(relation),
            fork: files.fork,
            blocks_a: blocks(pair.a.as_ref()),
            blocks_b: blocks(pair.b.as_ref()),
            blocks_omitted: total.saturating_sub(kept.len() as u64),
            counts: seen.counts.into_iter().rev().collect(),
            blocks: kept,
        })
    }
}

/// Who decides over the blocks of a pair.
pub(crate) fn judge_of<'a>(sides: (Side<'a>, Side<'a>), names: &Names, pair: &Pair) -> Judge<'a> {
    let files = pair.any();
    let file = files.map_or(
        FileNumber {
            tablespace: 0,
            database: 0,
            filenode: 0,
        },
        ForkFiles::number,
    );
    let relation = files.and_then(|files| names.relation(files));
    Judge {
        a: sides.0,
        b: sides.1,
        file,
        fork: files.map_or(Fork::Main, |files| files.fork),
        method: relation.and_then(Relation::page_method),
    }
}

/// The copy's file ends before the block.
fn is_beyond(files: Option<&ForkFiles>, build: Build, block: BlockNo) -> bool {
    u64::from(block) >= blocks_of(files, build)
}

pub(crate) fn unreadable(block: BlockNo) -> DiffBlock {
    DiffBlock {
        block,
        difference: Difference::Unreadable,
        copy: None,
        lsn_a: None,
        lsn_b: None,
        why: "it cannot be read in one of the copies".into(),
    }
}

impl Seen {
    fn keep(&mut self, block: DiffBlock, count: u64) {
        *self.counts.entry(block.difference).or_default() += count;
        if block.difference != Difference::Hints {
            self.insert(block);
        }
    }

    fn insert(&mut self, block: DiffBlock) {
        let key = (!block.difference.is_contradiction(), block.block);
        self.blocks.insert(key, block);
        if self.blocks.len() > BLOCKS_MAX {
            self.blocks.pop_last();
        }
    }

    fn absorb(&mut self, other: Seen) {
        self.suspects.extend(other.suspects);
        for (way, count) in other.counts {
            *self.counts.entry(way).or_default() += count;
        }
        other
            .blocks
            .into_values()
            .for_each(|block| self.insert(block));
    }
}
