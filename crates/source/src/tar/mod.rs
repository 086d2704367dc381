//! A base backup as tar archives: `base.tar` with the archives of tablespaces, `NNNN.tar`, and
//! `pg_wal.tar` beside it, each plain or packed with gzip, LZ4 or zstd.
//!
//! Plain archives are read in place. Packed ones are unpacked once, before anything is read, into a
//! store that packs them again so that they can be read at any place. Members are shown where a
//! restore would put them, also where the whole backup lies in a folder of the archive; hard links
//! are their targets, holes are filled. Names that would leave the backup, other links and devices
//! are left out and told.

mod archive_cursor;
mod described;
mod disk_reserve;
mod gzip;
mod lz4;
mod members;
mod packed;
mod packing;
mod peek_reader;
mod read_ahead;
mod reader;
mod root_prefix;
mod store;
mod stream;
mod zstd;

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_format::tar::SparseMap;
use rustix::fs::{Advice, fadvise};

use crate::{
    AccessLog, Entry, Range, Result, Source, SourceError, SourceErrorKind, SourceSpec, path,
};
use archive_cursor::{ArchiveCursor, Stop};
use members::Found;
pub(crate) use members::{FileExtent, Tree};
pub(crate) use packing::ArchiveCompression;
use packing::has_ustar;
use reader::Members;
use store::BlockStore;

pub use archive_cursor::Step;
pub(crate) use disk_reserve::DiskReserve;
pub use packed::PackedArchives;
pub use stream::{Archives, StreamEntry, TarStream};

/// Files that lie beside `base.tar` and belong to the backup.
const BESIDE: [&str; 1] = ["backup_manifest"];

/// A base backup that consists of tar archives, as a source.
pub struct TarBackup {
    spec: SourceSpec,
    archives: Vec<Bytes>,
    /// What came out of those that are packed, where there are any.
    store: Option<BlockStore>,
    tree: Tree,
    troubles: Vec<String>,
    is_cut: bool,
    log: AccessLog,
}

/// Where the bytes of an archive, or of a file beside it, are.
enum Bytes {
    InPlace(File),
    /// In the store, from this byte on.
    Stored(u64),
}

/// The file is an archive, or packed, by its first bytes.
pub fn is_archive(path: &Path) -> bool {
    let Ok(file) = open_file(path) else {
        return false;
    };
    let is_known = ArchiveCompression::of(&file).is_ok_and(|packing| packing.is_some());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut head = [0; 512];
    is_known
        && (name.contains(".tar")
            || name.ends_with(".tgz")
            || file.read_at(&mut head, 0).is_ok_and(|_| has_ustar(&head)))
}

/// `base.tar` or the like in a folder.
pub fn base_archive_in(folder: &Path) -> Option<PathBuf> {
    let names = names_in(folder).ok()?;
    let base = names
        .into_iter()
        .find(|name| stem_of(name) == Some("base"))?;
    Some(folder.join(base))
}

impl TarBackup {
    /// Opens the archive and those beside it; packed ones are unpacked, and kept in a nameless file
    /// in `spill_folder`. `step` is told how many bytes were unpacked and may stop it.
    ///
    /// Beside names and places of files, what was unpacked takes 34 MiB of memory a TiB for the
    /// index, and some 8 MiB for blocks that were read last.
    pub fn open(path: &Path, spill_folder: &Path, step: Step<'_>) -> Result<Self> {
        let mut backup = TarBackup {
            spec: SourceSpec::TarBackup {
                path: path.to_owned(),
                spill_folder: spill_folder.to_owned(),
            },
            archives: Vec::new(),
            store: None,
            tree: Tree::default(),
            troubles: Vec::new(),
            is_cut: false,
            log: AccessLog::default(),
        };
        backup.add(path, "", spill_folder, step)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if stem_of(&name) == Some("base")
            && let Some(folder) = path.parent()
        {
            backup.add_beside(folder, spill_folder, step)?;
        }
        Ok(backup)
    }

    /// What is wrong with the archives themselves.
    pub fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// Bytes that came out of packed archives.
    pub fn unpacked_bytes(&self) -> u64 {
        self.store.as_ref().map_or(0, BlockStore::len)
    }

    /// Bytes in which they are kept.
    pub fn stored_bytes(&self) -> u64 {
        self.store.as_ref().map_or(0, BlockStore::stored_bytes)
    }

    /// Files may be missing since one of the archives does not go on to its end.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Tablespaces, WAL and the manifest.
    fn add_beside(&mut self, folder: &Path, spill_folder: &Path, step: Step<'_>) -> Result<()> {
        for (own, below) in parts_beside(folder)? {
            self.add(&own, &below, spill_folder, step)?;
        }
        for name in BESIDE {
            let own = folder.join(name);
            if own.is_file() {
                self.add_file(&own, name)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, below: &str, spill_folder: &Path, step: Step<'_>) -> Result<()> {
        let shown = path.to_string_lossy();
        let failed = |error: std::io::Error| SourceError::from_io(&shown, &error);
        let refused = |why: String| SourceError::new(shown.as_ref(), SourceErrorKind::Refused, why);
        let file = open_file(path).map_err(failed)?;
        let packing = ArchiveCompression::of(&file).map_err(failed)?;
        let packing = packing.ok_or_else(|| {
            refused("it is no tar archive, and not compressed with gzip, LZ4 or zstd".into())
        })?;
        let read = match packing {
            ArchiveCompression::Plain => in_place(file, step),
            packed => self.unpacked(packed, file, spill_folder, step),
        };
        let (bytes, found) = read.map_err(|stop| match stop {
            Stop::NoRoom(why) => refused(format!(
                "there is no room in {} to unpack it: {why}; name another directory with --spill-to",
                spill_folder.display()
            )),
            Stop::Asked => refused("decompressing it was interrupted".into()),
            Stop::Broken(error) => failed(error),
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.is_cut |= found.broken.is_some();
        self.troubles
            .extend(found.broken.map(|why| format!("{name}: {why}")));
        let number = self.archives.len();
        let left_out = self.tree.add(number, below, found.members);
        self.troubles
            .extend(left_out.into_iter().map(|why| format!("{name}: {why}")));
        self.archives.push(bytes);
        Ok(())
    }

    /// Unpacks an archive to its end into the store, which is made for the first one.
    fn unpacked(
        &mut self,
        packing: ArchiveCompression,
        file: File,
        spill_folder: &Path,
        step: Step<'_>,
    ) -> std::result::Result<(Bytes, Members), Stop> {
        let store = match &mut self.store {
            Some(store) => store,
            none => none.insert(BlockStore::create(spill_folder).map_err(Stop::Broken)?),
        };
        let begin = store.len();
        let packed = packing.unpack(file).map_err(Stop::Broken)?;
        let found = reader::read(&mut ArchiveCursor::unpacked(packed, store), step)?;
        Ok((Bytes::Stored(begin), found))
    }

    /// A file beside the archives, shown in the root.
    fn add_file(&mut self, path: &Path, name: &str) -> Result<()> {
        let shown = path.to_string_lossy();
        let file = open_file(path).map_err(|error| SourceError::from_io(&shown, &error))?;
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        self.tree.add_file(self.archives.len(), name, len);
        self.archives.push(Bytes::InPlace(file));
        Ok(())
    }
}

impl TarBackup {
    /// Bytes of a place, from `offset` in it.
    fn read_place(&self, place: FileExtent, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(place.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = rest.min(buf.len());
        let (Some(bytes), Some(room)) = (self.archives.get(place.archive), buf.get_mut(..wanted))
        else {
            return Ok(0);
        };
        let at = place.offset.saturating_add(offset);
        match (bytes, &self.store) {
            (Bytes::InPlace(file), _) => crate::data_directory::read_full(file, at, room),
            (Bytes::Stored(begin), Some(store)) => store.read_at(begin.saturating_add(at), room),
            (Bytes::Stored(_), None) => Ok(0),
        }
    }

    /// The same of a file of which only islands are stored there.
    fn read_holed(
        &self,
        place: FileExtent,
        map: &SparseMap,
        offset: u64,
        buf: &mut [u8],
    ) -> std::io::Result<usize> {
        let mut filled = 0usize;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let Some(run) = map.run_at(offset.saturating_add(filled as u64)) else {
                break;
            };
            let wanted = usize::try_from(run.len)
                .unwrap_or(usize::MAX)
                .min(rest.len());
            let room = rest.get_mut(..wanted).unwrap_or_default();
            let count = match run.stored_at {
                Some(at) => self.read_place(place, at, room)?,
                None => {
                    room.fill(0);
                    wanted
                }
            };
            filled = filled.saturating_add(count);
            if count < wanted {
                break;
            }
        }
        Ok(filled)
    }
}

/// The members of an archive that is not packed.
fn in_place(file: File, step: Step<'_>) -> std::result::Result<(Bytes, Members), Stop> {
    let found = reader::read(
        &mut ArchiveCursor::in_place(&file).map_err(Stop::Broken)?,
        step,
    )?;
    Ok((Bytes::InPlace(file), found))
}

/// The archive and those beside it that [`TarBackup`] reads.
pub(crate) fn archives_at(path: &Path) -> Result<Vec<PathBuf>> {
    let mut archives = vec![path.to_owned()];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if stem_of(&name) == Some("base")
        && let Some(folder) = path.parent()
    {
        let parts = parts_beside(folder)?.into_iter();
        archives.extend(parts.map(|(own, _)| own));
    }
    Ok(archives)
}

/// The archives of tablespaces and WAL in a folder, sorted by name, with what their names are
/// below.
pub(crate) fn parts_beside(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let shown = folder.to_string_lossy();
    let names = names_in(folder).map_err(|error| SourceError::from_io(&shown, &error))?;
    let mut parts = Vec::new();
    for name in names {
        let below = match stem_of(&name) {
            Some("pg_wal") => "pg_wal/".to_owned(),
            Some(number) if number.parse::<u32>().is_ok() => format!("pg_tblspc/{number}/"),
            _ => continue,
        };
        parts.push((folder.join(name), below));
    }
    Ok(parts)
}

/// Names of regular files, sorted.
fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().is_file()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// `16385` of `16385.tar.zst`.
fn stem_of(name: &str) -> Option<&str> {
    let (stem, packing) = name.split_once(".tar")?;
    matches!(packing, "" | ".gz" | ".lz4" | ".zst").then_some(stem)
}

/// Opens a regular file; a FIFO or a device would make us wait.
fn open_file(path: &Path) -> std::io::Result<File> {
    if !path.metadata()?.is_file() {
        let why = "it is no regular file";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
    }
    File::open(path)
}

impl Source for TarBackup {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        path::check(folder)?;
        self.tree.list(folder)
    }

    fn len(&self, path: &str) -> Result<u64> {
        path::check(path)?;
        self.tree.len(path)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        path::check(path)?;
        let failed = |error| SourceError::from_io(path, &error);
        self.log.note(match self.tree.find(path)? {
            Found::Whole(place) => self.read_place(place, offset, buf).map_err(failed),
            Found::Holed(place, map) => self.read_holed(place, map, offset, buf).map_err(failed),
        })
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.log.failures()
    }

    fn prefetch(&self, ranges: &[Range]) {
        for range in ranges {
            let Ok(Found::Whole(place)) = self.tree.find(&range.path) else {
                continue;
            };
            let at = place.offset.saturating_add(range.offset);
            match (self.archives.get(place.archive), &self.store) {
                (Some(Bytes::InPlace(file)), _) => {
                    if let Some(len) = NonZeroU64::new(range.len) {
                        // Advice: it is read as well without.
                        let _ = fadvise(file, at, Some(len), Advice::WillNeed);
                    }
                }
                (Some(Bytes::Stored(begin)), Some(store)) => {
                    store.prefetch(begin.saturating_add(at), range.len);
                }
                _ => {}
            }
        }
    }
}
