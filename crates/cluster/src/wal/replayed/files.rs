//! Files as recovery leaves them: what lies below, with pages laid over it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use pgclinic_format::BlockNo;

use super::page_store::{KeptPages, PageNumber, PageStore, ReplaySpace};
use crate::cluster::Cluster;
use crate::file_name::RelationFileName;

use pgclinic_source::{
    Entry, EntryKind, Presence, Range, Result, Source, SourceError, SourceErrorKind, SourceSpec,
};

/// A file that recovery changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedFile {
    /// By number in the file.
    pages: BTreeMap<u32, PageNumber>,
    /// Of a relation's file: the block that it begins with.
    first_block: Option<BlockNo>,
    /// Bytes that it has; nothing when it is removed.
    pub(crate) len: Option<u64>,
    /// Bytes of the file below that still count.
    pub(crate) from_below: u64,
    /// What lies below is there and cannot be reached: nothing is known of the file, whatever
    /// recovery does to some of its pages.
    pub(crate) unreadable: Option<SourceError>,
}

/// The changed files by path, with their pages.
#[derive(Debug)]
pub(crate) struct ChangedFiles {
    pub(crate) page_bytes: u64,
    segment_blocks: u64,
    pub(crate) by_path: BTreeMap<String, ChangedFile>,
    pages: PageStore,
    /// Why a page could not be kept, the first time.
    pub(crate) failure: Option<String>,
}

impl ChangedFiles {
    /// Nothing is changed yet but these files, which have such bytes already.
    pub(crate) fn of(
        cluster: &Cluster,
        files: &BTreeMap<String, Vec<u8>>,
        space: &ReplaySpace<'_>,
    ) -> Self {
        let build = cluster.build;
        let has_checksums = cluster.checksums() == Some(true);
        let mut changed = ChangedFiles::new(build.block_size, has_checksums, space);
        changed.segment_blocks = build.segment_blocks();
        let size = changed.pages_size();
        for (path, bytes) in files {
            let file = ChangedFile {
                len: Some(bytes.len() as u64),
                ..ChangedFile::default()
            };
            changed.by_path.insert(path.clone(), file);
            for (number, page) in (0..).zip(bytes.chunks_exact(size)) {
                // What cannot be kept is remembered as the failure of the whole.
                let _kept = changed.keep(path, number, page.to_vec());
            }
        }
        changed
    }

    fn new(page_bytes: u32, has_checksums: bool, space: &ReplaySpace<'_>) -> Self {
        let size = usize::try_from(page_bytes).unwrap_or(8192).max(1);
        ChangedFiles {
            page_bytes: u64::from(page_bytes),
            segment_blocks: u64::from(u32::MAX),
            by_path: BTreeMap::new(),
            pages: PageStore::new(size, space, has_checksums),
            failure: None,
        }
    }

    fn pages_size(&self) -> usize {
        usize::try_from(self.page_bytes).unwrap_or(8192).max(1)
    }

    /// The file, as it lies below until it is changed.
    pub(crate) fn file(&mut self, source: &dyn Source, path: &str) -> &mut ChangedFile {
        if !self.by_path.contains_key(path) {
            let as_it_lies = ChangedFile::below(source, path, self.segment_blocks);
            self.by_path.insert(path.to_owned(), as_it_lies);
        }
        let file = self.by_path.get_mut(path);
        file.expect("it was there, or came just now")
    }

    /// A page as it lies on the disk, once: not when it was changed already.
    pub(crate) fn first_look(
        &mut self,
        source: &dyn Source,
        path: &str,
        number: u32,
    ) -> Option<Vec<u8>> {
        let page_bytes = self.page_bytes;
        let file = self.file(source, path);
        let at = u64::from(number) * page_bytes;
        let is_below = at + page_bytes <= file.from_below && !file.pages.contains_key(&number);
        is_below.then(|| below(source, path, at, (page_bytes, file.from_below)))
    }

    /// A page of a file, to change it. `None` where the file does not reach so far.
    ///
    /// # Errors
    ///
    /// There is neither memory nor disk for the page.
    pub(crate) fn page(
        &mut self,
        source: &dyn Source,
        path: &str,
        number: u32,
    ) -> io::Result<Option<&mut Vec<u8>>> {
        let page_bytes = self.page_bytes;
        let file = self.file(source, path);
        let at = u64::from(number) * page_bytes;
        let is_there = file.len.is_some_and(|len| at + page_bytes <= len);
        if !is_there {
            return Ok(None);
        }
        let (known, from_below) = (file.pages.get(&number).copied(), file.from_below);
        let block = file.block(number);
        let own = match known {
            Some(own) => own,
            None => {
                let page = below(source, path, at, (page_bytes, from_below));
                let added = self.pages.add(page, block);
                let own = added.inspect_err(|error| note(&mut self.failure, error))?;
                self.file(source, path).pages.insert(number, own);
                own
            }
        };
        let page = self.pages.page(own, block);
        page.inspect_err(|error| note(&mut self.failure, error))
            .map(Some)
    }

    /// Puts a page in its place; the file grows where it must.
    ///
    /// # Errors
    ///
    /// There is neither memory nor disk for the page.
    pub(crate) fn put(
        &mut self,
        source: &dyn Source,
        path: &str,
        number: u32,
        page: Vec<u8>,
    ) -> io::Result<()> {
        let end = (u64::from(number) + 1) * self.page_bytes;
        let file = self.file(source, path);
        file.len = Some(file.len.unwrap_or(0).max(end));
        self.keep(path, number, page)
    }

    /// Keeps a page of a file that is known.
    fn keep(&mut self, path: &str, number: u32, page: Vec<u8>) -> io::Result<()> {
        let Some(file) = self.by_path.get_mut(path) else {
            return Ok(());
        };
        let block = file.block(number);
        let kept = match file.pages.get(&number) {
            Some(own) => self.pages.replace(*own, page, block),
            None => self.pages.add(page, block).map(|own| {
                file.pages.insert(number, own);
            }),
        };
        kept.inspect_err(|error| note(&mut self.failure, error))
    }

    /// Ends a file after so many bytes.
    pub(crate) fn cut(&mut self, source: &dyn Source, path: &str, len: u64) {
        let pages = u32::try_from(len.div_ceil(self.page_bytes)).unwrap_or(u32::MAX);
        let file = self.file(source, path);
        file.len = file.len.map(|before| before.min(len));
        file.from_below = file.from_below.min(len);
        let gone = file.pages.split_off(&pages);
        gone.into_values().for_each(|own| self.pages.remove(own));
    }

    /// Takes a file away.
    pub(crate) fn remove(&mut self, source: &dyn Source, path: &str) {
        let gone = std::mem::take(self.file(source, path));
        let gone = gone.pages.into_values();
        gone.for_each(|own| self.pages.remove(own));
    }
}

impl ChangedFile {
    fn below(source: &dyn Source, path: &str, segment_blocks: u64) -> Self {
        let (len, unreadable) = match Presence::of_file(source, path) {
            Presence::There(len) => (Some(len), None),
            Presence::Missing => (None, None),
            Presence::Unreadable(error) => (None, Some(error)),
        };
        ChangedFile {
            pages: BTreeMap::new(),
            first_block: first_block(path, segment_blocks),
            len,
            from_below: len.unwrap_or(0),
            unreadable,
        }
    }

    fn block(&self, number: u32) -> Option<BlockNo> {
        self.first_block.and_then(|first| first.checked_add(number))
    }
}

/// A page as it lies below, as far as it counts. One that cannot be read is taken for zeros:
/// records that do not fit it say so.
fn below(
    source: &dyn Source,
    path: &str,
    at: u64,
    (page_bytes, from_below): (u64, u64),
) -> Vec<u8> {
    let mut page = vec![0; usize::try_from(page_bytes).unwrap_or(8192)];
    let below = from_below.saturating_sub(at).min(page_bytes);
    let wanted = usize::try_from(below).unwrap_or(0);
    if let Some(wanted) = page.get_mut(..wanted) {
        let _count = source.read_at(path, at, wanted);
    }
    page
}

fn note(failure: &mut Option<String>, error: &io::Error) {
    failure.get_or_insert_with(|| format!("a changed page could not be kept: {error}"));
}

/// The block with which a relation's file begins; nothing for other files.
fn first_block(path: &str, segment_blocks: u64) -> Option<BlockNo> {
    let (folder, name) = path.rsplit_once('/')?;
    let is_home =
        folder == "global" || folder.starts_with("base/") || folder.starts_with("pg_tblspc/");
    let name = RelationFileName::parse(name).filter(|_| is_home)?;
    let first = u64::from(name.segment).checked_mul(segment_blocks)?;
    BlockNo::try_from(first).ok()
}

/// A cluster's files with what its write-ahead log holds applied to them, in memory and, where that
/// is full, in a temporary file.
pub struct ReplayedSource {
    under: Arc<dyn Source>,
    spec: SourceSpec,
    page_bytes: u64,
    by_path: BTreeMap<String, ChangedFile>,
    pages: KeptPages,
}

impl ReplayedSource {
    pub(crate) fn new(under: Arc<dyn Source>, changed: ChangedFiles) -> Self {
        ReplayedSource {
            spec: SourceSpec::Replayed {
                under: Box::new(under.spec().clone()),
            },
            under,
            page_bytes: changed.page_bytes,
            by_path: changed.by_path,
            pages: changed.pages.keep(),
        }
    }

    /// Recovery makes files in a folder that is not there.
    fn makes(&self, folder: &str) -> bool {
        let prefix = format!("{folder}/");
        let behind = self.by_path.range(prefix.clone()..);
        let mut inside = behind.take_while(|(path, _)| path.starts_with(&prefix));
        inside.any(|(_, file)| file.len.is_some())
    }

    /// The file as recovery leaves it, where it changes it. A folder that it makes is none.
    fn changed(&self, path: &str) -> Result<Option<(&ChangedFile, u64)>> {
        let Some(file) = self.by_path.get(path) else {
            return if self.makes(path) {
                Err(SourceError::new(
                    path,
                    SourceErrorKind::NotRegular,
                    "it is a directory, not a regular file",
                ))
            } else {
                Ok(None)
            };
        };
        if let Some(error) = &file.unreadable {
            return Err(error.clone());
        }
        let len = file.len.ok_or_else(|| Self::not_found(path))?;
        Ok(Some((file, len)))
    }

    fn not_found(path: &str) -> SourceError {
        let why = "the write-ahead log says that this file is removed";
        SourceError::new(path, SourceErrorKind::NotFound, why)
    }
}

impl Source for ReplayedSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        if let Some(file) = self.by_path.get(folder) {
            let not_folder =
                SourceError::new(folder, SourceErrorKind::NotRegular, "it is not a directory");
            return Err(file
                .len
                .map_or_else(|| Self::not_found(folder), |_| not_folder));
        }
        let mut entries: BTreeMap<String, Entry> = self
            .under
            .list(folder)
            .or_else(|error| {
                // What is there and cannot be listed is not there to be made.
                if error.is_absent() && self.makes(folder) {
                    Ok(Vec::new())
                } else {
                    Err(error)
                }
            })?
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        for (path, file) in &self.by_path {
            let below = match folder {
                "" => Some(path.as_str()),
                _ => path
                    .strip_prefix(folder)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(below) = below else { continue };
            if let Some((name, _)) = below.split_once('/') {
                if file.len.is_some() {
                    let made = Entry {
                        name: name.to_owned(),
                        kind: EntryKind::Folder,
                        len: 0,
                    };
                    entries.entry(name.to_owned()).or_insert(made);
                }
                continue;
            }
            let name = below;
            match file.len {
                Some(len) => {
                    let entry = Entry {
                        name: name.to_owned(),
                        kind: EntryKind::File,
                        len,
                    };
                    entries.insert(name.to_owned(), entry);
                }
                None if file.unreadable.is_some() => {}
                None => drop(entries.remove(name)),
            }
        }
        Ok(entries.into_values().collect())
    }

    fn len(&self, path: &str) -> Result<u64> {
        match self.changed(path)? {
            Some((_, len)) => Ok(len),
            None => self.under.len(path),
        }
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let Some((file, len)) = self.changed(path)? else {
            return self.under.read_at(path, offset, buf);
        };
        let here = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = here.min(buf.len());
        let buf = buf.get_mut(..count).unwrap_or_default();
        buf.fill(0);
        let below = usize::try_from(file.from_below.saturating_sub(offset)).unwrap_or(usize::MAX);
        if let Some(wanted) = buf
            .get_mut(..below.min(count))
            .filter(|wanted| !wanted.is_empty())
        {
            self.under.read_at(path, offset, wanted)?;
        }
        let page_bytes = self.page_bytes.max(1);
        let first = u32::try_from(offset / page_bytes).unwrap_or(u32::MAX);
        let end = offset.saturating_add(count as u64).div_ceil(page_bytes);
        for (number, own) in file
            .pages
            .range(first..u32::try_from(end).unwrap_or(u32::MAX))
        {
            let at = u64::from(*number) * page_bytes;
            let laid = self
                .pages
                .read(*own, |page| lay_over(buf, offset, at, page));
            laid.map_err(|error| {
                let why =
                    format!("its page {number} cannot be read from a temporary file: {error}");
                SourceError::new(path, SourceErrorKind::Io, why)
            })?;
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

/// Copies the part of `page`, which stands at `at`, that falls into `buf`, which begins at
/// `offset`.
fn lay_over(buf: &mut [u8], offset: u64, at: u64, page: &[u8]) {
    let skipped =
        |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let to = buf.get_mut(skipped(offset, at)..).unwrap_or_default();
    let from = page.get(skipped(at, offset)..).unwrap_or_default();
    let len = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;
    use pgclinic_source::{Memory, conformance, read_all};

    fn changed_files(page_bytes: u32) -> ChangedFiles {
        let folder = std::env::temp_dir();
        let space = ReplaySpace {
            memory: pgclinic_spill::Budget::new(0),
            spill_folder: Some(&folder),
        };
        ChangedFiles::new(page_bytes, false, &space)
    }

    /// A tree unlike the sample, and what recovery makes of it: the sample.
    #[test]
    fn every_promise_of_a_source_is_kept() {
        const PAGE: usize = 4096;
        let files = conformance::sample_tree();
        let mut under = files.clone();
        let changed_file = under.get_mut("base/5/16384").expect("a sample");
        changed_file.truncate(PAGE * 10);
        changed_file.get_mut(PAGE..2 * PAGE).expect("long").fill(0);
        under.insert("base/5/99999".to_owned(), vec![1; 10]);
        under.insert("16384.1".to_owned(), vec![1; PAGE * 4]);
        under.remove("global/pg_control");
        let below = under
            .iter()
            .fold(Memory::new("below"), |below, (path, bytes)| {
                below.with(path, bytes.clone())
            });
        let below: Arc<dyn Source> = Arc::new(below);
        let mut changed = changed_files(PAGE as u32);
        let mut lay = |path: &str, from: usize| {
            let pages = files.get(path).expect("a sample").chunks(PAGE);
            for (number, page) in (0..).zip(pages).skip(from) {
                let mut whole = page.to_vec();
                whole.resize(PAGE, 0);
                changed
                    .put(below.as_ref(), path, number, whole)
                    .expect("room");
            }
        };
        lay("base/5/16384", 1);
        lay("global/pg_control", 0);
        lay("16384.1", 0);
        changed.cut(below.as_ref(), "base/5/16384", 70_000);
        changed.cut(below.as_ref(), "16384.1", 8192);
        changed.remove(below.as_ref(), "base/5/99999");
        let source = ReplayedSource::new(below, changed);
        conformance::check(&source, &files);
        let removed = source.list("base/5/99999").map_err(|error| error.kind);
        assert_eq!(removed, Err(SourceErrorKind::NotFound));
    }

    #[test]
    fn pages_lie_over_what_is_below_and_cuts_stay() {
        let below = Memory::new("below")
            .with("base/1", *b"aaaabbbbcccc")
            .with("base/2", *b"x");
        let below: Arc<dyn Source> = Arc::new(below);
        let mut changed = changed_files(4);
        let page = changed.page(below.as_ref(), "base/1", 1).expect("room");
        page.expect("there").copy_from_slice(b"BBBB");
        let beyond = changed.page(below.as_ref(), "base/1", 3).expect("room");
        assert!(beyond.is_none());
        changed.cut(below.as_ref(), "base/1", 8);
        changed
            .put(below.as_ref(), "base/1", 3, b"DDDD".to_vec())
            .expect("room");
        changed.remove(below.as_ref(), "base/2");
        changed
            .put(below.as_ref(), "base/3", 0, b"new!".to_vec())
            .expect("room");
        changed
            .put(below.as_ref(), "base/5/6", 0, b"new!".to_vec())
            .expect("room");
        let source = ReplayedSource::new(below, changed);
        let all = read_all(&source, "base/1", 100).expect("readable");
        assert_eq!(all, b"aaaaBBBB\0\0\0\0DDDD");
        let mut middle = [0; 6];
        assert_eq!(source.read_at("base/1", 2, &mut middle), Ok(6));
        assert_eq!(&middle, b"aaBBBB");
        let names: Vec<String> = source
            .list("base")
            .expect("a directory")
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert_eq!(names, ["1", "3", "5"]);
        assert_eq!(source.list("base/5").expect("made").len(), 1);
        assert!(source.len("base/2").is_err());
    }
}
