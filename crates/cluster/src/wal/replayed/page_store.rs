//! Pages that recovery changed: some in memory, the rest in slots of a temporary file without a
//! name.
//!
//! ```text
//! number of a page ─┬─ frame in memory ── a clock hand looks for one that was not used of late
//!                   └─ slot of the file, at number x page size
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_format::{BlockNo, Page};
use pgclinic_spill::{Budget, Lease};

/// Frames that there are in any case.
const FRAMES_MIN: usize = 16;
/// Of the memory, what is left for the numbers of pages by their places: some 20 bytes a page of 8
/// kB, twelve times as many pages as there are frames.
const INDEX_SHARE: u64 = 32;

/// Names a page of a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PageNumber(u32);

/// What a store may take.
#[derive(Clone, Debug)]
pub struct ReplaySpace<'a> {
    /// Memory, on lease as long as the pages are there.
    pub memory: Budget,
    /// For a temporary file without a name, which takes what does not fit; never inside a cluster.
    /// Without one it is not kept.
    pub spill_folder: Option<&'a Path>,
}

/// Pages that are being changed.
#[derive(Debug)]
pub(crate) struct PageStore {
    page_bytes: usize,
    frames_max: usize,
    frames: Vec<Frame>,
    resident: Resident,
    /// Frames whose pages were removed.
    idle: Vec<usize>,
    hand: usize,
    next: u32,
    free: Vec<PageNumber>,
    spill_folder: Option<PathBuf>,
    file: Option<File>,
    has_checksums: bool,
    /// For frames, until no page changes any more.
    lease: Lease,
    memory: Budget,
}

#[derive(Debug)]
struct Frame {
    number: PageNumber,
    /// Of a page of a relation: its block, for the checksum.
    block: Option<BlockNo>,
    bytes: Vec<u8>,
    /// The slot of the file has other bytes.
    is_changed: bool,
    /// The hand has not come by since it was asked for.
    is_used: bool,
}

/// The frame of each page that is in memory, by its number.
#[derive(Debug, Default)]
struct Resident(Vec<u32>);

impl Resident {
    const NOWHERE: u32 = u32::MAX;

    fn frame_of(&self, number: PageNumber) -> Option<usize> {
        let at = *self.0.get(number.index())?;
        (at != Self::NOWHERE)
            .then(|| usize::try_from(at).ok())
            .flatten()
    }

    fn insert(&mut self, number: PageNumber, at: usize) {
        let number = number.index();
        if number >= self.0.len() {
            self.0.resize(number + 1, Self::NOWHERE);
        }
        if let Some(place) = self.0.get_mut(number) {
            *place = u32::try_from(at)
                .expect("frames are fewer than pages, which have numbers of 32 bits");
        }
    }

    fn remove(&mut self, number: PageNumber) -> Option<usize> {
        let at = self.frame_of(number)?;
        if let Some(place) = self.0.get_mut(number.index()) {
            *place = Self::NOWHERE;
        }
        Some(at)
    }
}

impl PageNumber {
    fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Pages that change no more, for many threads.
#[derive(Debug)]
pub(crate) struct KeptPages {
    resident: HashMap<PageNumber, Vec<u8>>,
    file: Option<File>,
    page_bytes: usize,
    /// Of the resident pages.
    _lease: Lease,
}

impl PageStore {
    /// Pages of relations get a true checksum when they leave for the file, and in the end.
    pub(crate) fn new(page_bytes: usize, space: &ReplaySpace<'_>, has_checksums: bool) -> Self {
        let memory_bytes = space.memory.limit();
        let for_frames = memory_bytes - memory_bytes / INDEX_SHARE;
        let frames = for_frames / (page_bytes as u64).max(1);
        PageStore {
            page_bytes,
            frames_max: usize::try_from(frames)
                .unwrap_or(usize::MAX)
                .max(FRAMES_MIN),
            frames: Vec::new(),
            resident: Resident::default(),
            idle: Vec::new(),
            hand: 0,
            next: 0,
            free: Vec::new(),
            spill_folder: space.spill_folder.map(Path::to_owned),
            file: None,
            has_checksums,
            lease: space.memory.take(memory_bytes),
            memory: space.memory.clone(),
        }
    }

    /// Takes a new page.
    pub(crate) fn add(&mut self, bytes: Vec<u8>, block: Option<BlockNo>) -> io::Result<PageNumber> {
        assert_eq!(bytes.len(), self.page_bytes, "pages have one size");
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = PageNumber(self.next);
                let full = || io::Error::other("more pages than have numbers");
                self.next = self.next.checked_add(1).ok_or_else(full)?;
                number
            }
        };
        let put = self.put(number, block, bytes, true);
        match put {
            Ok(_) => Ok(number),
            Err(error) => {
                self.free.push(number);
                Err(error)
            }
        }
    }

    /// Puts other bytes in the place of a page.
    pub(crate) fn replace(
        &mut self,
        number: PageNumber,
        bytes: Vec<u8>,
        block: Option<BlockNo>,
    ) -> io::Result<()> {
        let at = self.resident.frame_of(number);
        match at.and_then(|at| self.frames.get_mut(at)) {
            Some(frame) => {
                frame.bytes = bytes;
                frame.is_changed = true;
                frame.is_used = true;
                Ok(())
            }
            None => self.put(number, block, bytes, true).map(drop),
        }
    }

    /// A page, to change it.
    pub(crate) fn page(
        &mut self,
        number: PageNumber,
        block: Option<BlockNo>,
    ) -> io::Result<&mut Vec<u8>> {
        let at = match self.resident.frame_of(number) {
            Some(at) => at,
            None => {
                let bytes = self.read_back(number)?;
                self.put(number, block, bytes, false)?
            }
        };
        let frame = self
            .frames
            .get_mut(at)
            .expect("a resident page has a frame");
        frame.is_changed = true;
        frame.is_used = true;
        Ok(&mut frame.bytes)
    }

    /// The page is needed no more.
    pub(crate) fn remove(&mut self, number: PageNumber) {
        if let Some(at) = self.resident.remove(number) {
            self.idle.push(at);
        }
        self.free.push(number);
    }

    /// No page changes any more.
    pub(crate) fn keep(mut self) -> KeptPages {
        let has_checksums = self.has_checksums;
        let frames = self.frames.iter_mut().enumerate();
        let resident = &self.resident;
        let used = frames.filter(|(at, frame)| resident.frame_of(frame.number) == Some(*at));
        let pages = used.map(|(_, frame)| {
            frame.seal(has_checksums);
            (frame.number, std::mem::take(&mut frame.bytes))
        });
        let resident: HashMap<PageNumber, Vec<u8>> = pages.collect();
        // What was foreseen for changes is given back.
        drop(self.lease);
        KeptPages {
            _lease: self.memory.take((resident.len() * self.page_bytes) as u64),
            resident,
            file: self.file,
            page_bytes: self.page_bytes,
        }
    }

    fn put(
        &mut self,
        number: PageNumber,
        block: Option<BlockNo>,
        bytes: Vec<u8>,
        is_changed: bool,
    ) -> io::Result<usize> {
        let frame = Frame {
            number,
            block,
            bytes,
            is_changed,
            is_used: true,
        };
        let at = match self.idle.pop() {
            Some(at) => at,
            None if self.frames.len() < self.frames_max => {
                self.frames.push(frame);
                let at = self.frames.len() - 1;
                self.resident.insert(number, at);
                return Ok(at);
            }
            None => self.emptied()?,
        };
        let place = self.frames.get_mut(at).expect("a frame that was there");
        *place = frame;
        self.resident.insert(number, at);
        Ok(at)
    }

    /// A frame whose page went to the file.
    fn emptied(&mut self) -> io::Result<usize> {
        // After one round no frame counts as used any more.
        for _ in 0..=2 * self.frames.len() {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.frames.len().max(1);
            let frame = self.frames.get_mut(at).expect("the hand stays inside");
            if std::mem::take(&mut frame.is_used) {
                continue;
            }
            if frame.is_changed {
                frame.seal(self.has_checksums);
                let file = spill_file(&mut self.file, self.spill_folder.as_deref())?;
                file.write_all_at(&frame.bytes, slot(frame.number, self.page_bytes))?;
            }
            self.resident.remove(frame.number);
            return Ok(at);
        }
        unreachable!("the second round finds a frame")
    }

    fn read_back(&self, number: PageNumber) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.page_bytes];
        read_slot(self.file.as_ref(), number, &mut bytes)?;
        Ok(bytes)
    }
}

impl Frame {
    fn seal(&mut self, has_checksums: bool) {
        let Some(block) = self.block.filter(|_| has_checksums && self.is_changed) else {
            return;
        };
        let is_new = Page::parse(&self.bytes).is_none_or(Page::is_new);
        if !is_new {
            pgclinic_format::build::seal_page(&mut self.bytes, block);
        }
    }
}

impl KeptPages {
    /// Gives a page to `take`.
    pub(crate) fn read(&self, number: PageNumber, take: impl FnOnce(&[u8])) -> io::Result<()> {
        if let Some(bytes) = self.resident.get(&number) {
            take(bytes);
            return Ok(());
        }
        let mut bytes = vec![0; self.page_bytes];
        read_slot(self.file.as_ref(), number, &mut bytes)?;
        take(&bytes);
        Ok(())
    }
}

fn spill_file<'f>(file: &'f mut Option<File>, folder: Option<&Path>) -> io::Result<&'f File> {
    if file.is_none() {
        let full = || io::Error::new(io::ErrorKind::OutOfMemory, "the memory for it is full");
        let folder = folder.ok_or_else(full)?;
        *file = Some(pgclinic_spill::nameless_file(folder)?);
    }
    Ok(file.as_ref().expect("made above"))
}

fn slot(number: PageNumber, page_bytes: usize) -> u64 {
    u64::from(number.0) * page_bytes as u64
}

fn read_slot(file: Option<&File>, number: PageNumber, bytes: &mut [u8]) -> io::Result<()> {
    let none = || io::Error::other("the page was never written");
    let file = file.ok_or_else(none)?;
    file.read_exact_at(bytes, slot(number, bytes.len()))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;

    const PAGE: usize = 1024;

    fn store(frames: usize) -> PageStore {
        let folder = std::env::temp_dir();
        let space = ReplaySpace {
            memory: Budget::new((frames * PAGE) as u64),
            spill_folder: Some(&folder),
        };
        PageStore::new(PAGE, &space, false)
    }

    fn bytes(value: u16) -> Vec<u8> {
        value.to_le_bytes().repeat(PAGE / 2)
    }

    /// Many more pages than frames, changed in an order of their own, some taken away: every page
    /// keeps its last bytes.
    #[test]
    fn pages_that_do_not_fit_come_back_as_they_were() {
        let mut pages = store(20);
        let numbers: Vec<PageNumber> = (0..500)
            .map(|value| pages.add(bytes(value), None).expect("room"))
            .collect();
        assert!(pages.frames.len() <= 20 && pages.file.is_some());
        for step in 0..2000usize {
            let at = step * 7919 % 500;
            let page = pages.page(numbers[at], None).expect("readable");
            assert_eq!(page[0], bytes(at as u16)[0]);
            page[2] = page[2].wrapping_add(1);
        }
        pages.remove(numbers[3]);
        let again = pages.add(bytes(77), None).expect("room");
        assert_eq!(again, numbers[3]);
        pages.replace(numbers[9], bytes(99), None).expect("room");
        let kept = pages.keep();
        for (at, number) in numbers.iter().enumerate() {
            let (value, steps) = match at {
                3 => (77, 0),
                9 => (99, 0),
                _ => (at, 4),
            };
            let mut expected = bytes(value as u16);
            expected[2] = expected[2].wrapping_add(steps);
            let mut found = Vec::new();
            kept.read(*number, |page| found.extend_from_slice(page))
                .expect("readable");
            assert_eq!(found, expected, "page {at}");
        }
    }

    #[test]
    fn without_a_place_for_the_file_nothing_is_lost_that_was_there() {
        let space = ReplaySpace {
            memory: Budget::new(0),
            spill_folder: Some(Path::new("/nowhere")),
        };
        let mut pages = PageStore::new(PAGE, &space, false);
        let numbers: Vec<PageNumber> = (0..FRAMES_MIN as u16)
            .map(|value| pages.add(bytes(value), None).expect("room"))
            .collect();
        assert!(pages.add(bytes(500), None).is_err());
        for (value, number) in (0..).zip(numbers) {
            let page = pages.page(number, None).expect("in memory");
            assert_eq!(*page, bytes(value));
        }
    }
}
