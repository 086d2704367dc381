//! Packed archives of a backup, one after the other, unpacked as they are read and kept nowhere.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::packing::{ArchiveCompression, BEHIND_END_MAX, endless, not_to_its_end};
use super::stream::Archives;
use super::{open_file, parts_beside, stem_of};
use crate::{Result, SourceError, SourceErrorKind};

/// The packed archives of a backup, unpacked one after the other.
pub struct PackedArchives {
    /// Paths with what their names are below, the next one last.
    left: Vec<(PathBuf, String)>,
    at_hand: Option<(String, Box<dyn Read + Send>)>,
    is_packed: bool,
}

impl PackedArchives {
    /// The archive and those beside it. Nothing where the archive itself is not packed, so that it
    /// can be read in place: beside an archive packed with LZ4 or zstd, `pg_basebackup` leaves
    /// `pg_wal.tar` plain.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let mut left = vec![(path.to_owned(), String::new())];
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if stem_of(&name) == Some("base")
            && let Some(folder) = path.parent()
        {
            left.extend(parts_beside(folder)?);
        }
        for (number, (path, _)) in left.iter().enumerate() {
            match ArchiveCompression::of_file(path) {
                Ok(None) => return Ok(None),
                Ok(Some(ArchiveCompression::Plain)) if number == 0 => return Ok(None),
                Ok(Some(_)) => {}
                Err(error) => return Err(SourceError::from_io(&path.to_string_lossy(), &error)),
            }
        }
        left.reverse();
        Ok(Some(PackedArchives {
            left,
            at_hand: None,
            is_packed: false,
        }))
    }
}

impl Archives for PackedArchives {
    fn next_archive(&mut self) -> Result<Option<String>> {
        let Some((path, below)) = self.left.pop() else {
            return Ok(None);
        };
        let shown = path.to_string_lossy().into_owned();
        let opened = open_file(&path).and_then(|file| {
            let packing = ArchiveCompression::of(&file)?.unwrap_or(ArchiveCompression::Plain);
            Ok((packing, packing.unpack(file)?))
        });
        let opened = opened.map_err(|error| SourceError::from_io(&shown, &error));
        let (packing, reader) = opened?;
        self.is_packed = packing != ArchiveCompression::Plain;
        self.at_hand = Some((shown, reader));
        Ok(Some(below))
    }

    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let Some((shown, reader)) = &mut self.at_hand else {
            return Ok(0);
        };
        loop {
            match reader.read(buf) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let why = format!("it cannot be decompressed any further: {error}");
                    return Err(SourceError::new(shown.as_str(), SourceErrorKind::Io, why));
                }
                Ok(count) => return Ok(count),
            }
        }
    }

    fn finish(&mut self) -> Result<Option<String>> {
        // Nothing at the end of a plain one says anything about it.
        let Some((_, reader)) = self.at_hand.as_mut().filter(|_| self.is_packed) else {
            return Ok(None);
        };
        let mut rest = reader.take(BEHIND_END_MAX + 1);
        Ok(match std::io::copy(&mut rest, &mut std::io::sink()) {
            Ok(count) if count > BEHIND_END_MAX => Some(endless()),
            Ok(_) => None,
            Err(error) => Some(not_to_its_end(error)),
        })
    }
}
