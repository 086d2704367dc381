//! How far the files of pg_xact, pg_multixact and pg_commit_ts reach, and what their last entries
//! say.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::StatusPages;
use pgclinic_format::slru::{PAGES_PER_SEGMENT, commit_ts, member, multi_offset, xact_status};
use pgclinic_format::{MultiXactId, StatusLog, Xid};

/// The pages of a log from the oldest number on, around the circle.
pub(super) struct Ends<'a> {
    pub(super) pages: StatusPages<'a>,
    oldest: u32,
}

impl<'a> Ends<'a> {
    /// Nothing where the directory cannot be listed.
    pub(super) fn of(cluster: &'a Cluster, log: StatusLog, oldest: u32) -> Option<Self> {
        let pages = StatusPages::open(cluster, log).ok()?;
        Some(Ends { pages, oldest })
    }

    /// Pages that are there, from the last one back to that of the oldest number.
    fn backwards(&self) -> Vec<u64> {
        let circle = self.pages.pages_on_circle();
        let start = self.pages.page_of(self.oldest);
        let from_start = |page: u64| (page + circle - start % circle) % circle;
        let files = self.pages.files();
        let all = files.flat_map(|file| {
            let first = file.segment.saturating_mul(PAGES_PER_SEGMENT);
            first..first.saturating_add(PAGES_PER_SEGMENT)
        });
        let mut there: Vec<u64> = all
            .filter(|page| *page < circle && self.pages.has(*page))
            .filter(|page| from_start(*page) <= circle / 2)
            .collect();
        there.sort_by_key(|page| std::cmp::Reverse(from_start(*page)));
        there
    }

    /// After the last number that has room in the files, counted from the oldest one; nothing
    /// where there are no files.
    pub(super) fn reach(&self) -> Option<u32> {
        let last = *self.backwards().first()?;
        let end = self.pages.first_on(last.checked_add(1)?).unwrap_or(0);
        Some(end.wrapping_sub(self.oldest))
    }

    /// The last number whose entry was written.
    pub(super) fn last_written(
        &mut self,
        is_written: impl Fn(&[u8], usize) -> bool,
    ) -> Option<u32> {
        for page in self.backwards() {
            let first = self.pages.first_on(page)?;
            let Some(bytes) = self.pages.page(page) else {
                continue;
            };
            let entries = bytes.len().saturating_mul(4);
            let last = (0..entries).rev().find(|entry| is_written(bytes, *entry));
            if let Some(last) = last {
                return first.checked_add(u32::try_from(last).ok()?);
            }
        }
        None
    }

    /// Runs of numbers from the oldest one to `distance` after it whose page is not there.
    pub(super) fn missing(&self, distance: u32) -> Vec<(u32, u32)> {
        let circle = self.pages.pages_on_circle();
        let (start, end) = (
            self.pages.page_of(self.oldest),
            self.pages.page_of(self.oldest.wrapping_add(distance)),
        );
        let steps = (end + circle - start % circle) % circle;
        let pages = (0..=steps).map(|step| (start + step) % circle);
        let lost = pages.filter(|page| !self.pages.has(*page));
        let run = |page: u64| {
            let first = self.pages.first_on(page)?;
            let next = self.pages.first_on(page + 1).unwrap_or(0);
            Some((first, next.wrapping_sub(first)))
        };
        lost.filter_map(run).collect()
    }
}

/// The last transaction that pg_xact knows to have ended.
pub(super) fn last_ended(ends: &mut Ends<'_>) -> Option<Xid> {
    let last = ends.last_written(|page, at| xact_status(page, at).is_some_and(|bits| bits != 0));
    last.map(Xid)
}

/// The next multixact and its first member, by the last one that has a place. The place of the
/// next one is noted before it has members.
pub(super) fn next_multixact(cluster: &Cluster, oldest: u32) -> Option<(MultiXactId, u32)> {
    let mut offsets = Ends::of(cluster, StatusLog::MultiOffsets, oldest)?;
    let is_written = |page: &[u8], at: usize| multi_offset(page, at).is_some_and(|own| own != 0);
    let multi = offsets.last_written(is_written)?;
    let entry = offsets.pages.entry_of(multi);
    let page = offsets.pages.page_of(multi);
    let start = multi_offset(offsets.pages.page(page)?, entry)?;
    let mut members = offsets.pages.beside(StatusLog::MultiMembers)?;
    let mut next = start;
    // A circle of members without an end has none.
    while next.wrapping_add(1) != start {
        let entry = members.entry_of(next);
        let page = members.page_of(next);
        let own = members.page(page).and_then(|page| member(page, entry));
        if own.is_none_or(|(_, xid)| xid == Xid::INVALID) {
            break;
        }
        next = next.wrapping_add(1);
    }
    let multi = MultiXactId(multi);
    let following = if next == start { multi } else { multi.next() };
    Some((following, next))
}

/// Oldest and newest transaction with a time stamp.
pub(super) fn time_stamps(cluster: &Cluster, oldest: Xid) -> Option<(Xid, Xid)> {
    let mut ends = Ends::of(cluster, StatusLog::CommitTs, oldest.0)?;
    let is_written = |page: &[u8], at: usize| commit_ts(page, at).is_some_and(|own| own.0 != 0);
    let newest = ends.last_written(is_written)?;
    let first = *ends.backwards().last()?;
    let first = ends.pages.first_on(first)?;
    let is_younger = Xid(first).is_normal() && oldest.precedes(Xid(first));
    let first = if is_younger { Xid(first) } else { oldest };
    Some((first, Xid(newest)))
}
