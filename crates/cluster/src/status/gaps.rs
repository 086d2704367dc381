//! Pages of status logs that must be there and are not.
//!
//! Not every gap is a loss: `pg_resetwal -x`, `-m` and `-O` jump ahead and leave the files between
//! unmade, and a page ends where numbers ended then. So a page counts as lost only if the oldest
//! or the next number lies on it, if the page before it is used up to its last number, or if
//! members of a multixact stand on it.

use std::collections::BTreeMap;

use crate::Cluster;
use pgclinic_format::StatusLog;
use pgclinic_format::slru::PAGES_PER_SEGMENT;

use super::limits::{Span, StatusLimits, status_limits};
use super::multixact_walk::for_each_membership;
use super::pages::StatusPages;

/// The pages that one file lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The log.
    pub log: StatusLog,
    /// The first of them, counted through the whole log.
    pub first_page: u64,
    /// How many.
    pub pages: u64,
    /// The file is there, and too short.
    pub in_file: bool,
    /// Where it is or should be.
    pub place: pgclinic_model::document::Place,
    /// What the server says when it starts.
    pub server_says: Option<String>,
}

/// Every gap of a log, one a file.
pub fn gaps(cluster: &Cluster, limits: &StatusLimits, log: StatusLog) -> Vec<Gap> {
    let Ok(mut pages) = StatusPages::open(cluster, log) else {
        return Vec::new();
    };
    let mut missing = Missing::default();
    match log {
        StatusLog::Xact => missing.search(&mut pages, limits.xids, limits.settled),
        StatusLog::MultiOffsets => {
            // The oldest multixact may be one that was never made, if the next one is its
            // neighbour.
            let near = |first: u32| limits.multis.next.wrapping_sub(first) <= 1;
            let first = limits.multis.first.filter(|first| !near(*first));
            let span = Span {
                first,
                ..limits.multis
            };
            missing.search(&mut pages, span, limits.settled);
        }
        StatusLog::MultiMembers => missing.search_members(cluster, &mut pages, limits),
        StatusLog::CommitTs => {
            if let Some((oldest, newest)) = limits.commit_ts {
                let span = Span {
                    first: Some(oldest).filter(|_| limits.settled),
                    next: newest,
                };
                missing.search(&mut pages, span, limits.settled);
                // The newest one has its page even when it is the first on it.
                missing.want(&pages, pages.page_of(newest));
            }
        }
        StatusLog::Subtrans | StatusLog::Notify | StatusLog::Serial => {}
    }
    let next = match log {
        StatusLog::Xact => Some(limits.xids.next),
        StatusLog::MultiOffsets => Some(limits.multis.next),
        StatusLog::MultiMembers => Some(limits.next_member),
        _ => None,
    };
    // Recovery takes a page that is not there for zeros and says nothing.
    let is_read = limits.settled && cluster.recovered().is_none();
    missing.told(&pages, next.filter(|_| is_read))
}

/// Files of `pg_xact` and `pg_multixact` that lack what some row may need, one sentence a file.
pub fn lost_status_files(cluster: &Cluster) -> Vec<String> {
    let Some(limits) = status_limits(cluster) else {
        return Vec::new();
    };
    let logs = [
        StatusLog::Xact,
        StatusLog::MultiOffsets,
        StatusLog::MultiMembers,
    ];
    let lost = logs.into_iter().flat_map(|log| gaps(cluster, &limits, log));
    let words = |gap: Gap| {
        if gap.in_file {
            format!("{} ends too early", gap.place.path)
        } else {
            format!("{} is missing", gap.place.path)
        }
    };
    lost.map(words).collect()
}

/// Missing pages, first and last by file.
#[derive(Default)]
struct Missing {
    files: BTreeMap<u64, (u64, u64)>,
}

impl Missing {
    /// Notes a page, if it is missing.
    fn want(&mut self, pages: &StatusPages<'_>, page: u64) {
        if pages.has(page) {
            return;
        }
        let (first, last) = self
            .files
            .entry(page / PAGES_PER_SEGMENT)
            .or_insert((page, page));
        *first = page.min(*first);
        *last = page.max(*last);
    }

    /// From the page of the oldest number to that of the next one, on the circle.
    fn search(&mut self, pages: &mut StatusPages<'_>, span: Span, settled: bool) {
        let circle = pages.pages_on_circle();
        let end = pages.page_of(span.next);
        let ends_begun = pages.entry_of(span.next) > 0 && (settled || !goes_beyond(pages, end));
        let start = match span.first {
            Some(first) => pages.page_of(first),
            None => earliest(pages, end, circle),
        };
        let steps = (end + circle - start % circle) % circle;
        if steps > circle / 2 + 1 {
            return;
        }
        let begins_used = span
            .first
            .is_some_and(|first| first != span.next && pages.entry_of(first) > 0);
        let (mut lost, mut before) = (false, None);
        for page in (0..=steps).map(|step| (start + step) % circle) {
            if pages.has(page) {
                (lost, before) = (false, Some(page));
                continue;
            }
            let log = pages.log();
            let is_end = page == end;
            lost |= (page == start && begins_used)
                || before
                    .take()
                    .and_then(|before| pages.page(before))
                    .is_some_and(|bytes| log.is_used_to_its_end(bytes));
            if (lost && !is_end) || (is_end && ends_begun) {
                self.want(pages, page);
            }
        }
    }

    /// The pages that members of known multixacts stand on, and the one that is half full.
    fn search_members(
        &mut self,
        cluster: &Cluster,
        pages: &mut StatusPages<'_>,
        limits: &StatusLimits,
    ) {
        let next = limits.next_member;
        let end = pages.page_of(next);
        // The server reads the last page only when its first group is full.
        let begun = pages.entry_of(next) >= 4;
        if begun && (limits.settled || !goes_beyond(pages, end)) {
            self.want(pages, end);
        }
        let Ok(mut offsets) = StatusPages::open(cluster, StatusLog::MultiOffsets) else {
            return;
        };
        let circle = pages.pages_on_circle();
        for_each_membership(&mut offsets, limits, &mut |multi| {
            let mut page = pages.page_of(multi.start);
            let last = pages.page_of(multi.end.wrapping_sub(1));
            loop {
                self.want(pages, page);
                if page == last {
                    break;
                }
                page = (page + 1) % circle;
            }
        });
    }

    fn told(self, pages: &StatusPages<'_>, next: Option<u32>) -> Vec<Gap> {
        let gap = |(segment, (first_page, last))| Gap {
            log: pages.log(),
            first_page,
            pages: last - first_page + 1,
            in_file: pages.has_file(segment),
            place: pages.place(first_page),
            server_says: next
                .filter(|next| is_read_at_start(pages, *next))
                .filter(|next| (first_page..=last).contains(&pages.page_of(*next)))
                .map(|next| pages.refusal(next, pages.page_of(next))),
        };
        self.files.into_iter().map(gap).collect()
    }
}

/// The server looks at the page of the next number when it starts, unless it would be the first
/// one on it.
fn is_read_at_start(pages: &StatusPages<'_>, next: u32) -> bool {
    match pages.log() {
        StatusLog::MultiMembers => pages.entry_of(next) >= 4,
        _ => pages.entry_of(next) > 0,
    }
}

/// There are files behind that of this page, so that what replay knows lies further on.
fn goes_beyond(pages: &StatusPages<'_>, page: u64) -> bool {
    pages
        .files()
        .any(|file| file.segment > page / PAGES_PER_SEGMENT)
}

/// The farthest page there is before `end` on half of the circle.
fn earliest(pages: &StatusPages<'_>, end: u64, circle: u64) -> u64 {
    let behind = |first: u64| (end + circle - first % circle) % circle;
    let firsts = pages
        .files()
        .map(|file| file.segment.saturating_mul(PAGES_PER_SEGMENT));
    firsts
        .filter(|first| *first < circle && behind(*first) <= circle / 2)
        .max_by_key(|first| behind(*first))
        .unwrap_or(end)
}
