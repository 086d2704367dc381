//! What became of transactions and who locks rows, in both copies: `pg_xact`, `pg_multixact`,
//! `pg_commit_ts`. Their pages carry no LSN, so they are compared only where both copies were shut
//! down at one checkpoint.
//!
//! ```text
//! the folder of one server      every page, every file
//! a primary and its standby     entries of numbers that were given out and may still be asked for
//!   pg_xact                     committed in one and not in the other; aborted or left open is the same
//!   the others                  written in both, and not the same
//! ```
//!
//! A server that crashed may have written to these pages what no WAL record brought to its standby:
//! such an entry is of nobody. Truth:
//! `src/backend/access/transam/{slru,clog,multixact,commit_ts}.c`.

use std::collections::BTreeSet;

use pgclinic_cluster::status::{Gap, StatusLimits, StatusPages, gaps, status_limits};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::{self, PAGES_PER_SEGMENT};
use pgclinic_model::document::{
    Copy, DiffCoverage, DiffDocument, DiffFile, Difference, FileKind, NotChecked,
};

use crate::page_comparison::Side;
use crate::standing::{Standing, standing};

/// `TRANSACTION_STATUS_COMMITTED`.
const COMMITTED: u64 = 1;

type Sides<'a> = (Side<'a>, Side<'a>);

/// Compares the status files of both copies, or says why not.
pub(crate) fn compare(sides: Sides<'_>, document: &mut DiffDocument) {
    let standing = standing(sides);
    if standing == Standing::Apart {
        document.coverage.not_checked.push(NotChecked {
            what: "the status of transactions: pg_xact, pg_multixact, pg_commit_ts".into(),
            why: "their pages carry no LSN: they are compared where both copies were shut down at one checkpoint"
                .into(),
            inherent: true,
        });
        return;
    }
    let kept = StatusLog::ALL.into_iter().filter(|log| log.is_kept());
    for log in kept {
        let pages = (
            opened("A", sides.0, log, &mut document.coverage),
            opened("B", sides.1, log, &mut document.coverage),
        );
        if let (Some(a), Some(b)) = pages {
            let pair = LogPair {
                log,
                standing,
                limits: settled_limits(sides),
                a,
                b,
                lost: [sides.0, sides.1].map(|side| lost_pages(side, log)),
            };
            pair.compare(document);
        }
    }
}

fn opened<'a>(
    name: &str,
    side: Side<'a>,
    log: StatusLog,
    coverage: &mut DiffCoverage,
) -> Option<StatusPages<'a>> {
    match StatusPages::open(side.cluster, log) {
        Ok(pages) => Some(pages),
        Err(trouble) => {
            coverage.not_checked.push(NotChecked {
                what: format!("{} of {name}", trouble.what),
                why: trouble.why,
                inherent: false,
            });
            None
        }
    }
}

/// Those of the copy that gave the numbers out.
fn settled_limits(sides: Sides<'_>) -> Option<StatusLimits> {
    let limits = [sides.0, sides.1].map(|side| status_limits(side.cluster));
    limits.into_iter().flatten().find(|limits| limits.settled)
}

/// Pages that the copy needs and does not have.
fn lost_pages(side: Side<'_>, log: StatusLog) -> Vec<std::ops::Range<u64>> {
    let limits = status_limits(side.cluster);
    let gaps = limits.map_or_else(Vec::new, |limits| gaps(side.cluster, &limits, log));
    let range = |gap: Gap| gap.first_page..gap.first_page + gap.pages;
    gaps.into_iter().map(range).collect()
}

/// One log in both copies.
struct LogPair<'a> {
    log: StatusLog,
    standing: Standing,
    limits: Option<StatusLimits>,
    a: StatusPages<'a>,
    b: StatusPages<'a>,
    /// Pages that A and B need and do not have.
    lost: [Vec<std::ops::Range<u64>>; 2],
}

/// A page in both copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PageState {
    Equal,
    Differs,
    LostIn(Copy),
    Unreadable,
}

impl LogPair<'_> {
    fn compare(mut self, document: &mut DiffDocument) {
        let files = self.a.files().chain(self.b.files());
        let bytes: u64 = files.map(|file| file.len).sum();
        document.coverage.bytes_read += bytes;
        let files = self.a.files().chain(self.b.files());
        let segments: BTreeSet<u64> = files.map(|file| file.segment).collect();
        let members = self.first_member();
        for segment in segments {
            let lacking = match (self.a.has_file(segment), self.b.has_file(segment)) {
                (true, true) => None,
                (true, false) => Some(Copy::B),
                (false, _) => Some(Copy::A),
            };
            document.coverage.files += u64::from(lacking.is_none());
            let told = match lacking {
                Some(copy) => self.lone(segment, copy),
                None => self.differing(segment, members),
            };
            document.files.extend(told);
        }
    }

    /// Only one copy has the file.
    fn lone(&self, segment: u64, lacking: Copy) -> Option<DiffFile> {
        let first = segment * PAGES_PER_SEGMENT;
        let pages = first..first + PAGES_PER_SEGMENT;
        let is_lost = self.standing == Standing::OneFolder
            || pages.into_iter().any(|page| self.is_needed(page, lacking));
        let why = "both copies were shut down at one checkpoint, and only one has the file";
        is_lost.then(|| self.file(segment, (Difference::Lost, Some(lacking)), Vec::new(), why))
    }

    fn is_needed(&self, page: u64, lacking: Copy) -> bool {
        let [lost_a, lost_b] = &self.lost;
        let lost = match lacking {
            Copy::A => lost_a,
            Copy::B => lost_b,
        };
        lost.iter().any(|range| range.contains(&page))
    }

    /// Both copies have the file.
    fn differing(&mut self, segment: u64, members: Option<u32>) -> Option<DiffFile> {
        let first = segment * PAGES_PER_SEGMENT;
        let mut states: Vec<(u64, PageState)> = Vec::new();
        for within in 0..PAGES_PER_SEGMENT {
            let state = self.page(first + within, members);
            if state != PageState::Equal {
                states.push((within, state));
            }
        }
        let has = |state| states.iter().any(|(_, own)| *own == state);
        let (way, why) = if has(PageState::Differs) {
            (
                (Difference::Conflict, None),
                "both copies were shut down at one checkpoint, and tell different things of the same transactions",
            )
        } else if has(PageState::LostIn(Copy::A)) {
            (
                (Difference::Lost, Some(Copy::A)),
                "both copies were shut down at one checkpoint, and the file of A is shorter",
            )
        } else if has(PageState::LostIn(Copy::B)) {
            (
                (Difference::Lost, Some(Copy::B)),
                "both copies were shut down at one checkpoint, and the file of B is shorter",
            )
        } else if has(PageState::Unreadable) {
            (
                (Difference::Unreadable, None),
                "it cannot be read in one of the copies",
            )
        } else {
            return None;
        };
        let pages = states.into_iter().map(|(page, _)| page).collect();
        Some(self.file(segment, way, pages, why))
    }

    fn file(
        &self,
        segment: u64,
        (difference, copy): (Difference, Option<Copy>),
        pages: Vec<u64>,
        why: &str,
    ) -> DiffFile {
        let path = if self.a.has_file(segment) {
            self.a.path_of(segment)
        } else {
            self.b.path_of(segment)
        };
        DiffFile {
            path,
            kind: FileKind::Slru,
            difference,
            copy,
            pages,
            why: why.into(),
        }
    }

    fn page(&mut self, page: u64, members: Option<u32>) -> PageState {
        let (has_a, has_b) = (self.a.has(page), self.b.has(page));
        let a = self.a.page(page).map(<[u8]>::to_vec);
        let b = self.b.page(page).map(<[u8]>::to_vec);
        match (a, b) {
            (Some(a), Some(b)) if a == b || !self.tells_apart(page, (&a, &b), members) => {
                PageState::Equal
            }
            (Some(_), Some(_)) => PageState::Differs,
            (Some(there), None) if !has_b => self.alone(page, &there, Copy::B),
            (None, Some(there)) if !has_a => self.alone(page, &there, Copy::A),
            (None, None) if !has_a && !has_b => PageState::Equal,
            _ => PageState::Unreadable,
        }
    }

    /// Pages of zeros are made ahead, and lengths of files differ by them.
    fn alone(&self, page: u64, there: &[u8], lacking: Copy) -> PageState {
        let is_written = there.iter().any(|byte| *byte != 0);
        let is_lost = self.standing == Standing::OneFolder || self.is_needed(page, lacking);
        if is_written && is_lost {
            PageState::LostIn(lacking)
        } else {
            PageState::Equal
        }
    }

    /// Two pages that are not equal say different things.
    fn tells_apart(&self, page: u64, (a, b): (&[u8], &[u8]), members: Option<u32>) -> bool {
        if self.standing == Standing::OneFolder {
            return true;
        }
        let Some((first, next)) = self.span(members) else {
            return false;
        };
        let Some(start) = self.a.first_on(page) else {
            return false;
        };
        let entries = self.log.entries_per_page(a.len() as u64);
        let numbers = (start..=u32::MAX).zip(0usize..);
        let mut numbers = numbers.take(usize::try_from(entries).unwrap_or(0));
        numbers.any(|(number, at)| {
            let is_given = number.wrapping_sub(first) < next.wrapping_sub(first);
            is_given && is_another(self.log, entry(self.log, a, at), entry(self.log, b, at))
        })
    }

    /// Numbers that were given out and may still be asked for, up to but without the second one.
    fn span(&self, members: Option<u32>) -> Option<(u32, u32)> {
        let limits = self.limits?;
        match self.log {
            StatusLog::Xact => Some((limits.xids.first?, limits.xids.next)),
            StatusLog::MultiOffsets => Some((limits.multis.first?, limits.multis.next)),
            StatusLog::MultiMembers => Some((members?, limits.next_member)),
            StatusLog::CommitTs => {
                let (oldest, newest) = limits.commit_ts?;
                Some((oldest, newest.wrapping_add(1)))
            }
            StatusLog::Subtrans | StatusLog::Notify | StatusLog::Serial => None,
        }
    }

    /// The first member of the oldest multixact that may still be asked for, by the offsets of A.
    fn first_member(&self) -> Option<u32> {
        if self.log != StatusLog::MultiMembers {
            return None;
        }
        let oldest = self.limits?.multis.first?;
        let mut offsets = self.a.beside(StatusLog::MultiOffsets)?;
        let (page, at) = (offsets.page_of(oldest), offsets.entry_of(oldest));
        let offset = slru::multi_offset(offsets.page(page)?, at)?;
        (offset != 0).then_some(offset)
    }
}

/// What stands of a number on a page; 0 where nothing was written.
fn entry(log: StatusLog, page: &[u8], at: usize) -> u64 {
    let found = match log {
        StatusLog::Xact => slru::xact_status(page, at).map(u64::from),
        StatusLog::MultiOffsets => slru::multi_offset(page, at).map(u64::from),
        StatusLog::MultiMembers => slru::member(page, at)
            .filter(|(_, xid)| xid.0 != 0)
            .map(|(flags, xid)| u64::from(flags) << 32 | u64::from(xid.0)),
        StatusLog::CommitTs => slru::commit_ts(page, at).map(|(time, _)| time.cast_unsigned()),
        StatusLog::Subtrans | StatusLog::Notify | StatusLog::Serial => None,
    };
    found.unwrap_or(0)
}

fn is_another(log: StatusLog, a: u64, b: u64) -> bool {
    match log {
        StatusLog::Xact => (a == COMMITTED) != (b == COMMITTED),
        _ => a != 0 && b != 0 && a != b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_no_other_than_what_was_aborted() {
        let (open, committed, aborted, within) = (0, COMMITTED, 2, 3);
        let xact = StatusLog::Xact;
        assert!(is_another(xact, committed, aborted) && is_another(xact, open, committed));
        assert!(!is_another(xact, open, aborted) && !is_another(xact, within, aborted));
        let offsets = StatusLog::MultiOffsets;
        assert!(is_another(offsets, 7, 8));
        assert!(!is_another(offsets, 0, 8) && !is_another(offsets, 8, 8));
    }

    #[test]
    fn a_member_without_a_transaction_is_none() {
        let mut page = vec![0; 8192];
        page[0] = 1;
        assert_eq!(entry(StatusLog::MultiMembers, &page, 0), 0);
        page[4] = 9;
        assert_eq!(entry(StatusLog::MultiMembers, &page, 0), 1 << 32 | 9);
    }
}
