//! Gathers the checksums that pages have and need, while a check reads them anyway.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use pgclinic_cluster::{Catalog, ForkFiles};
use pgclinic_format::checksum::{checksum_at, page_hash, page_hashes};
use pgclinic_format::{BlockNo, Oid, Page};
use pgclinic_scan::{Companion, CompanionShare, DatabaseCompanion, Window};

use super::record::{ChecksumField, RecordWriter};

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PageCounts {
    /// Pages with content.
    pub(super) pages: u64,
    /// Pages that were never written.
    pub(super) pages_new: u64,
    /// Of the pages with content, those whose checksum is another one.
    pub(super) to_write: u64,
}

/// Writes what it gathers to a record, in the order in which threads come by.
pub(super) struct Recorder<W> {
    inner: Mutex<Recorded<W>>,
}

struct Recorded<W> {
    writer: RecordWriter<W>,
    counts: PageCounts,
    failure: Option<io::Error>,
}

impl<W: Write> Recorder<W> {
    pub(super) fn new(out: W) -> Self {
        Recorder {
            inner: Mutex::new(Recorded {
                writer: RecordWriter::new(out),
                counts: PageCounts::default(),
                failure: None,
            }),
        }
    }

    /// What was counted, and the record; or why it could not be written.
    pub(super) fn finish(self) -> io::Result<(PageCounts, RecordWriter<W>)> {
        let inner = self.inner.into_inner();
        let inner = inner.unwrap_or_else(PoisonError::into_inner);
        match inner.failure {
            Some(failure) => Err(failure),
            None => Ok((inner.counts, inner.writer)),
        }
    }

    fn add(&self, path: &str, fields: &[ChecksumField], counts: PageCounts) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.counts.pages += counts.pages;
        inner.counts.pages_new += counts.pages_new;
        inner.counts.to_write += counts.to_write;
        if fields.is_empty() || inner.failure.is_some() {
            return;
        }
        inner.failure = inner.writer.section(path, fields).err();
    }
}

impl<W: Write + Send> DatabaseCompanion for Recorder<W> {
    fn database(&self, _: Oid, _: Option<&Catalog>, read: &mut dyn FnMut(&dyn Companion)) {
        read(self);
    }
}

impl<W: Write + Send> Companion for Recorder<W> {
    fn begin_fork(&self, _: &ForkFiles) -> Option<Box<dyn CompanionShare + '_>> {
        Some(Box::new(RecorderShare { recorder: self }))
    }
}

struct RecorderShare<'r, W> {
    recorder: &'r Recorder<W>,
}

impl<W: Write + Send> CompanionShare for RecorderShare<'_, W> {
    fn window(&mut self, window: &Window<'_>) {
        let mut counts = PageCounts::default();
        let mut fields = Vec::new();
        let pages: Vec<(BlockNo, &[u8])> = window.pages().collect();
        let hashes = hashes_of(pages.iter().map(|(_, page)| *page));
        for ((block, page), hash) in pages.iter().zip(hashes) {
            let Some(view) = Page::parse(page).filter(|view| !view.is_new()) else {
                counts.pages_new += 1;
                continue;
            };
            counts.pages += 1;
            let (before, after) = (view.pd_checksum(), checksum_at(hash, *block));
            if before != after {
                counts.to_write += 1;
                fields.push(ChecksumField {
                    block: *block,
                    before,
                    after,
                });
            }
        }
        self.recorder.add(&window.file.path, &fields, counts);
    }

    // Every window is in the record already.
    fn keep(self: Box<Self>, _: u64) {}
}

/// The hash of each page: four at once are quicker than one after the other.
pub(super) fn hashes_of<'p>(pages: impl Iterator<Item = &'p [u8]>) -> Vec<u32> {
    let pages: Vec<&[u8]> = pages.collect();
    let (fours, rest) = pages.as_chunks::<4>();
    let fours = fours.iter().flat_map(|four| page_hashes(*four));
    fours
        .chain(rest.iter().map(|page| page_hash(page)))
        .collect()
}
