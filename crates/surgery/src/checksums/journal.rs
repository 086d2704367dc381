//! The journal of a change of data checksums, on disk before the first byte changes.
//!
//! ```text
//! JOURNAL/checksums.json   schema pgclinic.checksums-journal/1; state planned → applied → undone
//!         checksums.bin    the record: old and new checksum of each page that changes
//! ```

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pgclinic_model::document::Tool;
use pgclinic_model::plan::base64_bytes;
use serde::{Deserialize, Serialize};

use super::control::StoppedControl;
use super::record::{RecordReader, RecordWriter};
use super::survey::PageOfFork;
use crate::error::{Error, Result};
use crate::journal::State;
use crate::storage::{Disk, Storage};

/// Name of the journal in its directory.
const CHECKSUMS_JOURNAL_FILE: &str = "checksums.json";
const NEXT_FILE: &str = "checksums.json.next";
const RECORD_FILE: &str = "checksums.bin";
const SCHEMA: &str = "pgclinic.checksums-journal/1";
/// Two control files in base64, and the pages that were damaged before.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// A page that was damaged before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownPage {
    /// Which.
    pub page: PageOfFork,
    /// It gets no checksum.
    pub is_left: bool,
}

/// The document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChecksumsJournal {
    pub(super) schema: String,
    pub(super) tool: Tool,
    pub(super) system_identifier: String,
    /// The data directory, links resolved.
    pub(super) pgdata: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<String>,
    pub(super) state: State,
    pub(super) block_size: u32,
    pub(super) segment_blocks: u32,
    #[serde(with = "base64_bytes")]
    pub(super) control_before: Vec<u8>,
    #[serde(with = "base64_bytes")]
    pub(super) control_after: Vec<u8>,
    /// Pages that the structure check called damaged, and what becomes of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) known: Vec<KnownPage>,
    /// Pages in the record.
    pub(super) pages: u64,
    pub(super) record_bytes: u64,
    pub(super) record_blake3: String,
}

impl ChecksumsJournal {
    /// Of a cluster whose control file will be `control_after`; nothing is recorded yet.
    pub(super) fn new(pgdata: &Path, control: &StoppedControl, control_after: Vec<u8>) -> Self {
        let file = &control.file;
        ChecksumsJournal {
            schema: SCHEMA.into(),
            tool: Tool::this(),
            system_identifier: file.system_identifier.to_string(),
            pgdata: pgdata.to_owned(),
            time: None,
            state: State::Planned,
            block_size: file.blcksz,
            segment_blocks: file.relseg_size,
            control_before: control.bytes.clone(),
            control_after,
            known: Vec::new(),
            pages: 0,
            record_bytes: 0,
            record_blake3: String::new(),
        }
    }

    /// The data directory that it is about.
    pub fn pgdata(&self) -> &Path {
        &self.pgdata
    }
}

/// The directory of one journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChecksumsJournalDirectory {
    path: PathBuf,
}

impl ChecksumsJournalDirectory {
    /// A directory, which need not be there yet, or the journal file in it.
    pub fn new(path: &Path) -> Self {
        let directory = match path.file_name() {
            Some(name) if name == CHECKSUMS_JOURNAL_FILE => path.parent().unwrap_or(path),
            _ => path,
        };
        ChecksumsJournalDirectory {
            path: directory.to_owned(),
        }
    }

    /// Whether it holds a journal of this kind.
    pub fn is_there(&self) -> bool {
        self.file().is_file()
    }

    /// The journal file.
    pub fn file(&self) -> PathBuf {
        self.path.join(CHECKSUMS_JOURNAL_FILE)
    }

    fn record_file(&self) -> PathBuf {
        self.path.join(RECORD_FILE)
    }

    pub(super) fn unusable(&self, why: impl Into<String>) -> Error {
        Error::Journal {
            path: self.file(),
            why: why.into(),
        }
    }

    /// Makes the directory; one that holds anything is somebody else's, or of a run that ended
    /// before it wrote anything else, whose record is begun again.
    pub(super) fn create(&self) -> Result<()> {
        if self.file().symlink_metadata().is_ok() {
            let why = "it is there already: --resume or --undo goes on with it, or name another directory";
            return Err(self.unusable(why));
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(Error::io("create the directory", &self.path))?;
        let strangers = fs::read_dir(&self.path).map_err(Error::io("list", &self.path))?;
        for entry in strangers {
            let name = entry.map_err(Error::io("list", &self.path))?.file_name();
            if name != RECORD_FILE && name != NEXT_FILE {
                return Err(self.unusable("the directory is not empty; name another one"));
            }
        }
        let parent = self.path.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        Disk.sync_folder(parent).map_err(Error::io("sync", parent))
    }

    /// Begins the record.
    pub(super) fn record(&self) -> Result<BufWriter<File>> {
        let path = self.record_file();
        let file = File::create(&path).map_err(Error::io("write", &path))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }

    /// Takes away what was begun and became no journal.
    pub(super) fn remove_record(&self) {
        let removed = fs::remove_file(self.record_file());
        // A directory that holds anything else stays.
        let _stays = removed.and_then(|()| fs::remove_dir(&self.path));
    }

    /// Ends the record and writes the journal; where one of them fails, as on a disk that is full,
    /// nothing of either stays.
    pub(super) fn begin(
        &self,
        writer: RecordWriter<BufWriter<File>>,
        journal: &mut ChecksumsJournal,
    ) -> Result<()> {
        let begun = self
            .close_record(writer, journal)
            .and_then(|()| self.write(journal));
        begun.inspect_err(|_| {
            let _left = fs::remove_file(self.path.join(NEXT_FILE));
            self.remove_record();
        })
    }

    /// Ends the record and makes it lasting; the journal says what it holds.
    fn close_record(
        &self,
        writer: RecordWriter<BufWriter<File>>,
        journal: &mut ChecksumsJournal,
    ) -> Result<()> {
        let path = self.record_file();
        let failed = Error::io("write", &path);
        let closed = writer.finish().and_then(|(out, len, hash)| {
            out.into_inner()?.sync_all()?;
            Ok((len, hash))
        });
        (journal.record_bytes, journal.record_blake3) = closed.map_err(failed)?;
        Ok(())
    }

    /// Writes the document whole, or leaves the one that is there.
    pub(super) fn write(&self, journal: &ChecksumsJournal) -> Result<()> {
        let text =
            serde_json::to_vec_pretty(journal).map_err(|error| self.unusable(error.to_string()))?;
        let (next, file) = (self.path.join(NEXT_FILE), self.file());
        Disk.create(&next, None)
            .and_then(|()| Disk.write_at(&next, 0, &text))
            .and_then(|()| Disk.sync(&next))
            .and_then(|()| Disk.rename(&next, &file))
            .and_then(|()| Disk.sync_folder(&self.path))
            .map_err(Error::io("write", &file))
    }

    /// Reads the document.
    ///
    /// # Errors
    /// When it is not there, damaged, or of another schema.
    pub fn read(&self) -> Result<ChecksumsJournal> {
        let file = self.file();
        let opened = File::open(&file).map_err(Error::io("open", &file))?;
        let mut bytes = Vec::new();
        let mut opened = opened.take(JOURNAL_BYTES_MAX);
        opened
            .read_to_end(&mut bytes)
            .map_err(Error::io("read", &file))?;
        let journal: ChecksumsJournal = serde_json::from_slice(&bytes)
            .map_err(|error| self.unusable(format!("it is damaged ({error})")))?;
        let control = journal.control_before.len() == journal.control_after.len();
        match journal.schema.as_str() {
            SCHEMA if control => Ok(journal),
            SCHEMA => Err(self.unusable("its two control files differ in length")),
            other => Err(self.unusable(format!("its schema is {other}, not {SCHEMA}"))),
        }
    }

    /// The record, which is whole: its length and hash are those of the journal.
    pub(super) fn sections(
        &self,
        journal: &ChecksumsJournal,
    ) -> Result<RecordReader<BufReader<File>>> {
        let path = self.record_file();
        let open = || File::open(&path).map_err(Error::io("open", &path));
        let mut hasher = blake3::Hasher::new();
        hasher
            .update_reader(open()?)
            .map_err(Error::io("read", &path))?;
        let is_whole = hasher.count() == journal.record_bytes
            && hasher.finalize().to_hex().as_str() == journal.record_blake3;
        if !is_whole {
            return Err(self.unusable(format!("its {RECORD_FILE} is missing bytes or damaged")));
        }
        Ok(RecordReader::new(BufReader::with_capacity(
            1 << 20,
            open()?,
        )))
    }

    /// The record could not be read.
    pub(super) fn unreadable(&self, error: io::Error) -> Error {
        Error::io("read", &self.record_file())(error)
    }
}
