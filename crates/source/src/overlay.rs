//! Changes shown over another source without touching a file: injuries in rehearsal, plans in
//! preview.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Entry, EntryKind, OverlayPatch, Range, Result, Source, SourceError, SourceErrorKind,
    SourceSpec, path,
};

/// Another source with replaced, cut, grown, created and removed files. Files are known by the path
/// in the patch: a second path to the same file through a link shows it unchanged.
pub struct Overlay {
    spec: SourceSpec,
    under: Arc<dyn Source>,
    patches: BTreeMap<String, Vec<OverlayPatch>>,
}

/// A patched file as it looks now: so many bytes from below, zeros up to its length, and the writes
/// over both.
struct Shape<'a> {
    from_below: u64,
    len: u64,
    writes: Vec<(u64, &'a [u8])>,
}

impl Overlay {
    /// Lays patches over a source, in order. A path no source accepts and bytes beyond the last
    /// offset are refused.
    pub fn new(under: Arc<dyn Source>, patches: Vec<OverlayPatch>) -> Result<Self> {
        let mut by_path: BTreeMap<String, Vec<OverlayPatch>> = BTreeMap::new();
        for patch in &patches {
            accept(patch)?;
            by_path
                .entry(patch.path().to_owned())
                .or_default()
                .push(patch.clone());
        }
        let spec = SourceSpec::Overlay {
            under: Box::new(under.spec().clone()),
            patches,
        };
        Ok(Self {
            spec,
            under,
            patches: by_path,
        })
    }

    /// The file after all its patches; `None` when it is not there then.
    fn shape<'a>(&self, path: &str, patches: &'a [OverlayPatch]) -> Result<Option<Shape<'a>>> {
        let fresh = |len| Shape {
            from_below: len,
            len,
            writes: Vec::new(),
        };
        let mut shape = match self.under.len(path) {
            Ok(len) => Some(fresh(len)),
            Err(error) if error.kind == SourceErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        for patch in patches {
            match patch {
                OverlayPatch::Bytes { offset, bytes, .. } => {
                    shape.get_or_insert_with(|| fresh(0)).write(*offset, bytes);
                }
                OverlayPatch::Cut { len, .. } => shape.iter_mut().for_each(|shape| shape.cut(*len)),
                OverlayPatch::Grow { len, .. } => shape
                    .iter_mut()
                    .for_each(|shape| shape.len = shape.len.max(*len)),
                OverlayPatch::Remove { .. } => shape = None,
            }
        }
        Ok(shape)
    }

    /// The shape of a patched file, `None` for one that is read from below as it is.
    fn patched(&self, path: &str) -> Result<Option<Shape<'_>>> {
        path::check(path)?;
        let Some(patches) = self.patches.get(path) else {
            return Ok(None);
        };
        self.shape(path, patches)?
            .map(Some)
            .ok_or_else(|| SourceError::not_found(path))
    }

    /// An error from below, unless the path is a folder that only patches made.
    fn unpatched(&self, path: &str, error: SourceError) -> SourceError {
        match error.kind {
            SourceErrorKind::NotFound if self.list(path).is_ok() => {
                SourceError::not_regular(path, "a directory")
            }
            _ => error,
        }
    }
}

fn accept(patch: &OverlayPatch) -> Result<()> {
    path::check(patch.path())?;
    let refused = |why| {
        Err(SourceError::new(
            patch.path(),
            SourceErrorKind::Refused,
            why,
        ))
    };
    if patch.path().is_empty() {
        return refused("a patch concerns a file, not the root directory");
    }
    if let OverlayPatch::Bytes { offset, bytes, .. } = patch
        && offset.checked_add(length(bytes)).is_none()
    {
        return refused("the patch ends beyond the last possible offset");
    }
    Ok(())
}

impl<'a> Shape<'a> {
    fn write(&mut self, offset: u64, bytes: &'a [u8]) {
        self.len = self.len.max(offset.saturating_add(length(bytes)));
        self.writes.push((offset, bytes));
    }

    fn cut(&mut self, len: u64) {
        self.from_below = self.from_below.min(len);
        self.len = self.len.min(len);
        for (offset, bytes) in &mut self.writes {
            let kept = usize::try_from(len.saturating_sub(*offset)).unwrap_or(usize::MAX);
            *bytes = bytes.get(..kept).unwrap_or(bytes);
        }
        // What was cut away stays away when the file grows again.
        self.writes.retain(|(_, bytes)| !bytes.is_empty());
    }

    fn read_at(
        &self,
        under: &dyn Source,
        path: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        let here = size(self.len.saturating_sub(offset)).min(buf.len());
        let buf = buf.get_mut(..here).unwrap_or_default();
        buf.fill(0);
        let below = size(self.from_below.saturating_sub(offset)).min(here);
        let asked = buf.get_mut(..below).unwrap_or_default();
        let got = if asked.is_empty() {
            0
        } else {
            under.read_at(path, offset, asked)?
        };
        for (at, bytes) in &self.writes {
            lay_over(buf, offset, *at, bytes);
        }
        // A file that shrank below us ends where it ends now.
        Ok(if got < below { got } else { here })
    }
}

/// Copies the part of `bytes` (at `at` in the file) that falls into `buf` (at `offset` in the
/// file).
fn lay_over(buf: &mut [u8], offset: u64, at: u64, bytes: &[u8]) {
    let to = buf
        .get_mut(size(at.saturating_sub(offset))..)
        .unwrap_or_default();
    let from = bytes
        .get(size(offset.saturating_sub(at))..)
        .unwrap_or_default();
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

impl Source for Overlay {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        if self.patched(folder)?.is_some() {
            return Err(SourceError::not_folder(folder));
        }
        let (found, missing) = match self.under.list(folder) {
            Ok(found) => (found, None),
            Err(error) if error.kind == SourceErrorKind::NotFound => (Vec::new(), Some(error)),
            Err(error) => return Err(error),
        };
        let mut entries: BTreeMap<String, Entry> = found
            .into_iter()
            .map(|one| (one.name.clone(), one))
            .collect();
        for (path, patches) in &self.patches {
            let Some(rest) = path::below(path, folder) else {
                continue;
            };
            match (rest.split_once('/'), self.shape(path, patches)?) {
                (Some((name, _)), Some(_)) => {
                    let made = Entry {
                        name: name.to_owned(),
                        kind: EntryKind::Folder,
                        len: 0,
                    };
                    entries.entry(made.name.clone()).or_insert(made);
                }
                (Some(_), None) => {}
                (None, Some(Shape { len, .. })) => {
                    let made = Entry {
                        name: rest.to_owned(),
                        kind: EntryKind::File,
                        len,
                    };
                    entries.insert(made.name.clone(), made);
                }
                (None, None) => drop(entries.remove(rest)),
            }
        }
        match missing {
            Some(error) if entries.is_empty() => Err(error),
            _ => Ok(entries.into_values().collect()),
        }
    }

    fn len(&self, path: &str) -> Result<u64> {
        match self.patched(path)? {
            Some(shape) => Ok(shape.len),
            None => self
                .under
                .len(path)
                .map_err(|error| self.unpatched(path, error)),
        }
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match self.patched(path)? {
            Some(shape) => shape.read_at(&*self.under, path, offset, buf),
            None => self
                .under
                .read_at(path, offset, buf)
                .map_err(|error| self.unpatched(path, error)),
        }
    }

    fn prefetch(&self, ranges: &[Range]) {
        self.under.prefetch(ranges);
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.under.unreadable()
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, read_all};

    fn bytes(offset: u64, bytes: &[u8]) -> OverlayPatch {
        OverlayPatch::Bytes {
            path: "f".to_owned(),
            offset,
            bytes: bytes.to_vec(),
        }
    }

    fn shown(patches: Vec<OverlayPatch>) -> Option<Vec<u8>> {
        let under = Arc::new(Memory::new("under").with("f", *b"abcdef"));
        read_all(&Overlay::new(under, patches).ok()?, "f", 100).ok()
    }

    #[test]
    fn later_patches_see_earlier_ones() {
        let cut = |len| OverlayPatch::Cut {
            path: "f".to_owned(),
            len,
        };
        let grow = |len| OverlayPatch::Grow {
            path: "f".to_owned(),
            len,
        };
        let remove = OverlayPatch::Remove {
            path: "f".to_owned(),
        };
        let text = |text: &[u8]| Some(text.to_vec());
        assert_eq!(
            shown(vec![bytes(1, b"XX"), bytes(2, b"Y")]),
            text(b"aXYdef")
        );
        assert_eq!(shown(vec![bytes(5, b"XYZ"), cut(7)]), text(b"abcdeXY"));
        assert_eq!(
            shown(vec![bytes(3, b"XYZ"), cut(2), grow(5)]),
            text(b"ab\0\0\0")
        );
        assert_eq!(shown(vec![cut(9), grow(3)]), text(b"abcdef"));
        assert_eq!(shown(vec![bytes(8, b"X")]), text(b"abcdef\0\0X"));
        assert_eq!(shown(vec![remove.clone(), bytes(1, b"X")]), text(b"\0X"));
        assert_eq!(shown(vec![bytes(0, b"X"), remove]), None);
        assert_eq!(shown(vec![bytes(u64::MAX, b"X")]), None);
    }
}
