//! An archive as a tape that only runs forward: in place where it is not packed, else unpacked into a nameless file on
//! the way, so that its members can be read at any place afterwards.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::fstatvfs;

/// Bytes that are unpacked at once.
const STEP: usize = 256 << 10;

/// The disk is asked for its free space after so many unpacked bytes.
pub(crate) const ASK_AFTER: u64 = 64 << 20;

/// The part of a disk that is left to others: a 32nd.
const LEFT_TO_OTHERS: u64 = 32;

/// Told how many bytes more were unpacked; may stop it.
pub type Step<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// See the module.
pub(crate) struct Tape {
    packed: Option<Box<dyn Read + Send>>,
    /// The archive itself, or what was unpacked of it.
    file: File,
    at: u64,
    /// Bytes unpacked so far, or of the whole file.
    end: u64,
    unasked: u64,
    buffer: Vec<u8>,
}

/// Why the tape cannot go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What is packed cannot be unpacked any further, or the file cannot be read.
    Broken(io::Error),
    /// There is no place for what comes out.
    NoRoom(String),
    /// Somebody wants it to end.
    Asked,
}

impl Tape {
    /// Over a file that is read in place.
    pub(crate) fn in_place(file: File) -> io::Result<Self> {
        let end = file.metadata()?.len();
        Ok(Tape {
            packed: None,
            file,
            at: 0,
            end,
            unasked: 0,
            buffer: Vec::new(),
        })
    }

    /// Over what comes out of `packed`, kept in a nameless file in `folder`.
    pub(crate) fn unpacked(packed: Box<dyn Read + Send>, folder: &Path) -> io::Result<Self> {
        Ok(Tape {
            packed: Some(packed),
            file: pgclinic_spill::nameless_file(folder)?,
            at: 0,
            end: 0,
            unasked: 0,
            buffer: vec![0; STEP],
        })
    }

    /// Where it stands.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Bytes that are there up to now.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The file in which all bytes can be read.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// The next bytes; fewer only at the end.
    pub(crate) fn read(&mut self, buf: &mut [u8], step: Step<'_>) -> Result<usize, Stop> {
        let wanted = self.at.saturating_add(buf.len() as u64);
        self.unpack_to(wanted, step)?;
        let count = self.end.min(wanted).saturating_sub(self.at);
        let count = usize::try_from(count).unwrap_or(0);
        let room = buf.get_mut(..count).unwrap_or_default();
        self.file
            .read_exact_at(room, self.at)
            .map_err(Stop::Broken)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }

    /// Goes to a place further on; says whether it lies on the tape.
    pub(crate) fn skip_to(&mut self, to: u64, step: Step<'_>) -> Result<bool, Stop> {
        self.unpack_to(to, step)?;
        self.at = to.min(self.end);
        Ok(self.end >= to)
    }

    /// Unpacks what is left and keeps nothing of it, so that checksums at the end are met; says whether the end came within so
    /// many bytes.
    pub(crate) fn drain(&mut self, bytes_max: u64, step: Step<'_>) -> Result<bool, Stop> {
        let Some(packed) = &mut self.packed else {
            return Ok(true);
        };
        let mut passed = 0u64;
        loop {
            let count = match packed.read(&mut self.buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => count as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stop::Broken(error)),
            };
            passed = passed.saturating_add(count);
            if passed > bytes_max {
                return Ok(false);
            }
            if step(count).is_break() {
                return Err(Stop::Asked);
            }
        }
    }

    fn unpack_to(&mut self, to: u64, step: Step<'_>) -> Result<(), Stop> {
        let Some(packed) = &mut self.packed else {
            return Ok(());
        };
        while self.end < to {
            let count = match packed.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stop::Broken(error)),
            };
            let bytes = self.buffer.get(..count).unwrap_or_default();
            self.file
                .write_all_at(bytes, self.end)
                .map_err(|error| Stop::NoRoom(error.to_string()))?;
            self.end = self.end.saturating_add(count as u64);
            self.unasked = self.unasked.saturating_add(count as u64);
            if self.unasked >= ASK_AFTER {
                self.unasked = 0;
                leave_room(&self.file).map_err(Stop::NoRoom)?;
            }
            if step(count as u64).is_break() {
                return Err(Stop::Asked);
            }
        }
        Ok(())
    }
}

/// An archive may grow without end when it is unpacked; the disk must not be filled by it.
pub(crate) fn leave_room(file: &File) -> Result<(), String> {
    let Ok(disk) = fstatvfs(file) else {
        return Ok(());
    };
    if disk.f_bavail >= disk.f_blocks / LEFT_TO_OTHERS {
        return Ok(());
    }
    let free = disk.f_bavail.saturating_mul(disk.f_frsize) >> 20;
    Err(format!("only {free} MiB are left on that disk"))
}
