//! A cluster's files with tablespaces whose links in pg_tblspc are not there.

use std::sync::Arc;

use pgclinic_source::{
    DataDirectory, Entry, EntryKind, Range, Result, Source, SourceError, SourceSpec,
};

const LINKS: &str = "pg_tblspc";

/// Another source with folders of elsewhere in its `pg_tblspc`.
pub(super) struct Mounted {
    under: Arc<dyn Source>,
    /// By the name that the link has.
    tablespaces: Vec<(String, DataDirectory)>,
}

impl Mounted {
    pub(super) fn new(under: Arc<dyn Source>, tablespaces: Vec<(String, DataDirectory)>) -> Self {
        Mounted { under, tablespaces }
    }

    /// Who has a path, and under which name.
    fn at<'p>(&self, path: &'p str) -> (&dyn Source, &'p str) {
        let below = path
            .strip_prefix(LINKS)
            .and_then(|own| own.strip_prefix('/'));
        let (name, rest) = match below {
            Some(below) => below.split_once('/').unwrap_or((below, "")),
            None => return (self.under.as_ref(), path),
        };
        let own = self.tablespaces.iter().find(|(own, _)| own == name);
        match own {
            Some((_, folder)) => (folder, rest),
            None => (self.under.as_ref(), path),
        }
    }
}

impl Source for Mounted {
    fn spec(&self) -> &SourceSpec {
        self.under.spec()
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        let (source, path) = self.at(folder);
        let mut entries = source.list(path)?;
        if folder == LINKS {
            let own = self.tablespaces.iter().map(|(name, _)| Entry {
                name: name.clone(),
                kind: EntryKind::Folder,
                len: 0,
            });
            entries.extend(own);
            entries.sort_by(|one, other| one.name.cmp(&other.name));
        }
        Ok(entries)
    }

    fn len(&self, path: &str) -> Result<u64> {
        let (source, path) = self.at(path);
        source.len(path)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let (source, path) = self.at(path);
        source.read_at(path, offset, buf)
    }

    fn prefetch(&self, ranges: &[Range]) {
        for range in ranges {
            let (source, path) = self.at(&range.path);
            source.prefetch(&[Range {
                path: path.to_owned(),
                ..range.clone()
            }]);
        }
    }

    fn unreadable(&self) -> Vec<SourceError> {
        let own = self.tablespaces.iter();
        let own = own.flat_map(|(_, folder)| folder.unreadable());
        self.under.unreadable().into_iter().chain(own).collect()
    }
}
