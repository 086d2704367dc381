//! What is lost of a status log, by file: pages that are not there, and sectors of zeros.

use std::collections::BTreeMap;

use pgclinic_cluster::status::{StatusPages, ZeroedStatus};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::{PAGES_PER_SEGMENT, multi_offset};

use super::status_fill::Known;

/// What is lost of a log, by file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LostPages {
    pub(super) files: BTreeMap<u64, LostInFile>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LostInFile {
    /// First and last page of it that is not there.
    pub(super) missing: Option<(u64, u64)>,
    /// Transactions whose status is overwritten with zeros, from the first to the last.
    pub(super) zeroed: Vec<(u32, u32)>,
}

impl LostPages {
    /// Of pages that are not there.
    pub(super) fn of(missing: &[u64]) -> Self {
        let mut lost = LostPages::default();
        for page in missing {
            let within = page % PAGES_PER_SEGMENT;
            let file = lost.files.entry(page / PAGES_PER_SEGMENT).or_default();
            let (first, last) = file.missing.get_or_insert((within, within));
            (*first, *last) = (within.min(*first), within.max(*last));
        }
        lost
    }

    /// And of sectors that hold zeros.
    pub(super) fn with_zeroed(mut self, pages: &StatusPages<'_>, zeroed: &[ZeroedStatus]) -> Self {
        for own in zeroed {
            let ends = (u32::try_from(own.first), u32::try_from(own.last));
            if let (Ok(first), Ok(last)) = ends {
                let segment = pages.page_of(first) / PAGES_PER_SEGMENT;
                let file = self.files.entry(segment).or_default();
                file.zeroed.push((first, last));
            }
        }
        self
    }
}

impl LostPages {
    /// By file, where the members of the first multixact after its lost pages begin: as the page
    /// that follows says, or as after the file that follows.
    pub(super) fn offsets(
        &self,
        pages: &mut StatusPages<'_>,
        known: &Known<'_>,
    ) -> BTreeMap<u64, u32> {
        let mut offsets = BTreeMap::new();
        if pages.log() != StatusLog::MultiOffsets {
            return offsets;
        }
        let oldest = pages.page_of(known.multis[0]) / PAGES_PER_SEGMENT;
        let circle = pages.pages_on_circle().div_ceil(PAGES_PER_SEGMENT);
        let from_oldest = |segment: u64| (segment + circle - oldest % circle) % circle;
        let mut all: Vec<(u64, u64)> = self
            .files
            .iter()
            .filter_map(|(segment, file)| Some((*segment, file.missing?.1)))
            .collect();
        all.sort_by_key(|(segment, _)| std::cmp::Reverse(from_oldest(*segment)));
        let mut following = known.next_member;
        for (segment, last) in all {
            let next = segment * PAGES_PER_SEGMENT + last + 1;
            following = first_offset(pages, next % pages.pages_on_circle(), known)
                .unwrap_or(following)
                .max(1);
            offsets.insert(segment, following);
        }
        offsets
    }
}

/// Where the members of the first multixact on a page begin.
fn first_offset(pages: &mut StatusPages<'_>, page: u64, known: &Known<'_>) -> Option<u32> {
    // Number 0 is none.
    let first = pages.first_on(page)?.max(1);
    let [oldest, next] = known.multis;
    let is_used = first.wrapping_sub(oldest) < next.wrapping_sub(oldest);
    let entry = pages.entry_of(first);
    let offset = pages.page(page).and_then(|page| multi_offset(page, entry));
    offset.filter(|offset| is_used && *offset != 0)
}
