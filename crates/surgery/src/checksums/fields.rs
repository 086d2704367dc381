//! Writes checksum fields, neighbouring pages at once: a disk takes one long write where it would
//! take a short one for each page. The other bytes are written as they were read, so that a write
//! torn anywhere leaves every page with one of its two checksums and nothing else.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pgclinic_format::checksum::checksum_at;
use pgclinic_model::Progress;

use super::journal::{ChecksumsJournal, ChecksumsJournalDirectory};
use super::record::{ChecksumField, Section};
use super::recorder::hashes_of;
use crate::error::{Error, Result};

/// `pd_checksum` in `PageHeaderData`.
const PD_CHECKSUM: std::ops::Range<usize> = 8..10;

/// Which of the two checksums of a record a page shall carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// The new one.
    Forward,
    /// The old one.
    Back,
}

impl Direction {
    /// What a page carries now, and shall carry.
    fn of(self, field: ChecksumField) -> (u16, u16) {
        match self {
            Direction::Forward => (field.before, field.after),
            Direction::Back => (field.after, field.before),
        }
    }
}

/// What is done with the fields of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    /// Each must hold one of the two.
    Compare,
    /// Each is written that is not yet as it shall be.
    Write,
}

/// What a pass over the record did.
pub(super) struct Written {
    /// Fields that were written.
    pub(super) pages: u64,
    /// Files that have such a field.
    pub(super) files: BTreeSet<String>,
    /// It came to its end.
    pub(super) is_whole: bool,
}

/// What a worker keeps from one section to the next: fresh memory for each costs more than the
/// checksums.
#[derive(Default)]
struct Hands {
    open: Option<(String, File)>,
    buffers: Buffers,
}

/// Pages as they are written, and as they are read back.
#[derive(Default)]
struct Buffers {
    pages: Vec<u8>,
    again: Vec<u8>,
}

/// A pass over the record of a journal.
pub(super) struct FieldPass<'a> {
    pub(super) directory: &'a ChecksumsJournalDirectory,
    pub(super) journal: &'a ChecksumsJournal,
    /// The data directory.
    pub(super) pgdata: &'a Path,
    pub(super) direction: Direction,
    pub(super) threads: NonZeroUsize,
    pub(super) progress: &'a dyn Progress,
}

impl FieldPass<'_> {
    /// Every page of the record carries one of its two checksums.
    pub(super) fn compare(&self) -> Result<()> {
        self.run(Deed::Compare).map(drop)
    }

    /// Writes what is not yet as it shall be.
    pub(super) fn write(&self) -> Result<Written> {
        self.run(Deed::Write)
    }

    fn run(&self, deed: Deed) -> Result<Written> {
        let sections = Mutex::new(self.directory.sections(self.journal)?);
        let next = || {
            let mut sections = sections.lock().unwrap_or_else(PoisonError::into_inner);
            let section = sections.next();
            section.map_err(|error| self.directory.unreadable(error))
        };
        let pages = AtomicU64::new(0);
        let work = || -> Result<BTreeSet<String>> {
            let (mut files, mut hands) = (BTreeSet::new(), Hands::default());
            while !self.progress.is_interrupted()
                && let Some(section) = next()?
            {
                let done = self.section(deed, &section, &mut hands)?;
                pages.fetch_add(done, Ordering::Relaxed);
                let all = section.fields.len() as u64;
                self.progress
                    .advance(all.saturating_mul(self.journal.block_size.into()));
                files.insert(section.path);
            }
            Ok(files)
        };
        let mut files = BTreeSet::new();
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads.get()).map(|_| scope.spawn(work)).collect();
            let mut all = vec![work()];
            all.extend(
                others
                    .into_iter()
                    .map(|other| other.join().expect("no thread of a pass panics")),
            );
            for own in all {
                files.extend(own?);
            }
            Ok(())
        })?;
        Ok(Written {
            pages: pages.into_inner(),
            files,
            is_whole: !self.progress.is_interrupted(),
        })
    }

    /// The fields of one section; how many were written.
    fn section(&self, deed: Deed, section: &Section, hands: &mut Hands) -> Result<u64> {
        let path = self.pgdata.join(&section.path);
        let Hands { open, buffers } = hands;
        if open.as_ref().is_none_or(|(name, _)| *name != section.path) {
            let mut options = OpenOptions::new();
            options.read(true).write(deed == Deed::Write);
            let file = options
                .open(&path)
                .map_err(Error::io("open for writing", &path))?;
            *open = Some((section.path.clone(), file));
        }
        let Some((_, file)) = open else { return Ok(0) };
        let left = self.left_in(&section.path);
        let fields = section.fields.iter().copied();
        let fields: Vec<_> = fields
            .filter(|field| !left.contains(&u64::from(field.block)))
            .collect();
        let mut written = 0;
        for run in fields.chunk_by(|one, next| self.are_neighbours(*one, *next)) {
            written += self.run_of_pages(deed, section, (file, buffers), run)?;
        }
        Ok(written)
    }

    /// One page follows the other in the same file.
    fn are_neighbours(&self, one: ChecksumField, next: ChecksumField) -> bool {
        let segment = self.journal.segment_blocks.max(1);
        one.block.checked_add(1) == Some(next.block) && !next.block.is_multiple_of(segment)
    }

    /// Neighbouring pages, read, compared, written and read again at once; how many were written.
    fn run_of_pages(
        &self,
        deed: Deed,
        section: &Section,
        (file, buffers): (&File, &mut Buffers),
        fields: &[ChecksumField],
    ) -> Result<u64> {
        let path = self.pgdata.join(&section.path);
        let io = |what| Error::io(what, &path);
        let at = fields.first().map_or(0, |first| self.place_of(first.block));
        let Buffers { pages, again } = buffers;
        pages.resize(fields.len() * self.page_bytes(), 0);
        file.read_exact_at(pages, at).map_err(io("read"))?;
        let mut changed = 0;
        let hashes = hashes_of(pages.chunks_exact(self.page_bytes()));
        let each = pages.chunks_exact_mut(self.page_bytes()).zip(hashes);
        for (field, (page, hash)) in fields.iter().zip(each) {
            changed += u64::from(self.set(section, *field, page, hash)?);
        }
        if deed == Deed::Compare || changed == 0 {
            return Ok(0);
        }
        file.write_all_at(pages, at).map_err(io("write"))?;
        again.resize(pages.len(), 0);
        file.read_exact_at(again, at).map_err(io("read"))?;
        if again != pages {
            return Err(not_as_written(section, fields));
        }
        Ok(changed)
    }

    fn page_bytes(&self) -> usize {
        usize::try_from(self.journal.block_size).unwrap_or(usize::MAX)
    }

    /// Where a block of a fork begins in its file.
    fn place_of(&self, block: u32) -> u64 {
        let block = u64::from(block % self.journal.segment_blocks.max(1));
        block * u64::from(self.journal.block_size)
    }

    /// Blocks of the file's fork that keep what they have.
    fn left_in(&self, path: &str) -> Vec<u64> {
        let known = self.journal.known.iter().filter(|known| known.is_left);
        let own = known.filter(|known| known.page.is_of(path));
        own.map(|known| known.page.block).collect()
    }

    /// Gives the page the checksum that it shall carry; whether it carried the other one. Its bytes
    /// must be those for which the new checksum was reckoned.
    fn set(
        &self,
        section: &Section,
        field: ChecksumField,
        page: &mut [u8],
        hash: u32,
    ) -> Result<bool> {
        let needs = checksum_at(hash, field.block);
        if needs != field.after {
            return Err(changed_since(section, field, needs));
        }
        let stored = page
            .get_mut(PD_CHECKSUM)
            .and_then(|field| field.as_mut_array());
        let stored: &mut [u8; 2] = stored.expect("a page is longer than its header");
        let (now, then) = self.direction.of(field);
        match u16::from_le_bytes(*stored) {
            found if found == then => Ok(false),
            found if found == now => {
                *stored = then.to_le_bytes();
                Ok(true)
            }
            found => Err(foreign(section, field, found)),
        }
    }

    /// Makes what was written lasting.
    pub(super) fn sync(&self, files: &BTreeSet<String>) -> Result<()> {
        let paths = Mutex::new(files.iter());
        let next = || {
            let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
            paths.next()
        };
        let work = || -> Result<()> {
            while let Some(path) = next() {
                let path = self.pgdata.join(path);
                File::open(&path)
                    .and_then(|file| file.sync_data())
                    .map_err(Error::io("sync", &path))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads.get()).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter();
            others
                .map(|other| other.join().expect("no thread of a pass panics"))
                .fold(own, Result::and)
        })
    }
}

fn foreign(section: &Section, field: ChecksumField, found: u16) -> Error {
    Error::Changed {
        path: section.path.clone(),
        why: format!(
            "block {} carries the checksum {found}, neither {} nor {}",
            field.block, field.before, field.after
        ),
    }
}

fn changed_since(section: &Section, field: ChecksumField, needs: u16) -> Error {
    Error::Changed {
        path: section.path.clone(),
        why: format!(
            "block {} needs the checksum {needs} now, and {} when it was recorded",
            field.block, field.after
        ),
    }
}

fn not_as_written(section: &Section, fields: &[ChecksumField]) -> Error {
    let block = |field: Option<&ChecksumField>| field.map_or(0, |field| field.block);
    Error::Changed {
        path: section.path.clone(),
        why: format!(
            "blocks {} to {} do not hold what was just written to them",
            block(fields.first()),
            block(fields.last())
        ),
    }
}
