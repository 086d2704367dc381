//! The pass over the blocks of both copies, as a consumer of the scan: one copy is read by it, the
//! other beside it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pgclinic_cluster::{Build, ForkFiles, Relation, kind_of};
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::Progress;
use pgclinic_model::document::{Copy, DiffBlock, DiffCoverage, DiffDocument, DiffFork, Difference};
use pgclinic_scan::{
    AlignedBuffer, Consumer, Cursor, Fault, ForkTask, InternalFault, LegOf, Scan, WINDOW_BYTES,
    Window, Writes,
};

use crate::DiffOptions;
use crate::page_comparison::{PageComparison, Side};
use crate::pairs::{Names, Pair, pairs};
use crate::recheck::{self, Recheck, Suspect};
use pgclinic_scan::live::LiveServer;

/// Blocks of one fork that are told; the rest is counted.
const BLOCKS_MAX: usize = 1000;

/// What was seen of one pair.
#[derive(Default)]
struct PairDifferences {
    /// Blocks that may be on their way, with how many each stands for.
    suspects: BTreeMap<BlockNo, u64>,
    counts: BTreeMap<Difference, u64>,
    /// Contradictions first, then by number.
    blocks: BTreeMap<(bool, BlockNo), DiffBlock>,
}

/// Compares the forks of one database, or the shared ones.
pub(crate) fn compare_database(
    sides: (Side<'_>, Side<'_>),
    database: Oid,
    options: &DiffOptions,
    (progress, server): (&dyn Progress, &dyn LiveServer),
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
        options,
        merged: Mutex::default(),
    };
    let scans = [Copy::A, Copy::B].map(|own| pass.scan_of(own, progress));
    progress.expect(scans.iter().map(Scan::bytes).sum());
    for (own, scan) in [Copy::A, Copy::B].into_iter().zip(&scans) {
        let report = scan.run(&OwnCopy { pass: &pass, own });
        let internal = report.internal.iter().map(InternalFault::not_checked);
        document.coverage.not_checked.extend(internal);
    }
    drop(scans);
    pass.settle((progress, server), document);
}

fn blocks_of(files: Option<&ForkFiles>, build: Build) -> u64 {
    files.map_or(0, |files| {
        files.blocks(build.block_size, build.segment_bytes)
    })
}

struct Pass<'a> {
    sides: (Side<'a>, Side<'a>),
    build: Build,
    pairs: &'a [Pair],
    names: &'a Names,
    options: &'a DiffOptions,
    merged: Mutex<Merged>,
}

/// What all workers have seen.
#[derive(Default)]
struct Merged {
    coverage: DiffCoverage,
    pairs: BTreeMap<usize, PairDifferences>,
}

/// The pass over the pairs whose files are read from this copy by the scan, and from the other one
/// beside it.
struct OwnCopy<'p, 'a> {
    pass: &'p Pass<'a>,
    own: Copy,
}

/// What one worker has seen of one pair.
struct DiffShare {
    number: usize,
    coverage: DiffCoverage,
    seen: PairDifferences,
}

impl Consumer for OwnCopy<'_, '_> {
    /// For what is read of the other copy.
    type Worker = AlignedBuffer;
    type Share = DiffShare;

    fn begin_worker(&self) -> AlignedBuffer {
        AlignedBuffer::new(usize::try_from(WINDOW_BYTES).unwrap_or(0))
    }

    fn begin_fork(&self, fork: &ForkTask<'_>, _: &mut AlignedBuffer) -> DiffShare {
        DiffShare {
            number: fork.number,
            coverage: DiffCoverage::default(),
            seen: PairDifferences::default(),
        }
    }

    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64 {
        leg.share.coverage.bytes_read += window.bytes().len() as u64;
        let pages = window.pages().count() as u64;
        let blocks = window.first_block..window.first_block + pages;
        self.compare(blocks, window.bytes(), cursor, leg);
        0
    }

    /// Blocks that this copy does not have, or that cannot be read; the other copy may have them.
    fn fault(&self, fault: &Fault<'_>, leg: &mut LegOf<Self>) {
        let blocks = fault.len.div_ceil(u64::from(self.pass.build.block_size));
        let end = fault.first_block + blocks;
        self.compare(fault.first_block..end, &[], &Cursor::default(), leg);
    }

    fn after_panic(&self, _: &InternalFault, _: &mut LegOf<Self>) -> bool {
        true
    }

    fn merge(&self, fork: &ForkTask<'_>, shares: Vec<DiffShare>) {
        let merged = self.pass.merged.lock();
        let mut merged = merged.unwrap_or_else(PoisonError::into_inner);
        for share in shares {
            merged.coverage.bytes_read += share.coverage.bytes_read;
            merged.coverage.blocks += share.coverage.blocks;
            merged.coverage.blocks_equal += share.coverage.blocks_equal;
            merged.coverage.blocks_of_one += share.coverage.blocks_of_one;
            let seen = merged.pairs.entry(fork.number).or_default();
            seen.absorb(share.seen);
        }
    }
}

impl OwnCopy<'_, '_> {
    /// Compares neighbouring blocks of one segment; `own` holds what this copy has of them.
    fn compare(&self, blocks: Range<u64>, own: &[u8], cursor: &Cursor, leg: &mut LegOf<Self>) {
        let pass = self.pass;
        let share = &mut leg.share;
        let Some(pair) = pass.pairs.get(share.number) else {
            return;
        };
        let (side, files) = match self.own {
            Copy::A => (pass.sides.1, pair.b.as_ref()),
            Copy::B => (pass.sides.0, pair.a.as_ref()),
        };
        let block_size = usize::try_from(pass.build.block_size).unwrap_or(8192);
        let whole = usize::try_from(blocks.end - blocks.start).unwrap_or(0);
        let room = leg.worker.space(whole * block_size);
        let count = pass.read(side, files, blocks.start, room);
        let other = count
            .and_then(|count| room.get(..count))
            .unwrap_or_default();
        share.coverage.bytes_read += other.len() as u64;
        let (in_a, in_b) = match self.own {
            Copy::A => (own, other),
            Copy::B => (other, own),
        };
        let comparison = pass.comparison(pair);
        for (at, block) in blocks.enumerate() {
            let Ok(block) = BlockNo::try_from(block) else {
                return;
            };
            cursor.at(block);
            let page = at * block_size..(at + 1) * block_size;
            let pages = (in_a.get(page.clone()), in_b.get(page));
            pass.block(pair, &comparison, block, pages, share);
        }
    }
}

impl<'a> Pass<'a> {
    /// The files of one copy: of A all that it has, of B what only that has.
    fn scan_of<'s>(&'s self, own: Copy, progress: &'s dyn Progress) -> Scan<'s> {
        let side = match own {
            Copy::A => self.sides.0,
            Copy::B => self.sides.1,
        };
        let numbered = self.pairs.iter().enumerate();
        let of_copy = numbered.filter_map(|(number, pair)| {
            let files = match own {
                Copy::A => pair.a.as_ref(),
                Copy::B => pair.b.as_ref().filter(|_| pair.a.is_none()),
            };
            Some(self.task(number, pair, files?))
        });
        Scan {
            source: side.cluster.source().as_ref(),
            forks: of_copy.collect(),
            threads: self.options.threads,
            progress,
            // What is not there any more is asked of the other copy all the same.
            writes: Writes::Nobody,
        }
    }

    /// All blocks that one of the copies has; a file that only one copy has is compared by its
    /// first block.
    fn task<'s>(&self, number: usize, pair: &Pair, files: &'s ForkFiles) -> ForkTask<'s> {
        let (in_a, in_b) = (
            blocks_of(pair.a.as_ref(), self.build),
            blocks_of(pair.b.as_ref(), self.build),
        );
        let end = if pair.a.is_some() && pair.b.is_some() {
            in_a.max(in_b)
        } else {
            in_a.max(in_b).min(1)
        };
        let whole = self.build.segment_blocks().max(1);
        let segments = (0..end.div_ceil(whole)).map(|number| number * whole);
        let ranges: Vec<Range<u64>> = segments
            .map(|first| first..end.min(first + whole))
            .collect();
        ForkTask::groups(number, files, self.build, &ranges)
    }

    /// Compares one block.
    fn block(
        &self,
        pair: &Pair,
        comparison: &PageComparison<'_>,
        block: BlockNo,
        pages: (Option<&[u8]>, Option<&[u8]>),
        share: &mut DiffShare,
    ) {
        if !self.options.selection.takes_block(block.into()) {
            return;
        }
        let alone = pair.a.is_none() || pair.b.is_none();
        let count = if alone {
            blocks_of(pair.any(), self.build)
        } else {
            1
        };
        let told = match pages {
            (Some(in_a), Some(in_b)) if in_a == in_b => {
                share.coverage.blocks += count;
                share.coverage.blocks_equal += count;
                return;
            }
            (Some(in_a), Some(in_b)) => comparison.differing(in_a, in_b, block),
            (Some(there), None) if is_beyond(pair.b.as_ref(), self.build, block) => {
                comparison.missing(there, Copy::B, block)
            }
            (None, Some(there)) if is_beyond(pair.a.as_ref(), self.build, block) => {
                comparison.missing(there, Copy::A, block)
            }
            _ => unreadable(block),
        };
        match pages {
            (Some(_), Some(_)) => share.coverage.blocks += count,
            _ => share.coverage.blocks_of_one += count,
        }
        if self.is_moving() && recheck::is_open(told.difference) {
            share.seen.suspects.insert(told.block, count);
        } else {
            share.seen.keep(told, count);
        }
    }

    /// Reads blocks of one copy; how many bytes are there, or nothing.
    fn read(
        &self,
        side: Side<'_>,
        files: Option<&ForkFiles>,
        first: u64,
        room: &mut [u8],
    ) -> Option<usize> {
        let files = files?;
        let per_segment = self.build.segment_blocks().max(1);
        let segment = u32::try_from(first / per_segment).ok()?;
        let offset = first % per_segment * u64::from(self.build.block_size);
        let source = side.cluster.source();
        source.read_at(&files.path(segment), offset, room).ok()
    }

    fn comparison<'p>(&'p self, pair: &'p Pair) -> PageComparison<'p> {
        comparison_of(self.sides, self.names, pair)
    }

    /// A server is at work on one of the copies.
    fn is_moving(&self) -> bool {
        let (a, b) = self.sides;
        a.cluster.is_running() || b.cluster.is_running()
    }

    fn settle(self, beside: (&dyn Progress, &dyn LiveServer), document: &mut DiffDocument) {
        let merged = self
            .merged
            .lock()
            .map(|mut merged| std::mem::take(&mut *merged));
        let Merged {
            coverage,
            pairs: mut all,
        } = merged.unwrap_or_default();
        document.coverage.bytes_read += coverage.bytes_read;
        document.coverage.blocks += coverage.blocks;
        document.coverage.blocks_equal += coverage.blocks_equal;
        document.coverage.blocks_of_one += coverage.blocks_of_one;
        self.look_again(&mut all, beside, &mut document.coverage);
        let forks = all.into_iter().filter(|(_, seen)| !seen.counts.is_empty());
        let forks = forks.filter_map(|(pair, seen)| self.told(self.pairs.get(pair)?, seen));
        document.forks.extend(forks);
    }

    fn look_again(
        &self,
        all: &mut BTreeMap<usize, PairDifferences>,
        (progress, server): (&dyn Progress, &dyn LiveServer),
        coverage: &mut DiffCoverage,
    ) {
        let mut open = Vec::new();
        for (pair, seen) in all.iter_mut() {
            let suspects = std::mem::take(&mut seen.suspects).into_iter();
            open.extend(suspects.map(|(block, count)| Suspect::new(*pair, block, count)));
        }
        let mut unsettled: u64 = open.iter().map(|own| own.count).sum();
        let again = Recheck {
            sides: self.sides,
            pairs: self.pairs,
            names: self.names,
            server,
            progress,
        };
        again.look(open, coverage, &mut |pair, told, count| {
            unsettled = unsettled.saturating_sub(count);
            all.entry(pair).or_default().keep(told, count);
        });
        coverage.blocks_unsettled += unsettled;
    }

    fn told(&self, pair: &Pair, seen: PairDifferences) -> Option<DiffFork> {
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
            toast_of: relation.and_then(|relation| self.names.toast_owner(relation)),
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
pub(crate) fn comparison_of<'a>(
    sides: (Side<'a>, Side<'a>),
    names: &Names,
    pair: &'a Pair,
) -> PageComparison<'a> {
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
    let major = sides.0.cluster.layout.major;
    let relpages = |copy| names.relpages(copy, files?, major);
    PageComparison {
        a: sides.0,
        b: sides.1,
        file,
        fork: files.map_or(Fork::Main, |files| files.fork),
        method: relation.and_then(Relation::page_method),
        is_missed: is_missed(sides, names, pair),
        relpages: (relpages(Copy::A), relpages(Copy::B)),
        pair,
    }
}

/// The copy without the file names it, and nothing is under way that may bring it or forget it.
fn is_missed(sides: (Side<'_>, Side<'_>), names: &Names, pair: &Pair) -> bool {
    let (lacking, there) = match (&pair.a, &pair.b) {
        (None, Some(there)) => (Copy::A, there),
        (Some(there), None) => (Copy::B, there),
        _ => return false,
    };
    let cluster = match lacking {
        Copy::A => sides.0.cluster,
        Copy::B => sides.1.cluster,
    };
    let is_at_rest = !cluster.needs_recovery() && !cluster.is_partial();
    let is_lasting = matches!(there.fork, Fork::Main | Fork::Init);
    is_at_rest && is_lasting && names.name(lacking, there)
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

impl PairDifferences {
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

    fn absorb(&mut self, other: PairDifferences) {
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
