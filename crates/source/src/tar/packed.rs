//! Packed archives of a backup, one after the other, unpacked as they are read and kept nowhere.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::packing::Packing;
use super::stream::Archives;
use super::{open_file, parts_beside, stem_of};
use crate::{Result, SourceError, SourceErrorKind};

/// See the module.
pub struct PackedArchives {
    /// Paths with what their names are below, the next one last.
    left: Vec<(PathBuf, String)>,
    at_hand: Option<(String, Box<dyn Read + Send>)>,
}

impl PackedArchives {
    /// The archive and those beside it. Nothing where one of them is not packed: that one can be read in place.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let mut left = vec![(path.to_owned(), String::new())];
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if stem_of(&name) == Some("base")
            && let Some(folder) = path.parent()
        {
            left.extend(parts_beside(folder)?);
        }
        for (path, _) in &left {
            match Packing::of_file(path) {
                Ok(Some(Packing::Plain) | None) => return Ok(None),
                Ok(Some(_)) => {}
                Err(error) => return Err(SourceError::from_io(&path.to_string_lossy(), &error)),
            }
        }
        left.reverse();
        Ok(Some(PackedArchives {
            left,
            at_hand: None,
        }))
    }
}

impl Archives for PackedArchives {
    fn next_archive(&mut self) -> Result<Option<String>> {
        let Some((path, below)) = self.left.pop() else {
            return Ok(None);
        };
        let shown = path.to_string_lossy().into_owned();
        let packing = Packing::of_file(&path);
        let opened = packing.and_then(|packing| {
            let file = open_file(&path)?;
            packing.unwrap_or(Packing::Plain).unpack(file)
        });
        let reader = opened.map_err(|error| SourceError::from_io(&shown, &error))?;
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
                    let why = format!("it cannot be unpacked any further: {error}");
                    return Err(SourceError::new(shown.as_str(), SourceErrorKind::Io, why));
                }
                Ok(count) => return Ok(count),
            }
        }
    }
}
