//! Pages of WAL out of whichever copy of a segment can be read.

use std::collections::BTreeMap;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{Shape, WalPages};

use super::one_history::OneHistory;
use super::open_copy::OpenCopy;
use super::wal_copies::{Candidate, SegmentCopy, WalCopies};
use crate::wal::files::Timelines;

/// Reads pages on the way through the timelines; of each segment from one copy at a time.
pub(super) struct CopiedPages<'a> {
    shape: Shape,
    copies: &'a WalCopies,
    timelines: &'a Timelines,
    history: &'a OneHistory,
    /// Which copy of a segment is read, where it is not the first.
    choices: BTreeMap<u64, usize>,
    open: Option<(u64, OpenCopy<'a>)>,
    /// The last page that was asked for.
    asked: Lsn,
    bytes_read: u64,
}

impl<'a> CopiedPages<'a> {
    pub(super) fn new(
        shape: Shape,
        copies: &'a WalCopies,
        timelines: &'a Timelines,
        history: &'a OneHistory,
    ) -> Self {
        CopiedPages {
            shape,
            copies,
            timelines,
            history,
            choices: BTreeMap::new(),
            open: None,
            asked: Lsn(0),
            bytes_read: 0,
        }
    }

    /// The copies of a segment that do not belong to another history.
    fn candidates(&self, number: u64) -> Vec<Candidate<'a>> {
        let mut all = self.copies.candidates(number, self.timelines);
        all.retain(|own| !self.history.leaves_out(own.copy));
        all
    }

    fn open(&mut self, number: u64) -> Option<()> {
        let choice = self.choices.get(&number).copied().unwrap_or(0);
        let candidate = *self.candidates(number).get(choice)?;
        self.close();
        self.open = Some((number, OpenCopy::new(self.copies, candidate)));
        Some(())
    }

    fn close(&mut self) {
        self.bytes_read = self.bytes_read();
        self.open = None;
    }

    /// Bytes that were read of all copies.
    pub(super) fn bytes_read(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |(_, open)| open.bytes_read);
        self.bytes_read.saturating_add(open)
    }

    /// Turns to another copy of one of the segments that the record at `record` lies in, as far as
    /// it was read. False where there is none that was not tried.
    pub(super) fn try_another_copy(&mut self, record: Lsn) -> bool {
        let first = self.shape.segment_number(record);
        let last = self.shape.segment_number(self.asked).max(first);
        for number in (first..=last).rev() {
            let next = self.choices.get(&number).copied().unwrap_or(0) + 1;
            if next < self.candidates(number).len() {
                self.choices.insert(number, next);
                self.close();
                return true;
            }
        }
        false
    }

    /// The copy that is read of a segment.
    pub(super) fn chosen(&self, number: u64) -> Option<&'a SegmentCopy> {
        let choice = self.choices.get(&number).copied().unwrap_or(0);
        let candidates = self.candidates(number);
        candidates.get(choice).map(|own| own.copy)
    }

    /// The file that holds `at`, in words.
    pub(super) fn words_at(&self, at: Lsn) -> Option<String> {
        let copy = self.chosen(self.shape.segment_number(at))?;
        Some(self.copies.words(copy))
    }
}

impl WalPages for CopiedPages<'_> {
    fn page(&mut self, at: Lsn) -> Option<&[u8]> {
        self.asked = at;
        let number = self.shape.segment_number(at);
        if self.open.as_ref().is_none_or(|(own, _)| *own != number) {
            self.open(number)?;
        }
        let (_, open) = self.open.as_mut()?;
        open.page(at, &self.shape)
    }
}
