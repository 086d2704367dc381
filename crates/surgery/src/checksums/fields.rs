//! Writes checksum fields: two bytes of a page at once, so that half of what lies on the disk of
//! each 8 kB page stays untouched and no write can tear anything else.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pgclinic_model::Progress;

use super::journal::{ChecksumsJournal, ChecksumsJournalDirectory};
use super::record::{ChecksumField, Section};
use crate::error::{Error, Result};

/// `offsetof(PageHeaderData, pd_checksum)`.
const PD_CHECKSUM_AT: u64 = 8;

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
            let (mut files, mut open) = (BTreeSet::new(), None);
            while !self.progress.is_interrupted()
                && let Some(section) = next()?
            {
                let done = self.section(deed, &section, &mut open)?;
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
    fn section(
        &self,
        deed: Deed,
        section: &Section,
        open: &mut Option<(String, File)>,
    ) -> Result<u64> {
        let path = self.pgdata.join(&section.path);
        if open.as_ref().is_none_or(|(name, _)| *name != section.path) {
            let mut options = OpenOptions::new();
            options.read(true).write(deed == Deed::Write);
            let file = options
                .open(&path)
                .map_err(Error::io("open for writing", &path))?;
            *open = Some((section.path.clone(), file));
        }
        let Some((_, file)) = open else { return Ok(0) };
        let mut written = 0;
        let left = self.left_in(&section.path);
        let fields = section.fields.iter();
        for field in fields.filter(|field| !left.contains(&u64::from(field.block))) {
            let done = self.field(deed, file, *field);
            match done.map_err(Error::io("write", &path))? {
                Found::AsItShallBe => {}
                Found::Written => written += 1,
                Found::Foreign(found) => return Err(foreign(section, *field, found)),
            }
        }
        Ok(written)
    }

    /// Blocks of the file's fork that keep what they have.
    fn left_in(&self, path: &str) -> Vec<u64> {
        let known = self.journal.known.iter().filter(|known| known.is_left);
        let own = known.filter(|known| known.page.is_of(path));
        own.map(|known| known.page.block).collect()
    }

    fn field(&self, deed: Deed, file: &File, field: ChecksumField) -> io::Result<Found> {
        let block = u64::from(field.block % self.journal.segment_blocks.max(1));
        let at = block * u64::from(self.journal.block_size) + PD_CHECKSUM_AT;
        let mut found = [0; 2];
        file.read_exact_at(&mut found, at)?;
        let (now, then) = self.direction.of(field);
        match u16::from_le_bytes(found) {
            found if found == then => Ok(Found::AsItShallBe),
            found if found != now => Ok(Found::Foreign(found)),
            _ if deed == Deed::Compare => Ok(Found::AsItShallBe),
            _ => {
                file.write_all_at(&then.to_le_bytes(), at)?;
                Ok(Found::Written)
            }
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

/// How a field was found.
enum Found {
    AsItShallBe,
    Written,
    /// It carries neither of the two.
    Foreign(u16),
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
