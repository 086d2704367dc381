//! Pages of pg_xact, pg_multixact and pg_commit_ts without which a server does not start, or
//! refuses rows: zeros, and what hint bits of rows say of their transactions.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::StatusPages;
use pgclinic_format::StatusLog;
use pgclinic_format::build::put_u32;
use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_model::plan::Change;
use pgclinic_source::{SourceErrorKind, read_all};

use super::directories::with_parents;
use super::kept_name;
use super::lost_pages::{LostInFile, LostPages};
use super::status_gaps::missing;
use super::votes::Votes;

const COMMITTED: u8 = 1;
const ABORTED: u8 = 2;
/// Files with a sentence of their own.
const FILES_TOLD: usize = 8;
/// Bytes that are no zeros: a journal keeps them all, and has to be read again.
const BYTES_MAX: u64 = 96 << 20;
/// Why a log is not filled.
pub(super) const TOO_LONG: &str = "so much of it is lost that a journal could not keep what would be written: take its files from a backup or a standby, full ones are the same everywhere";

/// What was made of the files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Filled {
    pub(super) changes: Vec<Change>,
    /// A sentence for each of the first files.
    words: Vec<String>,
    files: usize,
    /// Files with pages that were not there.
    made: usize,
    /// Transactions on new pages whose status their rows tell.
    pub(super) told: u64,
    /// Transactions on new pages of which rows ask, and nothing tells: they count as rolled back.
    pub(super) asked: u64,
    /// Their rows.
    pub(super) rows_asked: u64,
    /// Transactions that are committed by the hint bits of one row and rolled back by another's.
    pub(super) disagreed: u64,
    /// What a log would take is more than a journal keeps.
    pub(super) too_long: Option<StatusLog>,
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
                multis: [checkpoint.oldest_multi.0, checkpoint.next_multi.0],
                next_member: checkpoint.next_multi_offset,
            };
            filled.pages(cluster, pages, &LostPages::of(&missing), &known);
        }
    }
    filled
}

/// With what new pages are filled.
pub(super) struct Known<'a> {
    /// What rows say of transactions.
    pub(super) votes: &'a BTreeMap<u32, Votes>,
    /// The oldest multixact and the next one: no other is ever looked for.
    pub(super) multis: [u32; 2],
    pub(super) next_member: u32,
}

impl Filled {
    /// Makes what is lost of a log, and its directory.
    pub(super) fn pages(
        &mut self,
        cluster: &Cluster,
        mut pages: StatusPages<'_>,
        lost: &LostPages,
        known: &Known<'_>,
    ) {
        let offsets = lost.offsets(&mut pages, known);
        let mut made = Filled::default();
        let mut bytes = 0u64;
        for (segment, file) in &lost.files {
            let offset = offsets.get(segment).copied().unwrap_or(known.next_member);
            let written = made.file(cluster, &pages, (*segment, file), offset, known);
            let Some(written) = written else { continue };
            bytes = bytes.saturating_add(written);
            if bytes > BYTES_MAX {
                self.too_long = Some(pages.log());
                return;
            }
        }
        for directory in with_parents(cluster, &[pages.log().folder()]) {
            if !self.changes.contains(&directory) {
                self.changes.push(directory);
            }
        }
        self.add(made);
    }

    fn add(&mut self, other: Filled) {
        self.changes.extend(other.changes);
        let room = FILES_TOLD.saturating_sub(self.words.len());
        self.words.extend(other.words.into_iter().take(room));
        self.files = self.files.saturating_add(other.files);
        self.made = self.made.saturating_add(other.made);
        self.told += other.told;
        self.asked += other.asked;
        self.rows_asked += other.rows_asked;
        self.disagreed += other.disagreed;
    }

    /// Makes a file, or writes it anew; gives how many of its bytes a journal keeps.
    fn file(
        &mut self,
        cluster: &Cluster,
        pages: &StatusPages<'_>,
        (segment, lost): (u64, &LostInFile),
        offset: u32,
        known: &Known<'_>,
    ) -> Option<u64> {
        let path = pages.path_of(segment);
        let is_there = pages.has_file(segment);
        let Some((mut bytes, len)) = content(cluster, &path, lost) else {
            self.say(format!("{path}: it cannot be read, and stays as it is"));
            return None;
        };
        if let Some((first, last)) = lost.missing {
            let begin = segment.saturating_mul(PAGES_PER_SEGMENT);
            let made = [begin.saturating_add(first), begin.saturating_add(last)];
            match pages.log() {
                StatusLog::MultiOffsets => {
                    put_offsets(pages, (segment, made), &mut bytes, offset, known);
                }
                StatusLog::Xact => {
                    let first = pages.first_on(made[0]).unwrap_or(u32::MAX);
                    let end = pages.first_on(made[1].saturating_add(1));
                    let last = end.map_or(u32::MAX, |end| end.saturating_sub(1));
                    self.tell(pages, segment, (first, last), &mut bytes, known.votes);
                }
                _ => {}
            }
            self.made = self.made.saturating_add(1);
            let what = if is_there { "lengthened" } else { "made" };
            self.say(format!(
                "{path}: {what}, pages {first} to {last} of it were not there"
            ));
        }
        for (first, last) in &lost.zeroed {
            self.tell(pages, segment, (*first, *last), &mut bytes, known.votes);
            self.say(format!(
                "{path}: the status of transactions {first} to {last} was overwritten with zeros"
            ));
        }
        // What follows is zeros.
        let used = bytes.iter().rposition(|byte| *byte != 0);
        bytes.truncate(used.map_or(0, |last| last.saturating_add(1)));
        let written = bytes.len() as u64;
        self.changes.push(Change::Write {
            kept: is_there.then(|| kept_name(&path)),
            path,
            bytes,
            len,
        });
        Some(written)
    }

    fn say(&mut self, words: String) {
        self.files = self.files.saturating_add(1);
        if self.words.len() < FILES_TOLD {
            self.words.push(words);
        }
    }

    /// Sectors of zeros are all that is lost, and nothing is known of their transactions.
    pub(super) fn is_nothing_new(&self) -> bool {
        self.made == 0 && self.told == 0
    }

    /// What was made, in sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut all = self.words.clone();
        let more = self.files.saturating_sub(self.words.len());
        if more > 0 {
            all.push(format!("and so {more} more times"));
        }
        all
    }

    /// Writes what rows say of these transactions of a file. Rows that contradict each other, or
    /// do not know, tell nothing.
    fn tell(
        &mut self,
        pages: &StatusPages<'_>,
        segment: u64,
        (first, last): (u32, u32),
        bytes: &mut [u8],
        votes: &BTreeMap<u32, Votes>,
    ) {
        let begin = pages.first_on(segment.saturating_mul(PAGES_PER_SEGMENT));
        let Some(begin) = begin.filter(|_| first <= last) else {
            return;
        };
        for (xid, own) in votes.range(first..=last) {
            let Some(status) = unanimous(*own) else {
                let is_disagreed = own.committed > 0;
                self.disagreed += u64::from(is_disagreed);
                self.asked += u64::from(!is_disagreed);
                self.rows_asked += own.unhinted;
                continue;
            };
            self.told += 1;
            put_status(bytes, xid.wrapping_sub(begin), status);
        }
    }
}

/// The file as it is, as far as it is there, with room for what is lost, and how long it becomes;
/// nothing for one that cannot be read.
fn content(cluster: &Cluster, path: &str, lost: &LostInFile) -> Option<(Vec<u8>, u64)> {
    let page_bytes = u64::from(cluster.build.block_size);
    let source = cluster.source().as_ref();
    let full = page_bytes.saturating_mul(PAGES_PER_SEGMENT);
    let mut bytes = match read_all(source, path, full) {
        Err(error) if error.kind == SourceErrorKind::NotFound => Vec::new(),
        read => read.ok()?,
    };
    let wanted = lost.missing.map_or(0, |(_, last)| {
        page_bytes.saturating_mul(last.saturating_add(1))
    });
    let len = wanted.max(bytes.len() as u64);
    bytes.resize(usize::try_from(len).ok()?, 0);
    Some((bytes, len))
}

/// Every multixact of a new page begins where the next one that is known does, and so has no
/// members: the server takes a row that it locked or changed for one that nobody deleted. Zeros
/// would stop it with an error at each such row.
fn put_offsets(
    pages: &StatusPages<'_>,
    (segment, [first, last]): (u64, [u64; 2]),
    bytes: &mut [u8],
    offset: u32,
    known: &Known<'_>,
) {
    let begin = pages.first_on(segment.saturating_mul(PAGES_PER_SEGMENT));
    let (Some(begin), Some(from)) = (begin, pages.first_on(first)) else {
        return;
    };
    let end = pages.first_on(last.saturating_add(1)).unwrap_or(u32::MAX);
    let [oldest, next] = known.multis;
    let oldest = pages.first_on(pages.page_of(oldest)).unwrap_or(oldest);
    let is_used = |multi: &u32| multi.wrapping_sub(oldest) < next.wrapping_sub(oldest);
    for multi in (from.max(1)..end).filter(is_used) {
        let at = usize::try_from(multi.wrapping_sub(begin)).unwrap_or(usize::MAX);
        put_u32(bytes, at.saturating_mul(4), offset);
    }
}

/// What all rows say that know.
pub(super) fn unanimous(votes: Votes) -> Option<u8> {
    match (votes.committed, votes.aborted) {
        (1.., 0) => Some(COMMITTED),
        (0, 1..) => Some(ABORTED),
        (0, 0) | (1.., 1..) => None,
    }
}

pub(super) fn put_status(bytes: &mut [u8], entry: u32, status: u8) {
    let at = usize::try_from(entry / 4).unwrap_or(usize::MAX);
    if let Some(byte) = bytes.get_mut(at) {
        let shift = entry % 4 * 2;
        *byte = *byte & !(3 << shift) | status << shift;
    }
}
