//! What is proven of each page of a status log once the pass is over.

use pgclinic_format::digest::Digest;
use pgclinic_format::{Lsn, StatusLog};
use pgclinic_source::read_all;

use super::goal::{Goal, GoalKind};
use super::outcome::{ExactPage, NotProven, PageOrigin};
use super::page_copies::PageCopy;
use super::pass::Passed;
use super::status_pages::{StatusAddress, TrackedStatus, TrackedStatusPage};
use crate::cluster::Cluster;
use crate::status::{Span, StatusLimits, StatusPages, status_limits};

/// Bytes of the smallest piece that disks lose.
const SECTOR_BYTES: usize = 512;
/// Bytes of a file of a status log with the largest pages, and more.
const FILE_BYTES_MAX: u64 = 2 << 20;

/// What became of a page of a status log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredStatusPage {
    /// Which one.
    pub address: StatusAddress,
    /// Its page and how it is proven, or why it is not.
    pub outcome: Result<(ExactPage, Vec<u8>), NotProven>,
    /// Copies whose page could not be used, with the reason.
    pub refused_copies: Vec<String>,
}

/// What is known when a page is judged.
struct Judge<'a, 'b> {
    passed: &'b Passed<'a>,
    copies: &'b [PageCopy<'a>],
    goal: &'b Goal,
    limits: StatusLimits,
    page_bytes: u32,
}

pub(super) fn status_verdicts<'a>(
    tracked: TrackedStatus,
    cluster: &Cluster,
    passed: &Passed<'a>,
    copies: &[PageCopy<'a>],
    goal: &Goal,
) -> Vec<RecoveredStatusPage> {
    let limits = status_limits(cluster).filter(|_| goal.kind == GoalKind::ShutdownCheckpoint);
    let pages = tracked.pages.into_iter();
    let judged = pages.map(|page| {
        let mut refused = Vec::new();
        let outcome = match (&passed.failure, limits) {
            (Some(why), _) => Err(why.clone()),
            (None, None) => Err(NotProven::NotShutDown),
            (None, Some(limits)) => Judge {
                passed,
                copies,
                goal,
                limits,
                page_bytes: cluster.build.block_size,
            }
            .outcome(&page, &mut refused),
        };
        RecoveredStatusPage {
            address: page.address,
            outcome,
            refused_copies: refused,
        }
    });
    judged.collect()
}

/// A page of a copy, rolled forward.
struct RolledForward {
    page: Vec<u8>,
    name: String,
    redo: Lsn,
    is_in_manifest: bool,
}

impl Judge<'_, '_> {
    fn outcome(
        &self,
        tracked: &TrackedStatusPage,
        refused: &mut Vec<String>,
    ) -> Result<(ExactPage, Vec<u8>), NotProven> {
        let (page, origin) = match tracked.made {
            Some(lsn) => {
                let file = self.passed.pages.words_at(lsn).unwrap_or_default();
                (tracked.bytes.clone(), PageOrigin::NewPage { lsn, file })
            }
            None => match self.page_of_copies(tracked, refused) {
                Err(_) if self.is_before_all(tracked.address) => {
                    let zeros = vec![0; tracked.bytes.len()];
                    (zeros, PageOrigin::NeverAsked)
                }
                found => found?,
            },
        };
        let page = self.without_the_future(tracked.address, page);
        if tracked.address.log == StatusLog::MultiOffsets {
            self.is_full(tracked.address, &page)?;
        }
        let exact = ExactPage {
            lsn: tracked.last.or(tracked.made).unwrap_or(Lsn(0)),
            origin,
            applied: tracked.applied,
            last: tracked.last,
            wal_from: self.passed.run_from,
            wal_to: self.goal.at,
            wal_end: self.goal.words(),
            is_sequence: false,
        };
        Ok((exact, page))
    }

    /// The page of the latest copy that has one.
    fn page_of_copies(
        &self,
        tracked: &TrackedStatusPage,
        refused: &mut Vec<String>,
    ) -> Result<(Vec<u8>, PageOrigin), NotProven> {
        let mut found: Vec<RolledForward> = Vec::new();
        for (number, copy) in self.copies.iter().enumerate() {
            match self.page_of_copy(number, copy, tracked) {
                Ok(own) => found.push(own),
                Err(why) => refused.push(format!("{}: {why}", copy.name)),
            }
        }
        let pages = found.iter().map(|own| &own.page);
        let are_alike = pages
            .clone()
            .zip(pages.skip(1))
            .all(|(one, other)| one == other);
        if !are_alike {
            return Err(NotProven::CopiesDiffer);
        }
        let agree = found.len() > 1;
        let in_manifest = found.iter().position(|own| own.is_in_manifest);
        if found.is_empty() {
            let none = NotProven::NoStatusPage {
                wal_from: self.passed.run_from,
            };
            return Err(tracked.lost.clone().map_or(none, |(_, why)| why));
        }
        let RolledForward {
            page, name, redo, ..
        } = found.swap_remove(in_manifest.unwrap_or(0));
        let origin = PageOrigin::StatusCopy {
            name,
            redo,
            is_in_manifest: in_manifest.is_some(),
            agree,
        };
        Ok((page, origin))
    }

    fn page_of_copy(
        &self,
        number: usize,
        copy: &PageCopy<'_>,
        tracked: &TrackedStatusPage,
    ) -> Result<RolledForward, String> {
        let StatusAddress { log, page } = tracked.address;
        if copy.cluster.is_running() {
            return Err("a server runs on it".into());
        }
        // Without a label nothing tells whether the control file is as old as this file.
        if !(copy.was_shut_down() || copy.is_backup()) {
            return Err("it is neither a backup nor a copy that was shut down".into());
        }
        if self.passed.met.get(number) != Some(&true) || copy.redo < self.passed.run_from {
            return Err("WAL has not its checkpoint, and all that came after it".into());
        }
        if tracked
            .lost
            .as_ref()
            .is_some_and(|(lsn, _)| *lsn >= copy.redo)
        {
            return Err("it is older than what is not known".into());
        }
        // The pages have no LSN that would tell what was written later.
        if copy.may_be_later_than(self.goal.at, self.passed.goal_end) {
            return Err(format!("it may be later than {}", self.goal.words()));
        }
        let pages = StatusPages::open(copy.cluster, log);
        let mut pages = pages.map_err(|gap| gap.why)?;
        let base = pages.page(page).ok_or("the page is not there")?;
        let rolled = self.without_the_future(tracked.address, tracked.over(base));
        self.is_full(tracked.address, &rolled)
            .map_err(|why| why.to_string())?;
        let path = pages.path_of(page / pgclinic_format::slru::PAGES_PER_SEGMENT);
        Ok(RolledForward {
            page: rolled,
            name: copy.name.to_owned(),
            redo: copy.redo,
            is_in_manifest: is_in_manifest(copy.cluster, &path)?,
        })
    }

    /// Every number of the page is older than the oldest that anybody may ask for.
    fn is_before_all(&self, at: StatusAddress) -> bool {
        let oldest = match at.log {
            StatusLog::Xact => self.limits.xids.first,
            StatusLog::MultiOffsets => self.limits.multis.first,
            StatusLog::CommitTs => self.limits.commit_ts.map(|(oldest, _)| oldest),
            _ => None,
        };
        let page_bytes = u64::from(self.page_bytes);
        let behind = (at.page + 1).saturating_mul(at.log.entries_per_page(page_bytes));
        let last = u32::try_from(behind.saturating_sub(1)).ok();
        // On the circle, as every comparison of these numbers.
        let ages = oldest
            .zip(last)
            .map(|(oldest, last)| oldest.wrapping_sub(last));
        ages.is_some_and(|age| (1..1 << 31).contains(&age))
    }

    /// Nothing was given out from the next number on: after a crash the server itself removes what
    /// stands there (`TrimCLOG`, `TrimMultiXact`).
    fn without_the_future(&self, at: StatusAddress, mut page: Vec<u8>) -> Vec<u8> {
        let per_page = at.log.entries_per_page(page.len() as u64);
        let next = match at.log {
            StatusLog::Xact => self.limits.xids.next,
            StatusLog::MultiOffsets => self.limits.multis.next,
            _ => return page,
        };
        let page_bytes = page.len() as u64;
        if at.log.page_of(next, page_bytes) != at.page {
            return page;
        }
        let from = at.log.entry_of(next, page_bytes);
        match at.log {
            StatusLog::Xact => {
                for entry in from..per_page {
                    let byte = usize::try_from(entry / 4).unwrap_or(usize::MAX);
                    if let Some(byte) = page.get_mut(byte) {
                        *byte &= !(3 << ((entry % 4) * 2));
                    }
                }
            }
            // The end of the last one is the begin of the next.
            _ => {
                let from = usize::try_from((from + 1) * 4).unwrap_or(usize::MAX);
                page.get_mut(from..).unwrap_or_default().fill(0);
            }
        }
        page
    }

    /// No sector of what must be there is zero, and every multixact has its members.
    fn is_full(&self, at: StatusAddress, page: &[u8]) -> Result<(), NotProven> {
        let zeros = NotProven::ZerosInStatus;
        let limits = &self.limits;
        let is_lost = match at.log {
            StatusLog::Xact => has_zeroed_sector(at, page, limits.xids.next),
            StatusLog::MultiMembers => has_zeroed_sector(at, page, limits.next_member),
            StatusLog::MultiOffsets => lacks_offset(at, page, limits.multis),
            StatusLog::CommitTs => page.iter().all(|byte| *byte == 0),
            _ => true,
        };
        (!is_lost).then_some(()).ok_or(zeros)
    }
}

/// A sector before the one with the next number is all zero.
fn has_zeroed_sector(at: StatusAddress, page: &[u8], next: u32) -> bool {
    let page_bytes = page.len() as u64;
    let used = if at.log.page_of(next, page_bytes) == at.page {
        let per_page = at.log.entries_per_page(page_bytes).max(1);
        page_bytes * at.log.entry_of(next, page_bytes) / per_page
    } else {
        page_bytes
    };
    let used = usize::try_from(used).unwrap_or(usize::MAX);
    let used = page.get(..used).unwrap_or_default();
    let (sectors, _) = used.as_chunks::<SECTOR_BYTES>();
    sectors
        .iter()
        .any(|sector| sector.iter().all(|byte| *byte == 0))
}

/// A multixact that was given out and may still be asked for has no members there.
fn lacks_offset(at: StatusAddress, page: &[u8], multis: Span) -> bool {
    let Some(oldest) = multis.first else {
        return true;
    };
    let page_bytes = page.len() as u64;
    let first = at.page.saturating_mul(at.log.entries_per_page(page_bytes));
    let (offsets, _) = page.as_chunks::<4>();
    let span = multis.next.wrapping_sub(oldest);
    offsets.iter().zip(first..).any(|(offset, number)| {
        let Ok(number) = u32::try_from(number) else {
            return false;
        };
        number != 0 && number.wrapping_sub(oldest) < span && *offset == [0; 4]
    })
}

/// The manifest of the backup has the checksum of the file. A file that differs from it is none.
fn is_in_manifest(cluster: &Cluster, path: &str) -> Result<bool, String> {
    let manifest = cluster.manifest().filter(|manifest| manifest.sum_is_right);
    let file = manifest.and_then(|manifest| manifest.files.get(path));
    let Some((algorithm, sum)) = file.and_then(|file| file.sum.as_ref()) else {
        return Ok(false);
    };
    let bytes = read_all(cluster.source().as_ref(), path, FILE_BYTES_MAX);
    let bytes = bytes.map_err(|error| error.to_string())?;
    let mut digest = Digest::new(*algorithm);
    digest.update(&bytes);
    let is_same = digest.finish() == *sum;
    let other = "its file is not the one that the backup's manifest has";
    is_same.then_some(true).ok_or_else(|| other.into())
}
