//! The trait that every source of bytes implements, and reading helpers over it.

use crate::{Result, SourceError, SourceErrorKind, SourceSpec};

/// What a name in a folder stands for, links followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Anything that is never opened: FIFO, socket, device, a link that leads nowhere, a name that
    /// is not UTF-8.
    Other,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The last component of the path. Bytes that are not UTF-8 make the whole name escaped
    /// (`\xNN`, the backslash as `\x5c`) and its kind [`EntryKind::Other`].
    pub name: String,
    /// What it is, links followed.
    pub kind: EntryKind,
    /// Bytes in a regular file; 0 otherwise.
    pub len: u64,
}

/// A run of bytes in one file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// The file, relative to the root of the source.
    pub path: String,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// A tree of files, read-only. Paths are relative to the data directory, '/'-separated, without
/// leading slash; "" is the root. Absolute paths and `.`, `..` or empty components are refused with
/// [`SourceErrorKind::Refused`].
///
/// Every method may be called from several threads at once. Nothing is promised about a file that
/// changes meanwhile, except that a call neither panics nor hangs.
pub trait Source: Send + Sync {
    /// What this source is, enough to rebuild it in another process.
    fn spec(&self) -> &SourceSpec;

    /// The names in a folder, sorted by name as bytes, each once. Links are followed
    /// (`pg_tblspc/OID` is a folder); subfolders are not entered.
    fn list(&self, folder: &str) -> Result<Vec<Entry>>;

    /// The length of a regular file in bytes.
    fn len(&self, path: &str) -> Result<u64>;

    /// Reads until `buf` is full or the file ends; the count is short only at the end of the file.
    /// An offset beyond the end gives 0.
    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Says what will be read soon. Advice only: it may do nothing, and errors appear when the
    /// bytes are read.
    fn prefetch(&self, _ranges: &[Range]) {}

    /// What it was asked for, and is there or may be there, and could not be reached. A decorator
    /// hands on what lies below.
    fn unreadable(&self) -> Vec<SourceError> {
        Vec::new()
    }
}

/// The bytes of a whole small file; a file longer than `limit` bytes is refused.
pub fn read_all(source: &dyn Source, path: &str, limit: u64) -> Result<Vec<u8>> {
    const STEP: u64 = 64 * 1024;
    let mut bytes = Vec::new();
    let mut filled = 0usize;
    // The length is not asked for: it may change before the bytes are read.
    loop {
        let read_so_far = u64::try_from(filled).unwrap_or(u64::MAX);
        if read_so_far > limit {
            let why = format!("the file is longer than the limit of {limit} bytes");
            return Err(SourceError::new(path, SourceErrorKind::Refused, why));
        }
        let step = limit
            .saturating_sub(read_so_far)
            .saturating_add(1)
            .min(STEP);
        let wanted = filled.saturating_add(usize::try_from(step).unwrap_or(usize::MAX));
        bytes.resize(wanted, 0);
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        let asked = rest.len();
        let count = source.read_at(path, read_so_far, rest)?;
        filled = filled.saturating_add(count);
        if count < asked {
            bytes.truncate(filled);
            return Ok(bytes);
        }
    }
}

/// Fills `buf` from `offset`; a file that ends before is [`SourceErrorKind::Shrunk`].
pub fn read_exact_at(source: &dyn Source, path: &str, offset: u64, buf: &mut [u8]) -> Result<()> {
    let wanted = buf.len();
    let count = source.read_at(path, offset, buf)?;
    if count == wanted {
        return Ok(());
    }
    let why = format!(
        "the file ends {count} bytes after offset {offset}, where {wanted} bytes were expected"
    );
    Err(SourceError::new(path, SourceErrorKind::Shrunk, why))
}
