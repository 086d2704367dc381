//! Files of a server at work: a page that is no sound page may be half written, and is read again
//! before anybody sees it.
//!
//! How often is decided in `torn_pages.rs`; what is wrong with the same bytes a moment later was so
//! before.

use std::sync::Arc;

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, Page};
use pgclinic_source::{Clock, Entry, Range, Result, Source, SourceError, SourceSpec};

use crate::build::Build;
use crate::file_name::RelationFileName;
use crate::torn_pages::{PageWaits, Reread, reread_page};

/// A source that reads a page again while it may be half written.
pub(crate) struct ReadAgain {
    under: Arc<dyn Source>,
    build: Build,
    has_checksums: bool,
    clock: Arc<dyn Clock>,
    waits: PageWaits,
}

impl ReadAgain {
    /// Of files with pages of this size.
    pub(crate) fn new(
        under: Arc<dyn Source>,
        build: Build,
        checksums: Option<bool>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        ReadAgain {
            under,
            build,
            has_checksums: checksums == Some(true),
            clock,
            waits: PageWaits::default(),
        }
    }

    /// The first block in the whole fork that a read of the file touches; nothing for files without
    /// pages.
    fn first_block(&self, path: &str, offset: u64) -> Option<BlockNo> {
        let (folder, name) = path.rsplit_once('/')?;
        let is_home =
            folder == "global" || folder.starts_with("base/") || folder.starts_with("pg_tblspc/");
        let name = RelationFileName::parse(name).filter(|name| is_home && !name.temporary)?;
        let page = u64::from(self.build.block_size);
        let is_aligned = offset.is_multiple_of(page);
        let before = u64::from(name.segment).checked_mul(self.build.segment_blocks())?;
        let block = before.checked_add(offset / page)?;
        BlockNo::try_from(block).ok().filter(|_| is_aligned)
    }

    fn is_sound(&self, bytes: &[u8], block: BlockNo) -> bool {
        let Some(page) = Page::parse(bytes) else {
            return false;
        };
        if page.is_new() {
            return page.is_zeroed();
        }
        let has_sum = !self.has_checksums || page.pd_checksum() == page_checksum(bytes, block);
        has_sum && page.header_is_sane_to_the_server()
    }

    /// Pages of the buffer that are not sound.
    fn unsound(&self, pages: &[u8], first: BlockNo) -> Vec<usize> {
        let size = usize::try_from(self.build.block_size).unwrap_or(8192);
        let numbered = pages.chunks_exact(size).zip(first..).enumerate();
        numbered
            .filter(|(_, (bytes, block))| !self.is_sound(bytes, *block))
            .map(|(at, _)| at)
            .collect()
    }

    /// Reads again what is not sound, until it is, or has the same bytes as before. Of a file that
    /// was cut meanwhile stands what was read.
    fn settle(&self, path: &str, offset: u64, pages: &mut [u8], first: BlockNo) -> Result<()> {
        let size = usize::try_from(self.build.block_size).unwrap_or(8192);
        let open = self.unsound(pages, first);
        if open.is_empty() {
            return Ok(());
        }
        let mut fresh = vec![0; size];
        let is_open = |at: &mut usize| {
            let place = offset.saturating_add((*at * size) as u64);
            let Some(page) = pages.get_mut(*at * size..(*at + 1) * size) else {
                return Ok(false);
            };
            let block = first.saturating_add(u32::try_from(*at).unwrap_or(u32::MAX));
            let read = |room: &mut [u8]| self.under.read_at(path, place, room);
            let reread = reread_page(page, &mut fresh, read, |page| self.is_sound(page, block))?;
            Ok(reread == Reread::Moving)
        };
        let clock = self.clock.as_ref();
        self.waits.settle_pages(open, clock, is_open).map(drop)
    }
}

impl Source for ReadAgain {
    /// The same files: whoever opens them elsewhere reads them as they are.
    fn spec(&self) -> &SourceSpec {
        self.under.spec()
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        self.under.list(folder)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.under.len(path)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let count = self.under.read_at(path, offset, buf)?;
        if let (Some(first), Some(pages)) = (self.first_block(path, offset), buf.get_mut(..count)) {
            self.settle(path, offset, pages, first)?;
        }
        Ok(count)
    }

    fn prefetch(&self, ranges: &[Range]) {
        self.under.prefetch(ranges);
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.under.unreadable()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use pgclinic_format::build::seal_page;
    use pgclinic_source::Memory;
    use pgclinic_source::conformance::{check, sample_tree};

    use super::*;

    /// Gives the next of these contents at each read, and the last one from then on.
    struct Moving {
        contents: Vec<Vec<u8>>,
        reads: AtomicUsize,
        spec: Memory,
    }

    impl Source for Moving {
        fn spec(&self) -> &SourceSpec {
            self.spec.spec()
        }

        fn list(&self, folder: &str) -> Result<Vec<Entry>> {
            self.spec.list(folder)
        }

        fn len(&self, path: &str) -> Result<u64> {
            self.spec.len(path)
        }

        fn read_at(&self, _path: &str, _offset: u64, buf: &mut [u8]) -> Result<usize> {
            let read = self.reads.fetch_add(1, Ordering::Relaxed);
            let content = &self.contents[read.min(self.contents.len() - 1)];
            buf[..content.len()].copy_from_slice(content);
            Ok(content.len())
        }
    }

    #[derive(Default)]
    struct Counted(Mutex<u32>);

    impl Clock for Counted {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _time: Duration) {
            *self.0.lock().expect("one thread") += 1;
        }
    }

    fn sound(byte: u8) -> Vec<u8> {
        let mut page = vec![0; 8192];
        page[12..20].copy_from_slice(&[24, 0, 0, 32, 0, 32, 4, 32]);
        page[8000] = byte;
        seal_page(&mut page, 3);
        page
    }

    fn torn() -> Vec<u8> {
        let (mut page, other) = (sound(1), sound(2));
        page[4096..].copy_from_slice(&other[4096..]);
        page
    }

    /// What a reader sees, and how often it was waited.
    fn read(path: &str, contents: Vec<Vec<u8>>) -> (Vec<u8>, u32) {
        let moving = Moving {
            contents,
            reads: AtomicUsize::new(0),
            spec: Memory::new("moving"),
        };
        let clock = Arc::new(Counted::default());
        let waits = Arc::clone(&clock);
        let source = ReadAgain::new(Arc::new(moving), Build::USUAL, Some(true), clock);
        let mut page = vec![0; 8192];
        let count = source.read_at(path, 3 * 8192, &mut page).expect("a page");
        assert_eq!(count, 8192);
        let waited = *waits.0.lock().expect("one thread");
        (page, waited)
    }

    #[test]
    fn a_sound_page_is_read_once() {
        let (page, waits) = read("base/5/16384", vec![sound(1), torn()]);
        assert_eq!((page, waits), (sound(1), 0));
    }

    #[test]
    fn a_torn_page_is_read_until_it_is_whole() {
        let other = {
            let mut page = torn();
            page[100] = 9;
            page
        };
        let (page, waits) = read("base/5/16384", vec![torn(), other, sound(2)]);
        assert_eq!((page, waits), (sound(2), 2));
    }

    #[test]
    fn what_stays_wrong_is_given_as_it_is() {
        let (page, waits) = read("base/5/16384", vec![torn()]);
        assert_eq!((page, waits), (torn(), 1));
    }

    #[test]
    fn it_is_a_source_as_others() {
        let tree = sample_tree();
        let below = tree
            .iter()
            .fold(Memory::new("below"), |below, (path, bytes)| {
                below.with(path, bytes.clone())
            });
        let clock = Arc::new(Counted::default());
        let source = ReadAgain::new(Arc::new(below), Build::USUAL, Some(true), clock);
        check(&source, &tree);
    }

    #[test]
    fn files_without_pages_are_read_as_they_are() {
        for path in [
            "pg_xact/0000",
            "base/5/pg_filenode.map",
            "base/5/t3_16384",
            "global/pg_control",
        ] {
            let (page, waits) = read(path, vec![torn(), sound(1)]);
            assert_eq!((page, waits), (torn(), 0), "{path}");
        }
    }
}
