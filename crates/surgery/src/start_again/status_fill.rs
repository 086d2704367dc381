//! Pages of pg_xact, pg_multixact and pg_commit_ts without which a server does not start, or
//! refuses rows: zeros, and what hint bits of rows say of their transactions.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{Span, StatusLimits, StatusPages, gaps};
use pgclinic_format::build::put_u32;
use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_format::{StatusLog, Xid};
use pgclinic_model::plan::Change;
use pgclinic_source::read_all;

use super::directories::with_parents;
use super::kept_name;
use super::page_counters::Votes;

const COMMITTED: u8 = 1;
const ABORTED: u8 = 2;

/// What was made of the files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Filled {
    pub(super) changes: Vec<Change>,
    /// A sentence a file.
    pub(super) words: Vec<String>,
    /// Transactions on new pages whose status their rows tell.
    pub(super) told: u64,
    /// Transactions on new pages of which rows ask, and nothing tells: they count as rolled back.
    pub(super) asked: u64,
    /// Their rows.
    pub(super) rows_asked: u64,
}

/// The files up to the next numbers of the checkpoint.
pub(super) fn fill(
    cluster: &Cluster,
    checkpoint: &Checkpoint,
    votes: &BTreeMap<u32, Votes>,
) -> Filled {
    let mut filled = Filled::default();
    let logs = [
        StatusLog::Xact,
        StatusLog::MultiOffsets,
        StatusLog::MultiMembers,
        StatusLog::CommitTs,
    ];
    for log in logs {
        if let Ok(pages) = StatusPages::open(cluster, log) {
            let missing = missing(cluster, &pages, checkpoint);
            let known = Known {
                votes,
                next_multi: checkpoint.next_multi.0,
                next_member: checkpoint.next_multi_offset,
            };
            fill_pages(cluster, log, &missing, &known, &mut filled);
        }
    }
    filled
}

/// With what new pages are filled.
pub(super) struct Known<'a> {
    /// What rows say of transactions.
    pub(super) votes: &'a BTreeMap<u32, Votes>,
    pub(super) next_multi: u32,
    pub(super) next_member: u32,
}

/// Makes these pages of a log, and its directory.
pub(super) fn fill_pages(
    cluster: &Cluster,
    log: StatusLog,
    missing: &[u64],
    known: &Known<'_>,
    filled: &mut Filled,
) {
    let Ok(pages) = StatusPages::open(cluster, log) else {
        return;
    };
    for directory in with_parents(cluster, &[log.folder()]) {
        if !filled.changes.contains(&directory) {
            filled.changes.push(directory);
        }
    }
    let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for page in missing {
        let within = page % PAGES_PER_SEGMENT;
        let (first, last) = files
            .entry(page / PAGES_PER_SEGMENT)
            .or_insert((within, within));
        *first = within.min(*first);
        *last = within.max(*last);
    }
    for (segment, (first, last)) in files {
        filled.file(cluster, &pages, segment, (first, last), known);
    }
}

impl Filled {
    fn file(
        &mut self,
        cluster: &Cluster,
        pages: &StatusPages<'_>,
        segment: u64,
        (first, last): (u64, u64),
        known: &Known<'_>,
    ) {
        let page_bytes = u64::from(cluster.build.block_size);
        let path = pages.path_of(segment);
        let is_there = pages.has_file(segment);
        let len = page_bytes.saturating_mul(last.saturating_add(1));
        let own = read_all(cluster.source().as_ref(), &path, len).unwrap_or_default();
        let mut bytes = own;
        bytes.resize(usize::try_from(len).unwrap_or_default(), 0);
        if pages.log() == StatusLog::MultiOffsets {
            put_offsets(pages, segment, (first, last), &mut bytes, known);
        }
        if pages.log() == StatusLog::Xact {
            let from = segment
                .saturating_mul(PAGES_PER_SEGMENT)
                .saturating_add(first);
            self.tell(pages, from, segment, &mut bytes, known.votes);
        }
        let what = if is_there { "lengthened" } else { "made" };
        self.words.push(format!(
            "{path}: {what}, pages {first} to {last} of it were not there"
        ));
        self.changes.push(Change::Write {
            kept: is_there.then(|| kept_name(&path)),
            path,
            bytes,
            len,
        });
    }

    /// Writes what rows say of the transactions on the pages of a file, from this page on.
    fn tell(
        &mut self,
        pages: &StatusPages<'_>,
        from: u64,
        segment: u64,
        bytes: &mut [u8],
        votes: &BTreeMap<u32, Votes>,
    ) {
        let Some(begin) = pages.first_on(segment.saturating_mul(PAGES_PER_SEGMENT)) else {
            return;
        };
        let first = pages.first_on(from).unwrap_or(begin);
        let room = u32::try_from(bytes.len().saturating_mul(4)).unwrap_or(u32::MAX);
        let end = begin.saturating_add(room.saturating_sub(1));
        for (xid, own) in votes.range(first..=end) {
            let status = match own {
                Votes { committed: 1.., .. } => COMMITTED,
                Votes { aborted: 1.., .. } => ABORTED,
                _ => {
                    self.asked += 1;
                    self.rows_asked += own.unhinted;
                    continue;
                }
            };
            self.told += 1;
            put_status(bytes, xid.wrapping_sub(begin), status);
        }
    }
}

/// Every multixact of a new page begins where the next one will, and so has no members: the server
/// takes a row that it locked or changed for one that nobody deleted. Zeros would stop it with an
/// error at each such row.
fn put_offsets(
    pages: &StatusPages<'_>,
    segment: u64,
    (first, last): (u64, u64),
    bytes: &mut [u8],
    known: &Known<'_>,
) {
    let begin = segment.saturating_mul(PAGES_PER_SEGMENT);
    let numbers = |page: u64| pages.first_on(begin.saturating_add(page));
    let (Some(begin), Some(from)) = (numbers(0), numbers(first)) else {
        return;
    };
    let end = numbers(last.saturating_add(1)).unwrap_or(u32::MAX);
    let offset = known.next_member.max(1);
    for multi in from.max(1)..end.min(known.next_multi) {
        let at = usize::try_from(multi.wrapping_sub(begin)).unwrap_or(usize::MAX);
        put_u32(bytes, at.saturating_mul(4), offset);
    }
}

fn put_status(bytes: &mut [u8], entry: u32, status: u8) {
    let at = usize::try_from(entry / 4).unwrap_or(usize::MAX);
    if let Some(byte) = bytes.get_mut(at) {
        let shift = entry % 4 * 2;
        *byte = *byte & !(3 << shift) | status << shift;
    }
}

/// Pages between the oldest and the next number that are not there.
fn missing(cluster: &Cluster, pages: &StatusPages<'_>, checkpoint: &Checkpoint) -> Vec<u64> {
    let (first, next) = match pages.log() {
        StatusLog::Xact => (checkpoint.oldest_xid.0, checkpoint.next_xid().0),
        StatusLog::MultiOffsets => (checkpoint.oldest_multi.0, checkpoint.next_multi.0),
        _ => return by_gaps(cluster, pages.log(), checkpoint),
    };
    let circle = pages.pages_on_circle();
    let start = pages.page_of(first);
    // The page of the next number is made when the number is given out, if it is the first on it.
    let end = if pages.entry_of(next) == 0 && next != first {
        pages.page_of(next.wrapping_sub(1))
    } else {
        pages.page_of(next)
    };
    let steps = (end + circle - start % circle) % circle;
    if steps > circle / 2 + 1 {
        return Vec::new();
    }
    let all = (0..=steps).map(|step| (start + step) % circle);
    all.filter(|page| !pages.has(*page)).collect()
}

/// Those that members or time stamps must stand on.
fn by_gaps(cluster: &Cluster, log: StatusLog, checkpoint: &Checkpoint) -> Vec<u64> {
    let commit_ts = (
        checkpoint.oldest_commit_ts_xid,
        checkpoint.newest_commit_ts_xid,
    );
    let limits = StatusLimits {
        settled: true,
        xids: Span {
            first: Some(checkpoint.oldest_xid.0),
            next: checkpoint.next_xid().0,
        },
        epoch: u32::try_from(checkpoint.next_full_xid >> 32).unwrap_or(u32::MAX),
        multis: Span {
            first: Some(checkpoint.oldest_multi.0),
            next: checkpoint.next_multi.0,
        },
        next_member: checkpoint.next_multi_offset,
        commit_ts: (commit_ts.0 != Xid::INVALID).then_some((commit_ts.0.0, commit_ts.1.0)),
    };
    let gaps = gaps(cluster, &limits, log).into_iter();
    gaps.flat_map(|gap| gap.first_page..gap.first_page.saturating_add(gap.pages))
        .collect()
}
