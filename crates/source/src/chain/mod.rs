//! A chain of base backups, a full one and incremental ones in order, shown as `pg_combinebackup`
//! would put it together, with nothing written.
//!
//! The last link says which files there are. One that it holds whole is its own; of one that it
//! holds as `INCREMENTAL.<file>` each block is the newest that a link has. `backup_label` is the
//! last one's without the lines about the chain, and `backup_manifest` is not shown: each link has
//! its own, which speaks of that link's files. Truth: `src/bin/pg_combinebackup/pg_combinebackup.c`
//! and `reconstruct.c`.

mod resolve;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pgclinic_format::backup_label::BackupLabel;
use pgclinic_format::incremental::PREFIX;

use crate::{
    Entry, Range, Result, Source, SourceError, SourceErrorKind, SourceSpec, path, read_all,
};
use resolve::{Head, Resolved};

/// Files whose blocks are looked up are kept up to so many runs of blocks together: some 40 MB.
const RUNS_KEPT: usize = 1 << 20;

/// Bytes of a `backup_label` that are read.
const LABEL_BYTES: u64 = 64 << 10;
const LABEL: &str = "backup_label";
const MANIFEST: &str = "backup_manifest";

/// Sizes that decide where a block is; the control file tells them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainShape {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks of a full segment.
    pub segment_blocks: u32,
}

/// A full backup with the incremental ones on top of it, as one source.
pub struct BackupChain {
    spec: SourceSpec,
    links: Vec<Arc<dyn Source>>,
    shape: ChainShape,
    /// The label without the lines about the chain; nothing where the last link has none.
    label: Option<Vec<u8>>,
    kept: Mutex<VecDeque<(String, Arc<Resolved>)>>,
}

impl BackupChain {
    /// Over links in order, the full backup first. Whether they belong together is not looked at.
    pub fn new(links: Vec<Arc<dyn Source>>, shape: ChainShape) -> Result<Self> {
        let Some(last) = links.last() else {
            let why = "a chain needs a backup to begin with";
            return Err(SourceError::new("", SourceErrorKind::Refused, why));
        };
        let label = match read_all(last.as_ref(), LABEL, LABEL_BYTES) {
            Ok(bytes) => Some(in_one_piece(&bytes)),
            Err(error) if error.kind == SourceErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let spec = SourceSpec::Chain {
            links: links.iter().map(|link| link.spec().clone()).collect(),
            block_bytes: shape.block_bytes,
            segment_blocks: shape.segment_blocks,
        };
        Ok(BackupChain {
            spec,
            links,
            shape,
            label,
            kept: Mutex::default(),
        })
    }

    fn last(&self) -> &dyn Source {
        let last = self.links.last();
        last.expect("a chain has a link: new() saw to it").as_ref()
    }

    /// The head of the parts that the last link has of a file; nothing where it has none.
    fn head(&self, path: &str) -> Option<Result<Head>> {
        let part = part_of(path)?;
        match self.last().len(&part) {
            Ok(_) => Some(Head::read(self.last(), &part, self.shape)),
            Err(_) => None,
        }
    }

    fn resolved(&self, path: &str) -> Result<Arc<Resolved>> {
        if let Some(kept) = self.kept(path) {
            return Ok(kept);
        }
        let part = part_of(path).ok_or_else(|| SourceError::not_found(path))?;
        if self.last().len(&part).is_err() {
            return Err(SourceError::not_found(path));
        }
        let resolved = Arc::new(Resolved::find(&self.links, path, &part, self.shape)?);
        self.keep(path, &resolved);
        Ok(resolved)
    }

    fn kept(&self, path: &str) -> Option<Arc<Resolved>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(own, _)| own == path)?;
        let found = kept.remove(at)?;
        let resolved = Arc::clone(&found.1);
        kept.push_back(found);
        Some(resolved)
    }

    /// The longest unused go first.
    fn keep(&self, path: &str, resolved: &Arc<Resolved>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(own, _)| own != path);
        kept.push_back((path.to_owned(), Arc::clone(resolved)));
        let mut runs: usize = kept.iter().map(|(_, one)| one.cost()).sum();
        while runs > RUNS_KEPT && kept.len() > 1 {
            if let Some((_, gone)) = kept.pop_front() {
                runs = runs.saturating_sub(gone.cost());
            }
        }
    }

    /// The label's bytes, where the path is the label's.
    fn label(&self, path: &str) -> Option<&[u8]> {
        self.label.as_deref().filter(|_| path == LABEL)
    }
}

/// The label of the whole, from that of the last link.
fn in_one_piece(bytes: &[u8]) -> Vec<u8> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => BackupLabel::without_follows(text).into_bytes(),
        Cow::Owned(_) => bytes.to_vec(),
    }
}

/// The folder is one of those whose files are split into parts.
fn holds_parts(folder: &str) -> bool {
    let is_or_below = |top: &str| folder == top || path::below(folder, top).is_some();
    let in_tablespace = || path::below(folder, "pg_tblspc").is_some_and(|rest| rest.contains('/'));
    is_or_below("base") || folder == "global" || in_tablespace()
}

/// `base/5/INCREMENTAL.16384` for `base/5/16384`; nothing for a file that never comes in parts.
fn part_of(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let may = holds_parts(folder) && !name.starts_with(PREFIX);
    may.then(|| format!("{folder}/{PREFIX}{name}"))
}

/// The path is not shown: parts of files, and the manifest of the last link alone.
fn is_hidden(path: &str) -> bool {
    let is_part = |(folder, name): (&str, &str)| holds_parts(folder) && name.starts_with(PREFIX);
    path == MANIFEST || path.rsplit_once('/').is_some_and(is_part)
}

fn seen(path: &str) -> Result<()> {
    path::check(path)?;
    if is_hidden(path) {
        Err(SourceError::not_found(path))
    } else {
        Ok(())
    }
}

impl Source for BackupChain {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        seen(folder)?;
        let mut entries = match self.last().list(folder) {
            Err(error)
                if error.kind == SourceErrorKind::NotFound && self.head(folder).is_some() =>
            {
                return Err(SourceError::not_folder(folder));
            }
            listed => listed?,
        };
        if folder.is_empty() {
            entries.retain(|entry| entry.name != MANIFEST);
            for entry in entries.iter_mut().filter(|entry| entry.name == LABEL) {
                entry.len = self.label(LABEL).map_or(entry.len, length);
            }
        }
        if !holds_parts(folder) {
            return Ok(entries);
        }
        let (mut shown, parts): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| !entry.name.starts_with(PREFIX));
        for part in parts {
            let name = part
                .name
                .strip_prefix(PREFIX)
                .unwrap_or_default()
                .to_owned();
            // Parts that make no sense have a name and their own length still: who reads them
            // learns why.
            let head = self.head(&format!("{folder}/{name}"));
            let len = head.and_then(Result::ok).map_or(part.len, |head| head.len);
            shown.push(Entry {
                name,
                kind: part.kind,
                len,
            });
        }
        // A file that is there whole comes before its parts.
        shown.sort_by(|a, b| a.name.cmp(&b.name));
        shown.dedup_by(|b, a| a.name == b.name);
        Ok(shown)
    }

    fn len(&self, path: &str) -> Result<u64> {
        seen(path)?;
        if let Some(label) = self.label(path) {
            return Ok(length(label));
        }
        match self.last().len(path) {
            Err(error) if error.kind == SourceErrorKind::NotFound => match self.head(path) {
                Some(head) => Ok(head?.len),
                None => Err(error),
            },
            known => known,
        }
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        seen(path)?;
        if let Some(label) = self.label(path) {
            return Ok(copy_at(label, offset, buf));
        }
        if let Some(resolved) = self.kept(path) {
            return resolved.read_at(&self.links, path, offset, buf);
        }
        match self.last().read_at(path, offset, buf) {
            Err(error) if error.kind == SourceErrorKind::NotFound => {
                let resolved = self.resolved(path)?;
                resolved.read_at(&self.links, path, offset, buf)
            }
            read => read,
        }
    }

    fn prefetch(&self, ranges: &[Range]) {
        for range in ranges {
            match self.kept(&range.path) {
                Some(resolved) => resolved.prefetch(&self.links, range),
                None => self.last().prefetch(std::slice::from_ref(range)),
            }
        }
    }

    fn unreadable(&self) -> Vec<SourceError> {
        let links = self.links.iter();
        links.flat_map(|link| link.unreadable()).collect()
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn copy_at(bytes: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let start = usize::try_from(offset).ok();
    let rest = start
        .and_then(|start| bytes.get(start..))
        .unwrap_or_default();
    let count = rest.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..count), rest.get(..count)) {
        to.copy_from_slice(from);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_relations_hold_parts() {
        for folder in ["base/5", "global", "pg_tblspc/16385/PG_18_202506291/5"] {
            assert!(holds_parts(folder), "{folder}");
        }
        for folder in [
            "",
            "pg_wal",
            "pg_tblspc",
            "pg_tblspc/16385",
            "basement/5",
            "global/x",
        ] {
            assert!(!holds_parts(folder), "{folder}");
        }
        assert_eq!(
            part_of("base/5/1259").as_deref(),
            Some("base/5/INCREMENTAL.1259")
        );
        assert_eq!(part_of("PG_VERSION"), None);
        assert_eq!(part_of("base/5/INCREMENTAL.1259"), None);
    }
}
