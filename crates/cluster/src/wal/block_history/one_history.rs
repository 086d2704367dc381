//! Which copies of a segment are of the cluster's own history, where some hold different records:
//! archives of clones, which have the same system identifier and names of files.
//!
//! ```text
//! archive of the cluster   | a | b | c | d |──┐
//! archive of a clone       | a | b | x | y |  ├─► own segment ─► checkpoint of the control file
//!                                   └ differ ─┘
//! ```
//!
//! Segments are asked from the last one backwards. The cluster's own file decides, then the
//! checkpoint of the control file, then which copy alone leads into the segments beside it, then
//! the pages of the cluster, whose LSNs are ends of records. Where that does not decide, WAL up to
//! there proves nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

use pgclinic_format::wal::{FileNumber, Shape, WalReader};
use pgclinic_format::{BlockNo, ControlFile, Fork, Lsn, Page};

use super::BlockAddress;
use super::copy_records::{CopyRecords, SegmentSpan, differ, leads_into};
use super::goal::is_checkpoint_of;
use super::open_copy::CopiesInLine;
use super::outcome::NotProven;
use super::page_copies::read_block;
use super::wal_copies::{Candidate, SegmentCopy, WalCopies};
use crate::cluster::Cluster;
use crate::wal::files::Timelines;

/// Blocks that carry the LSN of a record that only one copy has: so many are no chance.
const WITNESSES_NEEDED: usize = 3;
/// Blocks of one segment that are asked.
const WITNESSES_MAX: usize = 100_000;

/// What was decided.
#[derive(Default)]
pub(super) struct OneHistory {
    /// Copies of another history.
    left_out: BTreeSet<SegmentCopy>,
    /// The last segment of which it is open.
    pub(super) open: Option<OpenSegment>,
}

/// A segment of which two copies differ, and nothing tells which one is the cluster's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenSegment {
    pub(super) number: u64,
    /// Where it begins.
    pub(super) from: Lsn,
    one: String,
    other: String,
}

impl OpenSegment {
    pub(super) fn why(&self) -> NotProven {
        NotProven::WalCopiesDiffer {
            from: self.from,
            one: self.one.clone(),
            other: self.other.clone(),
        }
    }
}

impl OneHistory {
    pub(super) fn leaves_out(&self, copy: &SegmentCopy) -> bool {
        self.left_out.contains(copy)
    }

    /// Copies that it leaves out.
    pub(super) fn left_out_count(&self) -> usize {
        self.left_out.len()
    }
}

/// What tells the histories apart.
#[derive(Clone, Copy)]
pub(super) struct HistorySearch<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) control: &'a ControlFile,
    pub(super) shape: Shape,
    pub(super) copies: &'a WalCopies,
    pub(super) timelines: &'a Timelines,
    /// Records that begin here or later do not count.
    pub(super) limit: Lsn,
}

impl<'a> HistorySearch<'a> {
    /// Asks all segments of which there are several copies, until one is open.
    pub(super) fn decide(&self, numbers: RangeInclusive<u64>) -> OneHistory {
        let mut history = OneHistory::default();
        for number in numbers.rev() {
            let mut pool = self.copies.candidates(number, self.timelines);
            if pool.len() < 2 {
                continue;
            }
            history.open = self.decide_segment(number, &mut pool, &history);
            if history.open.is_some() {
                break;
            }
            let all = self.copies.candidates(number, self.timelines);
            let is_kept = |copy: &SegmentCopy| pool.iter().any(|own| own.copy == copy);
            let others = all.iter().filter(|own| !is_kept(own.copy));
            history.left_out.extend(others.map(|own| own.copy.clone()));
        }
        history
    }

    /// Takes from `pool` what is of another history.
    fn decide_segment(
        &self,
        number: u64,
        pool: &mut Vec<Candidate<'a>>,
        later: &OneHistory,
    ) -> Option<OpenSegment> {
        let span = SegmentSpan {
            number,
            limit: self.limit,
        };
        let pairs = self.differing_pairs(pool, span);
        if pairs.is_empty() {
            return None;
        }
        // The file that the server itself wrote needs no other witness.
        give_up(pool, &pairs, |own| own.copy.is_of_server());
        if first_left(pool, &pairs).is_some() {
            let fitting = self.fitting(number, pool, later);
            give_up(pool, &pairs, |own| fitting.contains(&own.copy));
        }
        if first_left(pool, &pairs).is_some() {
            self.ask_pages(pool, &pairs, span);
        }
        let (one, other) = first_left(pool, &pairs)?;
        Some(OpenSegment {
            number,
            from: span.begin(&self.shape),
            one: self.copies.words(one),
            other: self.copies.words(other),
        })
    }

    fn differing_pairs(&self, pool: &[Candidate<'a>], span: SegmentSpan) -> Vec<Pair<'a>> {
        let mut pairs = Vec::new();
        for (at, one) in pool.iter().enumerate() {
            for other in pool.iter().skip(at + 1) {
                if differ(self.shape, self.copies, (*one, *other), span) {
                    pairs.push((one.copy, other.copy));
                }
            }
        }
        pairs
    }

    /// Copies that hold the checkpoint of the control file, if it must be there, and hang together
    /// with the segments beside it.
    fn fitting(
        &self,
        number: u64,
        pool: &[Candidate<'a>],
        later: &OneHistory,
    ) -> Vec<&'a SegmentCopy> {
        let mut next = self.copies.candidates(number + 1, self.timelines);
        next.retain(|own| !later.leaves_out(own.copy));
        let previous = number.checked_sub(1);
        let previous = previous.map(|number| self.copies.candidates(number, self.timelines));
        let mut previous = previous.unwrap_or_default();
        previous.retain(|own| own.copy.is_of_server());
        let leads = |number, one, other| leads_into(self.shape, self.copies, (one, other), number);
        let to_next = |own: Candidate<'a>| next.iter().any(|next| leads(number, own, *next));
        let from_previous = |own: Candidate<'a>| {
            let mut all = previous.iter();
            all.any(|before| leads(number - 1, *before, own))
        };
        let is_last = self
            .shape
            .segment_number(Lsn(self.limit.0.saturating_sub(1)))
            <= number;
        let mut fitting = pool.to_vec();
        fitting.retain(|own| self.has_checkpoint(number, *own));
        if !is_last {
            keep_if_any(&mut fitting, to_next);
        }
        keep_if_any(&mut fitting, from_previous);
        fitting.iter().map(|own| own.copy).collect()
    }

    /// The record of the checkpoint is the one that the control file has, or lies elsewhere.
    fn has_checkpoint(&self, number: u64, own: Candidate<'_>) -> bool {
        let at = self.control.checkpoint_lsn;
        if self.shape.segment_number(at) != number {
            return true;
        }
        let pages = CopiesInLine::new(self.shape, self.copies, &[(number, own)]);
        let mut reader = WalReader::new(pages, self.shape, at);
        let record = reader.read().ok().filter(|record| record.lsn == at);
        record.is_some_and(|record| is_checkpoint_of(&record, self.shape.major, self.control))
    }

    /// A page carries as LSN the end of the record that changed it last. A copy without that record
    /// is of another history.
    fn ask_pages(&self, pool: &mut Vec<Candidate<'a>>, pairs: &[Pair<'a>], span: SegmentSpan) {
        let changes = pool.iter().map(|own| {
            let records = CopyRecords::new(self.shape, self.copies, *own, span);
            (own.copy, Changes::of(records))
        });
        let changes: HashMap<&SegmentCopy, Changes> = changes.collect();
        let witnessed = |one: &SegmentCopy, other: &SegmentCopy| {
            let both = changes.get(one).zip(changes.get(other));
            both.is_some_and(|(own, other)| {
                self.witnesses(own, other) >= WITNESSES_NEEDED && self.witnesses(other, own) == 0
            })
        };
        let refuted = pairs.iter().filter_map(|(one, other)| {
            if witnessed(one, other) {
                return Some(*other);
            }
            witnessed(other, one).then_some(*one)
        });
        let refuted: Vec<&SegmentCopy> = refuted.collect();
        pool.retain(|own| !refuted.contains(&own.copy));
    }

    /// Blocks of the cluster that carry the LSN of a record that only `own` has.
    fn witnesses(&self, own: &Changes, other: &Changes) -> usize {
        let alone = own.last.iter().filter(|((file, block), end)| {
            !other.all.contains(&(*file, *block, **end))
                && self.lsn_of(*file, *block) == Some(**end)
        });
        alone.take(WITNESSES_NEEDED).count()
    }

    fn lsn_of(&self, file: FileNumber, block: BlockNo) -> Option<Lsn> {
        let at = BlockAddress {
            file,
            fork: Fork::Main,
            block,
        };
        let page = read_block(self.cluster, at).ok()?;
        Page::parse(&page).map(Page::pd_lsn)
    }
}

/// Two copies that hold different records.
type Pair<'a> = (&'a SegmentCopy, &'a SegmentCopy);

/// The first pair of which both are still there.
fn first_left<'a>(pool: &[Candidate<'a>], pairs: &[Pair<'a>]) -> Option<Pair<'a>> {
    let is_there = |copy: &SegmentCopy| pool.iter().any(|own| own.copy == copy);
    let mut left = pairs
        .iter()
        .filter(|(one, other)| is_there(one) && is_there(other));
    left.next().copied()
}

/// Where none is right, it tells nothing.
fn keep_if_any<'a>(all: &mut Vec<Candidate<'a>>, is_right: impl Fn(Candidate<'a>) -> bool) {
    let right: Vec<Candidate<'a>> = all.iter().copied().filter(|own| is_right(*own)).collect();
    if !right.is_empty() {
        *all = right;
    }
}

/// Takes those away that differ from one which counts, and do not count themselves.
fn give_up<'a>(
    pool: &mut Vec<Candidate<'a>>,
    pairs: &[Pair<'a>],
    counts: impl Fn(&Candidate<'a>) -> bool,
) {
    let counting = pool.iter().filter(|own| counts(own));
    let counting: Vec<&SegmentCopy> = counting.map(|own| own.copy).collect();
    let is_refuted = |copy: &SegmentCopy| {
        let differing = pairs.iter().filter_map(|(one, other)| {
            if *one == copy {
                return Some(*other);
            }
            (*other == copy).then_some(*one)
        });
        differing.into_iter().any(|other| counting.contains(&other))
    };
    pool.retain(|own| counting.contains(&own.copy) || !is_refuted(own.copy));
}

/// What the records of a copy change in main forks.
#[derive(Default)]
struct Changes {
    /// Where each record ends.
    all: HashSet<(FileNumber, BlockNo, Lsn)>,
    /// Where the last record of each block ends.
    last: HashMap<(FileNumber, BlockNo), Lsn>,
}

impl Changes {
    fn of(records: CopyRecords<'_>) -> Self {
        let mut changes = Changes::default();
        records.each(|record| {
            let main = record.blocks.iter().filter(|own| own.fork == Fork::Main);
            for own in main {
                changes.all.insert((own.file, own.block, record.end));
                changes.last.insert((own.file, own.block), record.end);
            }
            changes.last.len() < WITNESSES_MAX
        });
        changes
    }
}
