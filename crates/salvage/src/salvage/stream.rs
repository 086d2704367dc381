//! One table's rows as a stream: they go to whoever takes them as they come, in the order in which
//! they would stand in a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use pgclinic_spill::nameless_file;

use super::error::SalvageError;

/// Parts that may wait to be taken.
const WAITING_MAX: usize = 2;
/// Bytes of a part of a file that was held back.
const PART_BYTES: usize = 1 << 20;

/// Where the parts go. They end when every copy of this is dropped.
#[derive(Clone, Debug)]
pub struct Stream {
    parts: SyncSender<Vec<u8>>,
}

impl Stream {
    /// A stream, and what gives its parts. Dropping that ends the salvage with an error.
    pub fn new() -> (Self, Receiver<Vec<u8>>) {
        let (parts, taken) = sync_channel(WAITING_MAX);
        (Stream { parts }, taken)
    }

    fn send(&self, part: Vec<u8>) -> io::Result<()> {
        let sent = self.parts.send(part);
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// The table's file, in the place of one in a folder.
pub(super) struct StreamFile {
    stream: Stream,
    /// Where the file is held until it is whole: one of columns may have to be written anew.
    held: Option<File>,
    bytes: u64,
}

fn failed(source: io::Error) -> SalvageError {
    SalvageError::destination(Path::new("-"), "write", source)
}

impl StreamFile {
    pub(super) fn begin(stream: &Stream) -> Self {
        StreamFile {
            stream: stream.clone(),
            held: None,
            bytes: 0,
        }
    }

    /// One of which nothing is seen until it is whole.
    pub(super) fn held_in(stream: &Stream, folder: &Path) -> Result<Self, SalvageError> {
        let held = nameless_file(folder);
        let held =
            held.map_err(|source| SalvageError::destination(folder, "make a file in", source))?;
        Ok(StreamFile {
            held: Some(held),
            ..StreamFile::begin(stream)
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SalvageError> {
        self.bytes += bytes.len() as u64;
        let written = match &mut self.held {
            Some(held) => held.write_all(bytes),
            None if bytes.is_empty() => Ok(()),
            None => self.stream.send(bytes.to_vec()),
        };
        written.map_err(failed)
    }

    /// Says how many bytes there are.
    pub(super) fn finish(self) -> Result<u64, SalvageError> {
        let StreamFile {
            stream,
            held,
            bytes,
        } = self;
        if let Some(held) = held {
            sent(held, &stream).map_err(failed)?;
        }
        Ok(bytes)
    }
}

fn sent(mut held: File, stream: &Stream) -> io::Result<()> {
    held.seek(SeekFrom::Start(0))?;
    loop {
        let mut part = Vec::new();
        let limit = u64::try_from(PART_BYTES).unwrap_or(u64::MAX);
        let count = Read::by_ref(&mut held).take(limit).read_to_end(&mut part)?;
        if count == 0 {
            return Ok(());
        }
        stream.send(part)?;
    }
}
