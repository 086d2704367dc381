//! Files that passed by once, as a source: some were kept whole, of the others only pages that
//! somebody wants to see again.
//!
//! What was not kept reads as zeros. Whoever reads such a source must know that every page of zeros
//! was looked at when it passed; [`StreamedBackup::is_kept`] tells the files that can be read for
//! what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::data_directory::read_full;
use crate::tar::{DiskReserve, FileExtent, Tree};
use crate::{Entry, Result, Source, SourceError, SourceErrorKind, SourceSpec, path};

/// Where the bytes of a file are.
const KEPT: usize = 0;
const GONE: usize = 1;

/// A source of files that were read once as they streamed, and were kept whole or in part.
pub struct StreamedBackup {
    spec: SourceSpec,
    tree: Tree,
    kept: File,
    kept_bytes: u64,
    room: DiskReserve,
    names: BTreeSet<String>,
    pages: BTreeMap<(String, u64), Vec<u8>>,
}

impl StreamedBackup {
    /// An empty tree; what is kept goes into a nameless file in `spill_folder`. `name` appears in
    /// the spec only.
    pub fn new(name: &str, spill_folder: &Path) -> Result<Self> {
        let shown = spill_folder.to_string_lossy();
        let kept = pgclinic_spill::nameless_file(spill_folder);
        Ok(StreamedBackup {
            spec: SourceSpec::Memory { name: name.into() },
            tree: Tree::default(),
            kept: kept.map_err(|error| SourceError::from_io(&shown, &error))?,
            kept_bytes: 0,
            room: DiskReserve::default(),
            names: BTreeSet::new(),
            pages: BTreeMap::new(),
        })
    }

    /// A folder, empty so far.
    pub fn add_folder(&mut self, path: &str) {
        self.tree.add_folder(path);
    }

    /// A file of so many bytes that passed by.
    pub fn add_gone(&mut self, path: &str, len: u64) {
        self.add(path, GONE, 0, len);
        self.names.remove(path);
    }

    /// A file that is kept; its bytes come by [`StreamedBackup::append`].
    pub fn add_kept(&mut self, path: &str) {
        self.add(path, KEPT, self.kept_bytes, 0);
        self.names.insert(path.to_owned());
    }

    /// More bytes of the file that was kept last.
    pub fn append(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let place = self.tree.file(path)?;
        let written = self.kept.write_all_at(bytes, self.kept_bytes);
        written.map_err(|error| SourceError::from_io(path, &error))?;
        self.kept_bytes = self.kept_bytes.saturating_add(bytes.len() as u64);
        self.add(path, KEPT, place.offset, self.kept_bytes - place.offset);
        let taken = bytes.len() as u64;
        self.room.take(&self.kept, taken, taken).map_err(|why| {
            let why = format!(
                "there is no room to keep it: {why}; name another directory with --spill-to"
            );
            SourceError::new(path, SourceErrorKind::Refused, why)
        })
    }

    /// These bytes stand there, whatever was kept.
    pub fn keep_page(&mut self, path: &str, offset: u64, bytes: &[u8]) {
        self.pages.insert((path.to_owned(), offset), bytes.to_vec());
    }

    /// Nothing of what [`StreamedBackup::keep_page`] kept stands there any more.
    pub fn forget_page(&mut self, path: &str, offset: u64) {
        self.pages.remove(&(path.to_owned(), offset));
    }

    /// All bytes of the file are there.
    pub fn is_kept(&self, path: &str) -> bool {
        self.names.contains(path)
    }

    /// Bytes of files that are kept.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    fn add(&mut self, path: &str, archive: usize, offset: u64, len: u64) {
        let place = FileExtent {
            archive,
            offset,
            len,
        };
        self.tree.add_at(path, place);
    }

    /// Lays pages over what stands in `buf`, which begins at `offset`.
    fn lay_over(&self, path: &str, offset: u64, buf: &mut [u8]) {
        let end = offset.saturating_add(buf.len() as u64);
        // No page is longer.
        let from = offset.saturating_sub(32 << 10);
        let near = (path.to_owned(), from)..(path.to_owned(), end);
        for ((_, at), page) in self.pages.range(near) {
            let skipped = usize::try_from(offset.saturating_sub(*at)).unwrap_or(usize::MAX);
            let start = usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
            let page = page.get(skipped..).unwrap_or_default();
            let room = buf.get_mut(start..).unwrap_or_default();
            let count = page.len().min(room.len());
            if let (Some(to), Some(from)) = (room.get_mut(..count), page.get(..count)) {
                to.copy_from_slice(from);
            }
        }
    }
}

impl Source for StreamedBackup {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        path::check(folder)?;
        self.tree.list(folder)
    }

    fn len(&self, path: &str) -> Result<u64> {
        path::check(path)?;
        Ok(self.tree.file(path)?.len)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        path::check(path)?;
        let place = self.tree.file(path)?;
        let rest = usize::try_from(place.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = rest.min(buf.len());
        let room = buf.get_mut(..wanted).unwrap_or_default();
        if place.archive == KEPT {
            let at = place.offset.saturating_add(offset);
            let read = read_full(&self.kept, at, room);
            let read = read.map_err(|error| SourceError::from_io(path, &error))?;
            if read < wanted {
                let why = "what was kept of it is not there any more";
                return Err(SourceError::new(path, SourceErrorKind::Io, why));
            }
        } else {
            room.fill(0);
        }
        self.lay_over(path, offset, room);
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{check, sample_tree};

    #[test]
    fn what_is_kept_whole_is_a_source_like_others() {
        let files = sample_tree();
        let mut passed = StreamedBackup::new("test", &std::env::temp_dir()).expect("a directory");
        for (path, content) in &files {
            passed.add_kept(path);
            for part in content.chunks(7000) {
                passed.append(path, part).expect("room");
            }
        }
        check(&passed, &files);
        assert!(passed.is_kept("base/5/16384"));
    }

    #[test]
    fn of_what_passed_by_only_pages_are_left() {
        let mut passed = StreamedBackup::new("test", &std::env::temp_dir()).expect("a directory");
        passed.add_gone("base/5/1", 300);
        passed.keep_page("base/5/1", 100, &[7; 100]);
        passed.keep_page("base/5/10", 0, &[8; 100]);
        let read = |offset, len| {
            let mut buf = vec![0xEE; len];
            let count = passed.read_at("base/5/1", offset, &mut buf).expect("bytes");
            buf.truncate(count);
            buf
        };
        assert_eq!(read(0, 400), [[0; 100], [7; 100], [0; 100]].concat());
        assert_eq!(read(150, 100), [[7; 50], [0; 50]].concat());
        assert!(!passed.is_kept("base/5/1"));
    }
}
