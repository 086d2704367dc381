//! The pass over files that come once, in the order of an archive: one thread, the same windows,
//! ledger and answer to failures of our own as [`crate::Scan`].

use pgclinic_format::BlockNo;
use pgclinic_model::Progress;
use pgclinic_source::tar::{Archives, StreamEntry, TarStream};
use pgclinic_source::{EntryKind, Result, SourceError};

use crate::aligned::AlignedBuffer;
use crate::consumer::{Cursor, InternalFault};
use crate::ledger::Ledger;
use crate::pool::{Panicked, guarded};
use crate::run::INTERNAL_MAX;
use crate::window::WINDOW_BYTES;

/// No segment is longer, whatever an archive says.
const EXPECTED_MAX: u64 = 1 << 40;

/// A consumer of files that pass by once.
pub trait StreamConsumer {
    /// What is at hand of the file that passes.
    type File;

    /// A directory, which comes before its files.
    fn directory(&mut self, path: &str);

    /// Before the bytes of a file: what is at hand of it, and which pages it has, if it has any.
    fn begin_file(&mut self, file: &StreamEntry) -> (Self::File, Option<StreamPages>);

    /// Bytes of it, once each and in order, whatever becomes of its pages.
    ///
    /// # Errors
    /// Where they cannot be kept; that ends the stream.
    fn bytes(&mut self, file: &StreamEntry, at_hand: &mut Self::File, bytes: &[u8]) -> Result<()>;

    /// Examines pages. Before each it tells the cursor where it is.
    fn pages(&mut self, window: &StreamWindow<'_>, cursor: &Cursor, at_hand: &mut Self::File);

    /// The consumer itself failed on the page with which the window begins. It puts in order what
    /// it was in the middle of; `false` gives up the pages of the rest of the file.
    fn after_panic(&mut self, _window: &StreamWindow<'_>, _at_hand: &mut Self::File) -> bool {
        false
    }

    /// After the last byte that came.
    fn end_file(&mut self, file: &StreamEntry, at_hand: Self::File, end: StreamFileEnd);

    /// In the place of `end_file`, where the consumer failed between pages: it has nothing of the
    /// file, and will not get any more.
    fn abandon(&mut self, file: &StreamEntry);
}

/// Which pages a file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamPages {
    /// Of its first page, counted through the fork.
    pub first_block: u64,
    /// Bytes of a page.
    pub block_bytes: u64,
}

/// How the bytes of a file ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamFileEnd {
    /// Bytes that came. Where they are fewer than the archive said, it was truncated, or the run
    /// interrupted.
    pub came: u64,
    /// Bytes of pages that nobody examined, as the consumer failed too often.
    pub unexamined: u64,
}

/// Neighbouring pages of a file that passes.
#[derive(Clone, Copy)]
pub struct StreamWindow<'w> {
    /// Their file.
    pub file: &'w StreamEntry,
    /// Where they begin in the file.
    pub offset: u64,
    /// The number of the first page in the fork.
    pub first_block: u64,
    /// All bytes that came; the last page may be half.
    pub bytes: &'w [u8],
    block_bytes: u64,
}

impl<'w> StreamWindow<'w> {
    /// The same without the pages before this one.
    fn since(&self, block: u64) -> Option<Self> {
        let pages = block.checked_sub(self.first_block)?;
        let done = pages.checked_mul(self.block_bytes)?;
        let bytes = self.bytes.get(usize::try_from(done).ok()?..)?;
        (!bytes.is_empty()).then_some(StreamWindow {
            offset: self.offset + done,
            first_block: block,
            bytes,
            ..*self
        })
    }

    /// Its first page.
    pub fn first_page(&self) -> Option<&'w [u8]> {
        self.bytes.get(..usize::try_from(self.block_bytes).ok()?)
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// What became of a stream.
#[derive(Debug)]
pub struct StreamReport {
    /// Every byte that was announced, up to where the stream ended.
    pub ledger: Ledger,
    /// Failures of ours, in the order of their places.
    pub internal: Vec<InternalFault>,
    /// How it ended.
    pub end: Result<StreamEnd>,
}

/// How a stream ended that did not break off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// Everything came.
    Whole,
    /// The run was interrupted.
    Interrupted,
}

/// Hands everything that comes to the consumer, until the end, an error or an interruption; what
/// came before it counts.
///
/// # Panics
/// When the ledger does not balance, which is a bug of this crate.
pub fn scan_stream<A: Archives, C: StreamConsumer>(
    stream: &mut TarStream<A>,
    consumer: &mut C,
    progress: &dyn Progress,
) -> StreamReport {
    let mut pass = StreamPass {
        consumer,
        progress,
        cursor: Cursor::default(),
        ledger: Ledger::default(),
        internal: Vec::new(),
    };
    let end = pass.run(stream);
    let StreamPass {
        ledger, internal, ..
    } = pass;
    assert!(
        ledger.is_balanced(),
        "the ledger of the stream does not balance: {ledger:?}"
    );
    StreamReport {
        ledger,
        internal,
        end,
    }
}

struct StreamPass<'p, C> {
    consumer: &'p mut C,
    progress: &'p dyn Progress,
    cursor: Cursor,
    ledger: Ledger,
    internal: Vec<InternalFault>,
}

/// The file that passes.
struct AtHand<'f, F> {
    file: &'f StreamEntry,
    /// Nothing where the consumer abandoned it.
    own: Option<F>,
    pages: Option<StreamPages>,
    failures: usize,
    is_given_up: bool,
    unexamined: u64,
}

impl<C: StreamConsumer> StreamPass<'_, C> {
    fn run<A: Archives>(&mut self, stream: &mut TarStream<A>) -> Result<StreamEnd> {
        let mut buffer = AlignedBuffer::new(usize::try_from(WINDOW_BYTES).unwrap_or(0));
        // To ask for the next name is to read the rest of the file at hand.
        while !self.progress.is_interrupted() {
            let Some(file) = stream.next_file()? else {
                return Ok(StreamEnd::Whole);
            };
            match file.kind {
                EntryKind::Folder => self.consumer.directory(&file.path),
                EntryKind::File => {
                    self.progress.expect(file.len.min(EXPECTED_MAX));
                    self.file(stream, &file, &mut buffer)?;
                }
                EntryKind::Other => {}
            }
        }
        Ok(StreamEnd::Interrupted)
    }

    fn file<A: Archives>(
        &mut self,
        stream: &mut TarStream<A>,
        file: &StreamEntry,
        buffer: &mut AlignedBuffer,
    ) -> Result<()> {
        let mut at_hand = self.begin(file);
        let mut came = 0u64;
        while came < file.len {
            let space = buffer.space(usize::try_from(WINDOW_BYTES).unwrap_or(0));
            let read = fill(stream, space, self.progress)?;
            let rest = (file.len - came).min(EXPECTED_MAX);
            if self.progress.is_interrupted() {
                self.ledger.skip(rest);
                break;
            }
            if read == 0 {
                self.ledger.lose(rest);
                break;
            }
            self.window(&mut at_hand, came, space.get(..read).unwrap_or_default())?;
            came = came.saturating_add(read as u64);
            self.progress.advance(read as u64);
        }
        self.end(at_hand, came);
        Ok(())
    }

    fn begin<'f>(&mut self, file: &'f StreamEntry) -> AtHand<'f, C::File> {
        let begun = guarded(|| self.consumer.begin_file(file));
        let mut at_hand = AtHand {
            file,
            own: None,
            pages: None,
            failures: 0,
            is_given_up: false,
            unexamined: 0,
        };
        match begun {
            Ok((own, pages)) => (at_hand.own, at_hand.pages) = (Some(own), pages),
            Err(failure) => self.abandon(&mut at_hand, failure),
        }
        at_hand
    }

    fn window(
        &mut self,
        at_hand: &mut AtHand<'_, C::File>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let len = bytes.len() as u64;
        let Some(own) = &mut at_hand.own else {
            self.ledger.skip(len);
            return Ok(());
        };
        match guarded(|| self.consumer.bytes(at_hand.file, own, bytes)) {
            Ok(kept) => kept?,
            Err(failure) => {
                self.ledger.skip(len);
                self.abandon(at_hand, failure);
                return Ok(());
            }
        }
        let Some(pages) = at_hand.pages else {
            self.ledger.check(len, u64::MAX);
            return Ok(());
        };
        if at_hand.is_given_up {
            self.ledger.skip(len);
            at_hand.unexamined += len;
            return Ok(());
        }
        self.ledger.check(len, pages.block_bytes);
        let block_bytes = pages.block_bytes.max(1);
        let window = StreamWindow {
            file: at_hand.file,
            offset,
            first_block: pages.first_block.saturating_add(offset / block_bytes),
            bytes,
            block_bytes,
        };
        self.examine(at_hand, window);
        Ok(())
    }

    /// Hands pages to the consumer, and those after a page on which it fails again.
    fn examine(&mut self, at_hand: &mut AtHand<'_, C::File>, window: StreamWindow<'_>) {
        let mut rest = Some(window);
        while let (Some(window), Some(own)) = (rest.take(), &mut at_hand.own) {
            self.cursor.take();
            let (consumer, cursor) = (&mut *self.consumer, &self.cursor);
            if let Err(failure) = guarded(|| consumer.pages(&window, cursor, own)) {
                let block = self.cursor.take();
                self.failed(at_hand, block, failure);
                rest = self.after_failure(at_hand, &window, block);
            }
        }
    }

    /// What is left of a window after the page on which the consumer failed; the ledger has it as
    /// skipped.
    fn after_failure<'w>(
        &mut self,
        at_hand: &mut AtHand<'_, C::File>,
        window: &StreamWindow<'w>,
        block: Option<BlockNo>,
    ) -> Option<StreamWindow<'w>> {
        let failed = block.and_then(|block| window.since(u64::from(block)));
        let lost = failed.unwrap_or(*window);
        let may_go_on = failed.is_some() && at_hand.failures < INTERNAL_MAX;
        let goes_on = may_go_on
            && at_hand.own.as_mut().is_some_and(|own| {
                guarded(|| self.consumer.after_panic(&lost, own)).unwrap_or(false)
            });
        let pages = lost.len() / window.block_bytes;
        if goes_on {
            self.ledger.fail(pages.min(1), window.block_bytes);
            return lost.since(lost.first_block + 1);
        }
        self.ledger.fail(pages, window.block_bytes);
        at_hand.is_given_up = true;
        at_hand.unexamined += pages * window.block_bytes;
        None
    }

    fn end(&mut self, mut at_hand: AtHand<'_, C::File>, came: u64) {
        let Some(own) = at_hand.own.take() else {
            return;
        };
        let end = StreamFileEnd {
            came,
            unexamined: at_hand.unexamined,
        };
        if let Err(failure) = guarded(|| self.consumer.end_file(at_hand.file, own, end)) {
            self.abandon(&mut at_hand, failure);
        }
    }

    fn abandon(&mut self, at_hand: &mut AtHand<'_, C::File>, failure: Panicked) {
        at_hand.own = None;
        self.failed(at_hand, None, failure);
        if let Err(failure) = guarded(|| self.consumer.abandon(at_hand.file)) {
            self.failed(at_hand, None, failure);
        }
    }

    fn failed(
        &mut self,
        at_hand: &mut AtHand<'_, C::File>,
        block: Option<BlockNo>,
        failure: Panicked,
    ) {
        at_hand.failures += 1;
        self.internal.push(InternalFault {
            path: at_hand.file.path.clone(),
            block,
            message: failure.message,
        });
    }
}

/// Reads until the buffer is full, the file ends or somebody wants it to stop.
fn fill<A: Archives>(
    stream: &mut TarStream<A>,
    buffer: &mut [u8],
    progress: &dyn Progress,
) -> std::result::Result<usize, SourceError> {
    let mut filled = 0usize;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest)? {
            _ if progress.is_interrupted() => break,
            0 => break,
            count => filled = filled.saturating_add(count),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use pgclinic_format::tar::build_header;

    use super::*;

    const BLOCK: usize = 8192;

    /// One archive in memory, which may break off.
    struct Archive {
        bytes: Vec<u8>,
        read: usize,
        is_open: bool,
    }

    impl Archive {
        fn of(files: &[(&str, Vec<u8>)]) -> Self {
            let mut bytes = Vec::new();
            for (name, content) in files {
                bytes.extend(build_header(name.as_bytes(), content.len() as u64, b'0'));
                bytes.extend(content);
                bytes.resize(bytes.len().next_multiple_of(512), 0);
            }
            bytes.resize(bytes.len() + 1024, 0);
            Archive {
                bytes,
                read: 0,
                is_open: false,
            }
        }
    }

    impl Archives for Archive {
        fn next_archive(&mut self) -> Result<Option<String>> {
            let is_first = !std::mem::replace(&mut self.is_open, true);
            Ok(is_first.then(String::new))
        }

        fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
            let rest = &self.bytes[self.read..];
            let count = rest.len().min(buf.len());
            buf[..count].copy_from_slice(&rest[..count]);
            self.read += count;
            Ok(count)
        }
    }

    /// Stops after so many bytes.
    struct Until(u64, AtomicU64);

    impl Progress for Until {
        fn expect(&self, _: u64) {}

        fn advance(&self, bytes: u64) {
            self.1.fetch_add(bytes, Ordering::Relaxed);
        }

        fn is_interrupted(&self) -> bool {
            self.1.load(Ordering::Relaxed) >= self.0
        }
    }

    fn until(bytes: u64) -> Until {
        Until(bytes, AtomicU64::new(0))
    }

    /// Sums bytes, and notes pages; fails on pages that begin with a `!`, in files named `fails/…`
    /// and on a byte `?`.
    #[derive(Default)]
    struct Notes {
        files: Vec<(String, u64, Vec<u64>, StreamFileEnd)>,
        failed: Vec<u64>,
        abandoned: Vec<String>,
        goes_on: bool,
    }

    impl StreamConsumer for Notes {
        type File = (u64, Vec<u64>);

        fn directory(&mut self, _: &str) {}

        fn begin_file(&mut self, file: &StreamEntry) -> (Self::File, Option<StreamPages>) {
            assert!(
                !file.path.starts_with("base/fails"),
                "it fails from the start"
            );
            let has_pages = file.path.starts_with("base/");
            let pages = StreamPages {
                first_block: 100,
                block_bytes: BLOCK as u64,
            };
            (Default::default(), has_pages.then_some(pages))
        }

        fn bytes(&mut self, _: &StreamEntry, own: &mut Self::File, bytes: &[u8]) -> Result<()> {
            assert!(!bytes.contains(&b'?'), "it fails between pages");
            own.0 += bytes.len() as u64;
            Ok(())
        }

        fn pages(&mut self, window: &StreamWindow<'_>, cursor: &Cursor, own: &mut Self::File) {
            let pages = window.bytes.chunks_exact(BLOCK);
            for (block, page) in (window.first_block..).zip(pages) {
                cursor.at(BlockNo::try_from(block).expect("few"));
                assert!(page[0] != b'!', "it fails on a page");
                own.1.push(block);
            }
        }

        fn after_panic(&mut self, window: &StreamWindow<'_>, _: &mut Self::File) -> bool {
            assert_eq!(window.first_page().map(|page| page[0]), Some(b'!'));
            self.failed.push(window.first_block);
            self.goes_on
        }

        fn end_file(&mut self, file: &StreamEntry, own: Self::File, end: StreamFileEnd) {
            self.files.push((file.path.clone(), own.0, own.1, end));
        }

        fn abandon(&mut self, file: &StreamEntry) {
            self.abandoned.push(file.path.clone());
        }
    }

    fn scan(notes: &mut Notes, archive: Archive, progress: &Until) -> StreamReport {
        scan_stream(&mut TarStream::new(archive), notes, progress)
    }

    fn whole(came: u64) -> StreamFileEnd {
        StreamFileEnd {
            came,
            unexamined: 0,
        }
    }

    fn pages(count: usize, failing: &[usize]) -> Vec<u8> {
        let mut bytes = vec![1; count * BLOCK];
        for block in failing {
            bytes[block * BLOCK] = b'!';
        }
        bytes
    }

    #[test]
    fn every_byte_and_every_page_comes_once() {
        let mut notes = Notes::default();
        let mut with_half_page = pages(70, &[]);
        with_half_page.extend([1; 100]);
        let files = [
            ("PG_VERSION", b"18\n".to_vec()),
            ("base/1", with_half_page),
            ("base/2", Vec::new()),
        ];
        let report = scan(&mut notes, Archive::of(&files), &until(u64::MAX));
        assert_eq!(report.end, Ok(StreamEnd::Whole));
        let bytes = 70 * BLOCK as u64 + 100;
        let expected = [
            ("PG_VERSION".into(), 3, vec![], whole(3)),
            ("base/1".into(), bytes, (100..170).collect(), whole(bytes)),
            ("base/2".into(), 0, vec![], whole(0)),
        ];
        assert_eq!(notes.files, expected);
        let ledger = report.ledger;
        assert_eq!((ledger.seen, ledger.checked), (bytes + 3, bytes + 3));
        assert_eq!((ledger.pages, report.internal), (70, vec![]));
    }

    #[test]
    fn a_page_on_which_we_fail_is_skipped_and_the_rest_examined() {
        let mut notes = Notes {
            goes_on: true,
            ..Notes::default()
        };
        // The last of a window, and the first and the last of the next.
        let files = [
            ("base/1", pages(64, &[31, 32, 63])),
            ("base/2", pages(1, &[])),
        ];
        let report = scan(&mut notes, Archive::of(&files), &until(u64::MAX));
        assert_eq!(notes.failed, [131, 132, 163]);
        let seen: Vec<u64> = (100..163)
            .filter(|block| ![131, 132].contains(block))
            .collect();
        assert_eq!(notes.files[0].2, seen);
        assert_eq!(notes.files[1].2, [100]);
        assert_eq!(report.ledger.skipped, 3 * BLOCK as u64);
        assert_eq!(report.ledger.pages, 62);
        let internal: Vec<_> = report.internal.iter().map(|fault| fault.block).collect();
        assert_eq!(internal, [Some(131), Some(132), Some(163)]);
        let entry = report.internal[0].not_checked();
        assert_eq!(entry.what, "internal: block 131 of base/1");
        assert!(entry.why.contains("it fails on a page") && !entry.inherent);
    }

    #[test]
    fn pages_of_a_file_are_given_up_and_its_bytes_are_not() {
        let block = BLOCK as u64;
        for (goes_on, failing) in [(false, vec![3]), (true, (3..40).collect())] {
            let mut notes = Notes {
                goes_on,
                ..Notes::default()
            };
            let files = [("base/1", pages(64, &failing))];
            let report = scan(&mut notes, Archive::of(&files), &until(u64::MAX));
            let (_, bytes, seen, end) = &notes.files[0];
            assert_eq!((*bytes, end.came), (64 * block, 64 * block));
            assert_eq!(*seen, [100, 101, 102]);
            assert_eq!(report.ledger.skipped, 61 * block);
            let failed_alone = if goes_on { INTERNAL_MAX as u64 - 1 } else { 0 };
            assert_eq!(end.unexamined, (61 - failed_alone) * block);
        }
    }

    #[test]
    fn a_failure_between_pages_abandons_the_file() {
        let mut notes = Notes::default();
        let files = [
            ("base/fails", pages(2, &[])),
            ("base/1", vec![b'?'; BLOCK]),
            ("base/2", pages(1, &[])),
        ];
        let report = scan(&mut notes, Archive::of(&files), &until(u64::MAX));
        assert_eq!(notes.abandoned, ["base/fails", "base/1"]);
        assert_eq!(notes.files.len(), 1);
        assert_eq!(report.ledger.skipped, 3 * BLOCK as u64);
        assert_eq!(report.internal.len(), 2);
    }

    #[test]
    fn what_does_not_come_is_booked() {
        let mut archive = Archive::of(&[("base/1", pages(64, &[]))]);
        archive.bytes.truncate(512 + 40 * BLOCK);
        let mut notes = Notes::default();
        let report = scan(&mut notes, archive, &until(u64::MAX));
        assert_eq!(notes.files[0].3, whole(40 * BLOCK as u64));
        assert_eq!(report.ledger.unreadable, 24 * BLOCK as u64);
        let archive = Archive::of(&[("base/1", pages(64, &[]))]);
        let mut notes = Notes::default();
        let report = scan(&mut notes, archive, &until(WINDOW_BYTES));
        assert_eq!(report.end, Ok(StreamEnd::Interrupted));
        assert_eq!(notes.files[0].3, whole(WINDOW_BYTES));
        assert_eq!(report.ledger.skipped, WINDOW_BYTES);
    }
}
