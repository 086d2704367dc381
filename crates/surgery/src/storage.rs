//! The few things that are done to files, so that a test can pull the plug between any two of them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink,
};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Who owns a file and what others may do with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// Files as the journal, the writer and the undo see them. A change counts as lasting only after
/// `sync` of the file and, for names, `sync_folder`.
pub trait Storage {
    /// Bytes in a file; `None` when it is not there.
    fn len(&self, path: &Path) -> io::Result<Option<u64>>;
    /// Reads until `buf` is full or the file ends.
    fn read_at(&self, path: &Path, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// The file's owner.
    fn owner(&self, path: &Path) -> io::Result<Owner>;
    /// Whether the file could be written to, without doing it.
    fn may_write(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder that only its owner enters; one that is there is fine.
    fn create_folder(&mut self, path: &Path) -> io::Result<()>;
    /// An empty file, in place of one that is there; without an owner it is ours alone.
    fn create(&mut self, path: &Path, owner: Option<Owner>) -> io::Result<()>;
    /// Writes, past the end too.
    fn write_at(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file.
    fn cut(&mut self, path: &Path, len: u64) -> io::Result<()>;
    /// Removes the file's name.
    fn remove(&mut self, path: &Path) -> io::Result<()>;
    /// Renames, over what is there.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the file's bytes lasting.
    fn sync(&mut self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder lasting.
    fn sync_folder(&mut self, path: &Path) -> io::Result<()>;
    /// Something has this name, be it a link that leads nowhere.
    fn is_there(&self, path: &Path) -> io::Result<bool>;
    /// Where a symbolic link leads; nothing for everything else.
    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>>;
    /// A directory, ours alone.
    fn create_directory(&mut self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&mut self, path: &Path) -> io::Result<()>;
    /// Sets permission bits.
    fn set_mode(&mut self, path: &Path, mode: u32) -> io::Result<()>;
    /// A symbolic link, which is ours.
    fn link(&mut self, target: &Path, path: &Path) -> io::Result<()>;
    /// Gives a directory or a link away; permission bits are for directories.
    fn give(&mut self, path: &Path, owner: Owner) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn names(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
}

/// The real thing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    fn len(&self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_at(&self, path: &Path, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let file = File::open(path)?;
        let mut filled = 0usize;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled = filled.saturating_add(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn owner(&self, path: &Path) -> io::Result<Owner> {
        let found = fs::metadata(path)?;
        Ok(Owner {
            uid: found.uid(),
            gid: found.gid(),
            mode: found.mode() & 0o7777,
        })
    }

    fn may_write(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(path).map(drop)
    }

    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(path)
    }

    fn create(&mut self, path: &Path, owner: Option<Owner>) -> io::Result<()> {
        // A link of that name leads to a file of somebody else.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        let mode = owner.map_or(0o600, |owner| owner.mode);
        if let Some(owner) = owner {
            let found = file.metadata()?;
            if (found.uid(), found.gid()) != (owner.uid, owner.gid) {
                lchown(path, Some(owner.uid), Some(owner.gid))?;
            }
        }
        file.set_permissions(fs::Permissions::from_mode(mode))
    }

    fn write_at(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.write_all_at(bytes, offset)
    }

    fn cut(&mut self, path: &Path, len: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.set_len(len)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync(&mut self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_folder(&mut self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn is_there(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        match fs::read_link(path) {
            Ok(target) => Ok(Some(target)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn set_mode(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn link(&mut self, target: &Path, path: &Path) -> io::Result<()> {
        symlink(target, path)
    }

    fn give(&mut self, path: &Path, owner: Owner) -> io::Result<()> {
        let found = fs::symlink_metadata(path)?;
        // Only root gives files away; for others every file is their own.
        if (found.uid(), found.gid()) != (owner.uid, owner.gid) {
            lchown(path, Some(owner.uid), Some(owner.gid))?;
        }
        if found.is_symlink() {
            return Ok(());
        }
        fs::set_permissions(path, fs::Permissions::from_mode(owner.mode))
    }

    fn names(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(path)?;
        let names = entries.map(|entry| Ok(PathBuf::from(entry?.file_name())));
        let mut names = names.collect::<io::Result<Vec<PathBuf>>>()?;
        names.sort();
        Ok(names)
    }
}
