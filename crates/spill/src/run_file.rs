//! Sorted runs one after another in one temporary file that has no name.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::record::{self, Record};

/// Where a run lies in its file, in bytes, half-open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    start: u64,
    end: u64,
}

/// The file and the runs written so far. A run that could not be written whole leaves no trace: the
/// next one overwrites it.
pub(crate) struct RunFile {
    file: Arc<File>,
    folder: PathBuf,
    pub(crate) runs: Vec<Run>,
}

impl RunFile {
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let file =
            tempfile::tempfile_in(folder).map_err(|error| explained(&error, "create", folder))?;
        Ok(Self {
            file: Arc::new(file),
            folder: folder.to_owned(),
            runs: Vec::new(),
        })
    }

    /// Appends a run of records that come in order, through a buffer of so many bytes.
    pub(crate) fn append<'r>(
        &mut self,
        buffer: usize,
        records: impl Iterator<Item = io::Result<(&'r [u8], &'r [u8])>>,
    ) -> io::Result<()> {
        self.append_with(buffer, |writer| {
            records
                .into_iter()
                .try_for_each(|one| one.and_then(|(k, v)| writer.put(k, v)))
        })
    }

    /// Appends a run that `fill` writes record by record.
    pub(crate) fn append_with(
        &mut self,
        buffer: usize,
        fill: impl FnOnce(&mut RunWriter<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.runs.last().map_or(0, |run| run.end);
        let section = Section {
            file: &self.file,
            at: start,
            end: u64::MAX,
        };
        let mut writer = RunWriter {
            out: BufWriter::with_capacity(buffer, section),
            folder: &self.folder,
        };
        let filled = fill(&mut writer).and_then(|()| writer.finish());
        let end = writer.out.get_ref().at;
        // What could not be written must not be tried again when the writer goes away.
        let _ = writer.out.into_parts();
        filled?;
        self.runs.push(Run { start, end });
        Ok(())
    }

    /// Reads a run from its start, through a buffer of so many bytes.
    pub(crate) fn reader(&self, run: Run, buffer: usize) -> RunReader {
        let section = Section {
            file: Arc::clone(&self.file),
            at: run.start,
            end: run.end,
        };
        RunReader {
            records: BufReader::with_capacity(buffer, section),
        }
    }
}

/// Takes the records of one run, in order.
pub(crate) struct RunWriter<'f> {
    out: BufWriter<Section<&'f Arc<File>>>,
    folder: &'f Path,
}

impl RunWriter<'_> {
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let lengths = record::lengths(key, value)?;
        let written = [&lengths, key, value]
            .into_iter()
            .try_for_each(|part| self.out.write_all(part));
        written.map_err(|error| explained(&error, "write", self.folder))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out
            .flush()
            .map_err(|error| explained(&error, "write", self.folder))
    }
}

/// The records of one run.
pub(crate) struct RunReader {
    records: BufReader<Section<Arc<File>>>,
}

impl RunReader {
    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        let section = self.records.get_ref();
        if section.at >= section.end && self.records.buffer().is_empty() {
            return Ok(None);
        }
        let read = record::read(&mut self.records);
        read.map(Some).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot read back sorted data: {error}"),
            )
        })
    }
}

/// A part of a file with a position of its own, so that many can share one file.
struct Section<F> {
    file: F,
    at: u64,
    end: u64,
}

impl Read for Section<Arc<File>> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = rest.min(buf.len());
        let count = self
            .file
            .read_at(buf.get_mut(..wanted).unwrap_or_default(), self.at)?;
        self.at = self.at.saturating_add(u64::try_from(count).unwrap_or(0));
        Ok(count)
    }
}

impl Write for Section<&Arc<File>> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(buf, self.at)?;
        self.at = self.at.saturating_add(u64::try_from(count).unwrap_or(0));
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn explained(error: &io::Error, what: &str, folder: &Path) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free space there, name another directory for temporary files or allow more memory"
        }
        _ => "",
    };
    io::Error::new(
        error.kind(),
        format!(
            "cannot {what} a temporary file in {}: {error}{hint}",
            folder.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_with_what_to_do() -> io::Result<()> {
        let full = Arc::new(File::options().write(true).open("/dev/full")?);
        let mut runs = RunFile {
            file: full,
            folder: "/var/tmp".into(),
            runs: Vec::new(),
        };
        let said = runs
            .append_with(16, |writer| writer.put(b"key", b"value"))
            .map_err(|error| error.to_string());
        let expected = "cannot write a temporary file in /var/tmp: No space left on device (os error 28); \
                        free space there, name another directory for temporary files or allow more memory";
        assert_eq!(said, Err(expected.to_owned()));
        assert!(runs.runs.is_empty());
        Ok(())
    }
}
