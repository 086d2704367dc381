//! Files as recovery leaves them: what lies below, with pages laid over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgclinic_source::{
    Entry, EntryKind, Presence, Range, Result, Source, SourceError, SourceErrorKind, SourceSpec,
};

/// A file that recovery changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedFile {
    /// By number in the file.
    pub(crate) pages: BTreeMap<u32, Vec<u8>>,
    /// Bytes that it has; nothing when it is removed.
    pub(crate) len: Option<u64>,
    /// Bytes of the file below that still count.
    pub(crate) from_below: u64,
    /// What lies below is there and cannot be reached: nothing is known of the file, whatever recovery does to some of its pages.
    pub(crate) unreadable: Option<SourceError>,
}

/// The changed files by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedFiles {
    pub(crate) page_bytes: u64,
    pub(crate) by_path: BTreeMap<String, ChangedFile>,
    held: usize,
    asked: usize,
}

impl ChangedFiles {
    /// Nothing is changed yet.
    pub(crate) fn of_pages(page_bytes: u64) -> Self {
        ChangedFiles {
            page_bytes,
            ..ChangedFiles::default()
        }
    }

    /// These files are changed already, to such bytes.
    pub(crate) fn holding(page_bytes: u64, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let size = usize::try_from(page_bytes).unwrap_or(8192).max(1);
        let held = |bytes: &Vec<u8>| ChangedFile {
            pages: (0..)
                .zip(bytes.chunks_exact(size).map(<[u8]>::to_vec))
                .collect(),
            len: Some(bytes.len() as u64),
            from_below: 0,
            unreadable: None,
        };
        let by_path = files.iter().map(|(path, own)| (path.clone(), held(own)));
        ChangedFiles {
            by_path: by_path.collect(),
            ..ChangedFiles::of_pages(page_bytes)
        }
    }

    /// The file, as it lies below until it is changed.
    pub(crate) fn file(&mut self, source: &dyn Source, path: &str) -> &mut ChangedFile {
        self.by_path.entry(path.to_owned()).or_insert_with(|| {
            let (len, unreadable) = match Presence::of_file(source, path) {
                Presence::There(len) => (Some(len), None),
                Presence::Missing => (None, None),
                Presence::Unreadable(error) => (None, Some(error)),
            };
            ChangedFile {
                pages: BTreeMap::new(),
                len,
                from_below: len.unwrap_or(0),
                unreadable,
            }
        })
    }

    /// A page of a file, to change it. `None` where the file does not reach so far.
    pub(crate) fn page(
        &mut self,
        source: &dyn Source,
        path: &str,
        number: u32,
    ) -> Option<&mut Vec<u8>> {
        let page_bytes = self.page_bytes;
        let file = self.file(source, path);
        let at = u64::from(number) * page_bytes;
        let is_there = file.len.is_some_and(|len| at + page_bytes <= len);
        if !is_there {
            return None;
        }
        let from_below = file.from_below;
        let page = file.pages.entry(number).or_insert_with(|| {
            let mut page = vec![0; usize::try_from(page_bytes).unwrap_or(8192)];
            let below = from_below.saturating_sub(at).min(page_bytes);
            let wanted = usize::try_from(below).unwrap_or(0);
            if let Some(wanted) = page.get_mut(..wanted) {
                // A page that cannot be read is taken for zeros: records that do not fit it say so.
                let _count = source.read_at(path, at, wanted);
            }
            page
        });
        Some(page)
    }

    /// Puts a page in its place; the file grows where it must.
    pub(crate) fn put(&mut self, source: &dyn Source, path: &str, number: u32, page: Vec<u8>) {
        let end = (u64::from(number) + 1) * self.page_bytes;
        let file = self.file(source, path);
        file.len = Some(file.len.unwrap_or(0).max(end));
        file.pages.insert(number, page);
    }

    /// Ends a file after so many bytes.
    pub(crate) fn cut(&mut self, source: &dyn Source, path: &str, len: u64) {
        let pages = u32::try_from(len.div_ceil(self.page_bytes)).unwrap_or(u32::MAX);
        let file = self.file(source, path);
        file.len = file.len.map(|before| before.min(len));
        file.from_below = file.from_below.min(len);
        file.pages.split_off(&pages);
    }

    /// Takes a file away.
    pub(crate) fn remove(&mut self, source: &dyn Source, path: &str) {
        let file = self.file(source, path);
        *file = ChangedFile::default();
    }

    /// Fewer pages are held than this. The pages are counted anew only now and then.
    pub(crate) fn held_pages_below(&mut self, pages_max: usize) -> bool {
        const STEP: usize = 256;
        if self.asked.is_multiple_of(STEP) {
            self.held = self.by_path.values().map(|file| file.pages.len()).sum();
        }
        self.asked += 1;
        self.held < pages_max
    }
}

/// A cluster's files with what its write-ahead log holds applied to them, in memory.
pub struct ReplayedSource {
    under: Arc<dyn Source>,
    spec: SourceSpec,
    changed: ChangedFiles,
}

impl ReplayedSource {
    pub(crate) fn new(under: Arc<dyn Source>, changed: ChangedFiles) -> Self {
        ReplayedSource {
            spec: SourceSpec::Replayed {
                under: Box::new(under.spec().clone()),
            },
            under,
            changed,
        }
    }

    /// Recovery makes files in a folder that is not there.
    fn makes(&self, folder: &str) -> bool {
        let inside = |path: &String| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let mut files = self.changed.by_path.iter();
        files.any(|(path, file)| file.len.is_some() && inside(path))
    }

    /// The file as recovery leaves it, where it changes it. A folder that it makes is none.
    fn changed(&self, path: &str) -> Result<Option<(&ChangedFile, u64)>> {
        let Some(file) = self.changed.by_path.get(path) else {
            return match self.makes(path) {
                true => Err(SourceError::new(
                    path,
                    SourceErrorKind::NotRegular,
                    "it is a folder, not a regular file",
                )),
                false => Ok(None),
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
        if let Some(file) = self.changed.by_path.get(folder) {
            let not_folder =
                SourceError::new(folder, SourceErrorKind::NotRegular, "it is not a folder");
            return Err(file
                .len
                .map_or_else(|| Self::not_found(folder), |_| not_folder));
        }
        let mut entries: BTreeMap<String, Entry> = self
            .under
            .list(folder)
            .or_else(|error| match self.makes(folder) {
                true => Ok(Vec::new()),
                false => Err(error),
            })?
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        for (path, file) in &self.changed.by_path {
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
        let page_bytes = self.changed.page_bytes.max(1);
        let first = u32::try_from(offset / page_bytes).unwrap_or(u32::MAX);
        let end = offset.saturating_add(count as u64).div_ceil(page_bytes);
        for (number, page) in file
            .pages
            .range(first..u32::try_from(end).unwrap_or(u32::MAX))
        {
            lay_over(buf, offset, u64::from(*number) * page_bytes, page);
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

/// Copies the part of `page`, which stands at `at`, that falls into `buf`, which begins at `offset`.
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
    use super::*;
    use pgclinic_source::{Memory, conformance, read_all};

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
        let mut changed = ChangedFiles::of_pages(PAGE as u64);
        let mut lay = |path: &str, from: usize| {
            let pages = files.get(path).expect("a sample").chunks(PAGE);
            for (number, page) in (0..).zip(pages).skip(from) {
                let mut whole = page.to_vec();
                whole.resize(PAGE, 0);
                changed.put(below.as_ref(), path, number, whole);
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
        let mut changed = ChangedFiles::of_pages(4);
        let page = changed.page(below.as_ref(), "base/1", 1).expect("there");
        page.copy_from_slice(b"BBBB");
        assert!(changed.page(below.as_ref(), "base/1", 3).is_none());
        changed.cut(below.as_ref(), "base/1", 8);
        changed.put(below.as_ref(), "base/1", 3, b"DDDD".to_vec());
        changed.remove(below.as_ref(), "base/2");
        changed.put(below.as_ref(), "base/3", 0, b"new!".to_vec());
        changed.put(below.as_ref(), "base/5/6", 0, b"new!".to_vec());
        let source = ReplayedSource::new(below, changed);
        let all = read_all(&source, "base/1", 100).expect("readable");
        assert_eq!(all, b"aaaaBBBB\0\0\0\0DDDD");
        let mut middle = [0; 6];
        assert_eq!(source.read_at("base/1", 2, &mut middle), Ok(6));
        assert_eq!(&middle, b"aaBBBB");
        let names: Vec<String> = source
            .list("base")
            .expect("a folder")
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert_eq!(names, ["1", "3", "5"]);
        assert_eq!(source.list("base/5").expect("made").len(), 1);
        assert!(source.len("base/2").is_err());
    }
}
