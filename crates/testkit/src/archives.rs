//! Plain base backups put into archives, as `pg_basebackup --format=tar` would have given them,
//! whatever the major.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lz4_flex::frame::FrameEncoder;

/// What an archive is packed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Nothing.
    Plain,
    /// gzip.
    Gzip,
    /// LZ4 in frames.
    Lz4,
    /// zstd.
    Zstd,
}

impl Packing {
    /// All of them.
    pub const ALL: [Packing; 4] = [Packing::Plain, Packing::Gzip, Packing::Lz4, Packing::Zstd];

    /// The end of a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Packing::Plain => "tar",
            Packing::Gzip => "tar.gz",
            Packing::Lz4 => "tar.lz4",
            Packing::Zstd => "tar.zst",
        }
    }

    fn pack(self, mut from: impl Read, mut to: File) -> io::Result<()> {
        match self {
            Packing::Plain => io::copy(&mut from, &mut to).map(drop),
            Packing::Gzip => {
                let mut packed = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
                io::copy(&mut from, &mut packed)?;
                packed.finish().map(drop)
            }
            Packing::Lz4 => {
                let mut packed = FrameEncoder::new(to);
                io::copy(&mut from, &mut packed)?;
                packed.finish().map(drop).map_err(io::Error::other)
            }
            Packing::Zstd => zstd::stream::copy_encode(from, to, 1),
        }
    }
}

/// The files of a plain backup in `base.tar` or the like in a folder beside it, with its manifest;
/// gives the archive.
pub fn archived(backup: &Path, packing: Packing) -> PathBuf {
    let to = backup.with_extension(packing.ending());
    fs::create_dir(&to).expect("a directory");
    let archive = to.join(format!("base.{}", packing.ending()));
    let entries = fs::read_dir(backup).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let manifest = "backup_manifest";
    let mut names: Vec<_> = names.filter(|name| name != manifest).collect();
    names.sort();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(backup).args(["-cf", "-"]).args(names);
    let mut tar = tar.stdout(Stdio::piped()).spawn().expect("tar");
    let bytes = tar.stdout.take().expect("a pipe");
    let file = File::create(&archive).expect("a file");
    packing.pack(bytes, file).expect("an archive");
    assert!(tar.wait().expect("tar").success());
    if backup.join(manifest).exists() {
        fs::copy(backup.join(manifest), to.join(manifest)).expect("a manifest");
    }
    archive
}
