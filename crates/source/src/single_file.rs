//! One relation file on its own, with what belongs to it beside it.

use std::path::Path;

use crate::{
    DataDirectory, Entry, EntryKind, Range, Result, Source, SourceError, SourceErrorKind,
    SourceSpec, path,
};

/// A relation file in folder `""` under its own name, with its further segments (`16384.1`), its
/// forks (`16384_vm`) and their segments, as far as they lie beside it. Other files of that folder
/// do not exist here.
pub struct SingleFile {
    spec: SourceSpec,
    name: String,
    beside: DataDirectory,
}

impl SingleFile {
    /// Takes the file at `path`, which must be a regular file with a UTF-8 name.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.to_string_lossy().into_owned();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| {
                let why = "the path does not end in a file name that is UTF-8";
                SourceError::new(&shown, SourceErrorKind::Refused, why)
            })?;
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let beside = DataDirectory::open(folder.unwrap_or(Path::new(".")))?;
        // The error names the path as it was given, not only its last part.
        beside.len(name).map_err(|error| SourceError {
            path: shown,
            ..error
        })?;
        let spec = SourceSpec::SingleFile {
            path: path.to_owned(),
        };
        Ok(Self {
            spec,
            name: name.to_owned(),
            beside,
        })
    }

    /// The name under which the file is presented.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn own<'a>(&self, path: &'a str) -> Result<&'a str> {
        path::check(path)?;
        match path {
            "" => Err(SourceError::not_regular(path, "a directory")),
            _ if belongs(&self.name, path) => Ok(path),
            _ => Err(SourceError::not_found(path)),
        }
    }
}

/// Whether `name` is `main`, one of its forks, or a further segment of either.
fn belongs(main: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(main) else {
        return false;
    };
    let segment = ["_fsm", "_vm", "_init"]
        .iter()
        .find_map(|fork| rest.strip_prefix(fork))
        .unwrap_or(rest);
    match segment.strip_prefix('.') {
        Some(number) => !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()),
        None => segment.is_empty(),
    }
}

impl Source for SingleFile {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        if !folder.is_empty() {
            return match self.len(folder) {
                Ok(_) => Err(SourceError::not_folder(folder)),
                Err(error) => Err(error),
            };
        }
        let mut entries = self.beside.list("")?;
        entries.retain(|entry| entry.kind != EntryKind::Folder && belongs(&self.name, &entry.name));
        Ok(entries)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.beside.len(self.own(path)?)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.beside.read_at(self.own(path)?, offset, buf)
    }

    fn prefetch(&self, ranges: &[Range]) {
        self.beside.prefetch(ranges);
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.beside.unreadable()
    }
}

#[cfg(test)]
mod tests {
    use super::belongs;

    #[test]
    fn only_segments_and_forks_belong() {
        for name in [
            "16384",
            "16384.1",
            "16384.12",
            "16384_vm",
            "16384_fsm.1",
            "16384_init",
        ] {
            assert!(belongs("16384", name), "{name}");
        }
        for name in [
            "163840",
            "16384.",
            "16384.1a",
            "16384_vmx",
            "16384_",
            "16385",
            "1638",
        ] {
            assert!(!belongs("16384", name), "{name}");
        }
    }
}
