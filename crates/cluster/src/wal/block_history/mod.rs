//! One block, or many, given back from evidence: the newest image that WAL has of it, or its page
//! in a backup or another copy, and every later record of it.
//!
//! ```text
//! copies of the cluster ─► a page as of some redo point ─┐
//! pg_wal, archives ─► one pass ─► newest image ──────────┴─► later records applied ─► page
//!                        └─ without a gap up to the end of the cluster's changes: exact, else not proven
//! ```
//!
//! A page is exact only where no later record of the block can be missing. Hint bits, and whatever
//! else the server's own masks leave out, may be older than on the page that was lost. Nothing is
//! written here.

mod copied_pages;
mod copy_records;
mod goal;
mod one_history;
mod open_copy;
mod outcome;
mod page_copies;
mod pass;
mod segments;
mod status_pages;
mod status_verdict;
mod tracked;
mod verdict;
mod wal_copies;
mod wal_of_files;

pub(super) use goal::is_checkpoint_of;
pub use outcome::{ExactPage, NotProven, PageOrigin};
pub use segments::{FoundSegment, FoundSegments, missing_segments};
pub use status_pages::StatusAddress;
pub use status_verdict::RecoveredStatusPage;
pub use tracked::ForkEnd;
pub use wal_copies::WalDirectory;
pub use wal_of_files::{
    BlockRecords, NoWalOfFiles, SegmentPlace, SegmentSink, WalOfFiles, place_of_block, wal_of_files,
};

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, ControlFile, Fork, Lsn};
use pgclinic_model::Progress;
use pgclinic_source::Presence;

use crate::cluster::Cluster;
use crate::error::ReadGap;
use crate::file_name::relation_path;
use crate::wal::files::Timelines;
use crate::wal::replayed::page_store::{KeptPages, PageNumber, PageStore};
use crate::wal::{Recovery, ReplaySpace};
use goal::{Goal, GoalKind};
use one_history::{HistorySearch, OneHistory};
use page_copies::PageCopy;
use pass::{Course, Start, pass};
use status_pages::TrackedStatus;
use status_verdict::status_verdicts;
use tracked::{Chain, TrackedBlock, TrackedBlocks, TrackedShape};
use wal_copies::WalCopies;

/// `WAL_LEVEL_MINIMAL`.
pub(crate) const MINIMAL: u32 = 0;

/// A block of a relation, as WAL names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockAddress {
    /// The relation's files.
    pub file: FileNumber,
    /// The fork.
    pub fork: Fork,
    /// The block, through the whole fork.
    pub block: BlockNo,
}

/// A backup, a standby or another copy of the damaged cluster.
pub struct CopyOfCluster<'a> {
    /// How the user named it.
    pub name: String,
    /// Its files.
    pub cluster: &'a Cluster,
}

/// What a recovery of blocks may use besides the cluster's own `pg_wal`. The `pg_wal` of each copy
/// is used, too.
#[derive(Default)]
pub struct Evidence<'a> {
    /// Archives, and other directories with WAL.
    pub wal: Vec<WalDirectory>,
    /// Backups and other copies.
    pub copies: Vec<CopyOfCluster<'a>>,
}

/// What became of one block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredBlock {
    /// Which one.
    pub address: BlockAddress,
    /// Its page and how it is proven, or why it is not.
    pub outcome: Result<ExactPage, NotProven>,
    /// Copies whose page could not be used, with the reason.
    pub refused_copies: Vec<String>,
    page: Option<PageNumber>,
}

/// What became of all of them.
pub struct RecoveredBlocks {
    /// In the order in which they were asked for, each once.
    pub blocks: Vec<RecoveredBlock>,
    /// Pages of status logs, in the order in which they were asked for, each once.
    pub status: Vec<RecoveredStatusPage>,
    /// How far the main forks reach in which they lie, where WAL was read.
    pub ends: BTreeMap<FileNumber, ForkEnd>,
    /// Copies of which no page could be used, with the reason.
    pub refused_copies: Vec<String>,
    /// What of the evidence could not be read.
    pub troubles: Vec<ReadGap>,
    /// Bytes of WAL that were read, decompressed.
    pub wal_bytes: u64,
    /// Records that were read.
    pub records: u64,
    pages: Option<KeptPages>,
}

impl RecoveredBlocks {
    /// The page of a block that is proven, with its checksum where the cluster has them.
    ///
    /// # Errors
    ///
    /// It was put into a temporary file, which cannot be read.
    pub fn page(&self, block: &RecoveredBlock) -> io::Result<Option<Vec<u8>>> {
        let (Some(pages), Some(number)) = (&self.pages, block.page) else {
            return Ok(None);
        };
        let mut page = Vec::new();
        pages.read(number, |bytes| page.extend_from_slice(bytes))?;
        Ok(Some(page))
    }

    fn none_proven(wanted: &WantedPages<'_>, why: &NotProven) -> Self {
        let block = |address: &BlockAddress| RecoveredBlock {
            address: *address,
            outcome: Err(why.clone()),
            refused_copies: Vec::new(),
            page: None,
        };
        let status = |address: &StatusAddress| RecoveredStatusPage {
            address: *address,
            outcome: Err(why.clone()),
            refused_copies: Vec::new(),
        };
        RecoveredBlocks {
            blocks: wanted.blocks.iter().map(block).collect(),
            status: wanted.status.iter().map(status).collect(),
            ends: BTreeMap::new(),
            refused_copies: Vec::new(),
            troubles: Vec::new(),
            wal_bytes: 0,
            records: 0,
            pages: None,
        }
    }
}

/// What is to be recovered.
#[derive(Clone, Copy, Default)]
pub struct WantedPages<'a> {
    /// Blocks of relations.
    pub blocks: &'a [BlockAddress],
    /// Pages of status logs. Two of them are kept in memory for each.
    pub status: &'a [StatusAddress],
}

/// Recovers blocks alone: see [`recover_pages`].
pub fn recover_blocks(
    cluster: &Cluster,
    blocks: &[BlockAddress],
    evidence: &Evidence<'_>,
    space: &ReplaySpace<'_>,
    progress: &dyn Progress,
) -> RecoveredBlocks {
    let wanted = WantedPages {
        blocks,
        status: &[],
    };
    recover_pages(cluster, &wanted, evidence, space, progress)
}

/// Recovers pages of a cluster on which no server runs, in one pass over the WAL. Blocks are kept
/// in `space`, on disk where that is full.
pub fn recover_pages(
    cluster: &Cluster,
    wanted: &WantedPages<'_>,
    evidence: &Evidence<'_>,
    space: &ReplaySpace<'_>,
    progress: &dyn Progress,
) -> RecoveredBlocks {
    let (goal, recovery, control) = match Goal::of(cluster) {
        Ok(goal) => goal,
        Err(why) => return RecoveredBlocks::none_proven(wanted, &why),
    };
    let copies = all_copies(cluster, evidence, recovery);
    let timelines = Timelines::to(goal.timeline, &copies.histories, &recovery.shape);
    let course = Course {
        shape: recovery.shape,
        copies: &copies,
        timelines: &timelines,
        history: &OneHistory::default(),
        goal,
        control,
        major: cluster.layout.major,
    };
    let (page_copies, refused) = page_copies_of(cluster, evidence, &course);
    let mut recovered = recover(
        (cluster, recovery, control),
        wanted,
        (course, &page_copies),
        space,
        progress,
    );
    recovered.refused_copies = refused;
    recovered.troubles.clone_from(&copies.troubles);
    recovered
}

/// Segments of all directories, with the histories that the cluster knows.
fn all_copies(cluster: &Cluster, evidence: &Evidence<'_>, recovery: &Recovery) -> WalCopies {
    let mut copies = WalCopies::list(directories(cluster, evidence), &recovery.shape);
    copies.take_histories_from_wal(&recovery.files);
    copies
}

/// The cluster's own WAL comes first.
fn directories(cluster: &Cluster, evidence: &Evidence<'_>) -> Vec<WalDirectory> {
    let own = WalDirectory::pg_wal("pg_wal", Arc::clone(cluster.source()));
    let of_copy = |copy: &CopyOfCluster<'_>| {
        let name = format!("pg_wal of {}", copy.name);
        WalDirectory::pg_wal(name, Arc::clone(copy.cluster.source()))
    };
    let of_copies = evidence.copies.iter().map(of_copy);
    let archives = evidence.wal.iter().cloned();
    std::iter::once(own)
        .chain(archives)
        .chain(of_copies)
        .collect()
}

/// Those that can be used, the latest first, and why others cannot.
fn page_copies_of<'a>(
    cluster: &Cluster,
    evidence: &'a Evidence<'_>,
    course: &Course<'_>,
) -> (Vec<PageCopy<'a>>, Vec<String>) {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for copy in &evidence.copies {
        let own = (cluster, course.control);
        let way = (course.timelines, course.copies);
        match PageCopy::of(copy, own, &course.goal, way) {
            Ok(copy) => usable.push(copy),
            Err(why) => refused.push(format!("{}: {why}", copy.name)),
        }
    }
    usable.sort_by_key(|copy| std::cmp::Reverse(copy.redo));
    (usable, refused)
}

fn recover<'a>(
    (cluster, recovery, control): (&Cluster, &Recovery, &ControlFile),
    wanted: &WantedPages<'_>,
    (course, copies): (Course<'a>, &'a [PageCopy<'a>]),
    space: &ReplaySpace<'_>,
    progress: &dyn Progress,
) -> RecoveredBlocks {
    let Some(oldest) = oldest_in_line(&course) else {
        let needed = course.goal.at;
        return RecoveredBlocks::none_proven(wanted, &NotProven::NoWal { needed });
    };
    let mut seen = HashSet::new();
    let once = wanted
        .blocks
        .iter()
        .filter(|address| seen.insert(**address));
    let blocks: Vec<TrackedBlock> = once
        .map(|address| tracked_block(cluster, *address, copies))
        .collect();
    let whole_of_status = (!wanted.status.is_empty()).then_some(copies);
    let mut start = start_of(
        (&blocks, whole_of_status),
        &course,
        oldest,
        recovery.start.redo,
    );
    let history = history_since(cluster, &course, start);
    let open = history.open.as_ref();
    if let Some(open) = open {
        if open.number >= last_segment(&course) {
            return RecoveredBlocks::none_proven(wanted, &open.why());
        }
        start = Start::Segment(open.number.saturating_add(1));
    }
    let course = Course {
        history: &history,
        ..course
    };
    let has_checksums = control.checksums();
    let pages = PageStore::new(cluster.page_bytes(), space, has_checksums);
    let shape = TrackedShape {
        major: course.major,
        page_bytes: cluster.page_bytes(),
        has_checksums,
        logs_contents: control.wal_level != MINIMAL,
    };
    let mut tracked = TrackedBlocks::new(blocks, pages, copies, shape);
    let mut status = TrackedStatus::new(wanted.status, cluster.page_bytes(), course.major);
    if let Some(open) = open {
        tracked.lose_all(&open.why());
        status.lose(open.from, &open.why(), |_| true);
    }
    let passed = pass(course, start, (&mut tracked, &mut status), copies, progress);
    let status = status_verdicts(status, cluster, &passed, copies, &course.goal);
    RecoveredBlocks {
        status,
        ..verdict::verdicts(tracked, passed, copies, &course.goal)
    }
}

fn tracked_block(
    cluster: &Cluster,
    address: BlockAddress,
    copies: &[PageCopy<'_>],
) -> TrackedBlock {
    let (base, refused) = page_copies::choose(copies, address);
    TrackedBlock {
        address,
        base,
        refused,
        chain: Chain::Nothing(NotProven::NoPage { wal_from: Lsn(0) }),
        last: None,
        never: never_proven(cluster, address),
    }
}

/// Why nothing could prove the block.
fn never_proven(cluster: &Cluster, address: BlockAddress) -> Option<NotProven> {
    match address.fork {
        Fork::Main => {}
        Fork::Init => return None,
        Fork::Fsm | Fork::Vm => return Some(NotProven::Map),
    }
    let init = relation_path(cluster.layout, address.file, Fork::Init, 0);
    match Presence::of_file(cluster.source().as_ref(), &init) {
        Presence::Missing => None,
        Presence::There(_) => Some(NotProven::Unlogged),
        Presence::Unreadable(error) => Some(NotProven::InitFork(error.to_string())),
    }
}

/// The lowest segment from which on none is missing up to the goal. Nothing where that itself is
/// missing.
fn oldest_in_line(course: &Course<'_>) -> Option<u64> {
    let last = last_segment(course);
    let has = |number: u64| course.copies.has(number, course.timelines);
    let line = (0..=last).rev().take_while(|number| has(*number));
    line.last()
}

/// The one with the goal.
fn last_segment(course: &Course<'_>) -> u64 {
    let goal = course.goal.at;
    match course.goal.kind {
        GoalKind::ShutdownCheckpoint => course.shape.segment_number(goal),
        // The end of WAL may be that of a segment.
        GoalKind::EndOfOwnWal | GoalKind::MinRecoveryPoint => {
            let before = goal.0.saturating_sub(1);
            course.shape.segment_number(Lsn(before))
        }
    }
}

/// Which copies count of the segments that the pass reads.
fn history_since(cluster: &Cluster, course: &Course<'_>, start: Start) -> OneHistory {
    let first = match start {
        Start::At(lsn) => course.shape.segment_number(lsn),
        Start::Segment(number) => number,
    };
    let goal = course.goal.at;
    let search = HistorySearch {
        cluster,
        control: course.control,
        shape: course.shape,
        copies: course.copies,
        timelines: course.timelines,
        limit: match course.goal.kind {
            // Its record counts.
            GoalKind::ShutdownCheckpoint => Lsn(goal.0.saturating_add(1)),
            GoalKind::EndOfOwnWal | GoalKind::MinRecoveryPoint => goal,
        },
    };
    search.decide(first..=last_segment(course))
}

/// Where the pass begins: at the earliest redo point of a copy that some block needs, or with all
/// WAL there is where some block has no copy. Pages of status logs need the redo points of all
/// copies.
fn start_of(
    (blocks, of_status): (&[TrackedBlock], Option<&[PageCopy<'_>]>),
    course: &Course<'_>,
    oldest: u64,
    own_redo: Lsn,
) -> Start {
    let open = blocks.iter().filter(|block| block.never.is_none());
    let redos: Option<Vec<_>> = open.map(|block| Some(block.base?.redo)).collect();
    let Some(mut redos) = redos else {
        return Start::Segment(oldest);
    };
    match of_status {
        None => {}
        Some([]) => return Start::Segment(oldest),
        Some(copies) => redos.extend(copies.iter().map(|copy| copy.redo)),
    }
    // The checkpoint in the control file must be met.
    redos.push(own_redo.min(course.control.checkpoint_lsn));
    let earliest = redos.into_iter().min().unwrap_or(own_redo);
    if course.shape.segment_number(earliest) < oldest {
        Start::Segment(oldest)
    } else {
        Start::At(earliest)
    }
}
