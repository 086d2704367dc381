//! The folder that rows are written to: each file appears under its name when it is whole.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::SalvageError;
use super::finished_tables;
use crate::schema::Statement;

/// Bytes of a text that are written at once.
const GATHERED_BYTES: usize = 64 << 10;

/// What a file that is not whole has behind its name.
const PART: &str = ".part";

/// Whether files are forced to the disk before they get their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// They are.
    Synced,
    /// The operating system writes them when it likes.
    Buffered,
}

/// A folder for the files of a salvage.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    durability: Durability,
}

impl Folder {
    /// Makes the folder, or takes one that holds nothing. Never inside a cluster.
    pub(crate) fn prepare(root: &Path, durability: Durability) -> Result<Self, SalvageError> {
        let error =
            |what: &'static str| move |source| SalvageError::destination(root, what, source);
        refuse_inside_cluster(root).map_err(|refused| match refused {
            Refused::Cluster(cluster) => SalvageError::InsideCluster {
                destination: root.to_owned(),
                cluster,
            },
            Refused::Unreadable(source) => error("find")(source),
        })?;
        fs::create_dir_all(root).map_err(error("make"))?;
        let real = root.canonicalize().map_err(error("find"))?;
        if fs::read_dir(&real).map_err(error("list"))?.next().is_some() {
            return Err(SalvageError::NotEmpty(root.to_owned()));
        }
        Ok(Folder {
            root: real,
            durability,
        })
    }

    /// A folder in which an earlier run was cut off: what it did not finish is removed. Any other
    /// is taken as by `prepare`.
    pub(crate) fn resume(root: &Path, durability: Durability) -> Result<Self, SalvageError> {
        if !finished_tables::is_begun(root) {
            return Folder::prepare(root, durability);
        }
        let error = |source| SalvageError::destination(root, "list", source);
        let folder = Folder {
            root: root.canonicalize().map_err(error)?,
            durability,
        };
        let mut open = vec![(folder.root.clone(), true)];
        while let Some((path, is_root)) = open.pop() {
            for entry in fs::read_dir(&path).map_err(error)? {
                let entry = entry.map_err(error)?;
                let kind = entry.file_type().map_err(error)?;
                let is_part = entry.file_name().to_string_lossy().ends_with(PART);
                if kind.is_dir() && is_root {
                    open.push((entry.path(), false));
                } else if kind.is_file() && is_part {
                    fs::remove_file(entry.path()).map_err(error)?;
                }
            }
        }
        Ok(folder)
    }

    /// The text of a file, if it is there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, SalvageError> {
        let path = self.root.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SalvageError::destination(&path, "read", error)),
        }
    }

    /// How many bytes a file has, if it is there.
    pub(crate) fn bytes_of(&self, name: &str) -> Option<u64> {
        let found = self.root.join(name).metadata().ok()?;
        found.is_file().then_some(found.len())
    }

    /// Takes a file away, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), SalvageError> {
        remove(&self.root.join(name))
    }

    /// Adds text to a file, all of it at once.
    pub(crate) fn append(&self, name: &str, text: &str) -> Result<(), SalvageError> {
        let path = self.root.join(name);
        let file = File::options().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            match self.durability {
                Durability::Synced => file.sync_all(),
                Durability::Buffered => Ok(()),
            }
        });
        written.map_err(|source| SalvageError::destination(&path, "write", source))
    }

    /// Begins a file; `name` may hold one folder.
    pub(crate) fn begin(&self, name: &str) -> Result<PartFile, SalvageError> {
        let path = self.root.join(name);
        let part = self.root.join(format!("{name}{PART}"));
        let error = |source| SalvageError::destination(&part, "make", source);
        if let Some(parent) = part.parent() {
            fs::create_dir_all(parent).map_err(error)?;
        }
        let file = File::create_new(&part).map_err(error)?;
        Ok(PartFile {
            path,
            part,
            file,
            bytes: 0,
            durability: self.durability,
            is_whole: false,
        })
    }
}

/// Writes a file that stands by itself and is not there yet; never inside a cluster.
pub(crate) fn write_text(
    path: &Path,
    text: &Statement,
    durability: Durability,
) -> Result<(), SalvageError> {
    let error = |source| SalvageError::destination(path, "make", source);
    if path.symlink_metadata().is_ok() {
        return Err(error(io::ErrorKind::AlreadyExists.into()));
    }
    let name = path
        .file_name()
        .ok_or_else(|| error(io::ErrorKind::InvalidInput.into()))?;
    let above = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let root = above.unwrap_or(Path::new("."));
    refuse_inside_cluster(root).map_err(|refused| match refused {
        Refused::Cluster(cluster) => SalvageError::InsideCluster {
            destination: path.to_owned(),
            cluster,
        },
        Refused::Unreadable(source) => error(source),
    })?;
    let folder = Folder {
        root: root.to_owned(),
        durability,
    };
    let mut file = folder.begin(&name.to_string_lossy())?;
    file.write_all_of(text)?;
    file.finish().map(|_| ())
}

/// Takes a file away, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), SalvageError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(SalvageError::destination(path, "remove", error))
        }
        _ => Ok(()),
    }
}

enum Refused {
    Cluster(PathBuf),
    Unreadable(io::Error),
}

/// Looks at the folders above, of which the last ones need not be there yet.
fn refuse_inside_cluster(root: &Path) -> Result<(), Refused> {
    let absolute = std::path::absolute(root).map_err(Refused::Unreadable)?;
    let mut there = absolute.ancestors().filter(|folder| folder.exists());
    let nearest = there.next().unwrap_or(Path::new("/"));
    let real = nearest.canonicalize().map_err(Refused::Unreadable)?;
    let of_a_cluster = |folder: &&Path| folder.join("global/pg_control").exists();
    match real.ancestors().find(of_a_cluster) {
        Some(cluster) => Err(Refused::Cluster(cluster.to_owned())),
        None => Ok(()),
    }
}

/// A file that is being written. Dropped before it is finished, it is removed.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
    bytes: u64,
    durability: Durability,
    is_whole: bool,
}

impl PartFile {
    /// Adds bytes at the end.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), SalvageError> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| SalvageError::destination(&self.part, "write", source))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Adds a text that need not be in memory as a whole.
    pub(crate) fn write_all_of(&mut self, text: &Statement) -> Result<(), SalvageError> {
        let mut failure = None;
        let mut gathered = Vec::with_capacity(GATHERED_BYTES);
        let read = text.each(&mut |piece| {
            gathered.extend_from_slice(piece);
            if gathered.len() >= GATHERED_BYTES && failure.is_none() {
                failure = self.write(&gathered).err();
                gathered.clear();
            }
            Ok(())
        });
        failure.map_or(Ok(()), Err)?;
        read.map_err(|source| self.cannot_read(source))?;
        self.write(&gathered)
    }

    /// The same file from its beginning, to be read.
    pub(crate) fn read_back(&self) -> Result<File, SalvageError> {
        File::open(&self.part).map_err(|source| self.cannot_read(source))
    }

    /// It cannot be read back.
    pub(crate) fn cannot_read(&self, source: io::Error) -> SalvageError {
        SalvageError::destination(&self.part, "read", source)
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes away what was added since it had so many bytes.
    pub(crate) fn back_to(&mut self, bytes: u64) -> Result<(), SalvageError> {
        let cut = self.file.set_len(bytes);
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(bytes)));
        cut.map_err(|source| SalvageError::destination(&self.part, "cut", source))?;
        self.bytes = bytes;
        Ok(())
    }

    /// Gives the file its name; says how many bytes it has.
    pub(crate) fn finish(mut self) -> Result<u64, SalvageError> {
        let name = || -> io::Result<()> {
            if self.durability == Durability::Synced {
                self.file.sync_all()?;
            }
            fs::rename(&self.part, &self.path)
        };
        name().map_err(|source| SalvageError::destination(&self.path, "finish", source))?;
        self.is_whole = true;
        Ok(self.bytes)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // The name says that it is not whole; whoever finds it may remove it.
            let _left = fs::remove_file(&self.part);
        }
    }
}
