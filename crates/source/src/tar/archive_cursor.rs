//! An archive as a tape that only runs forward: in place where it is not packed, else unpacked into
//! a store on the way, so that its members can be read at any place afterwards.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use super::store::BlockStore;

/// Bytes that are unpacked at once.
const STEP: usize = 256 << 10;

/// Told how many bytes more were unpacked; may stop it.
pub type Step<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// An archive that is read once from its beginning to its end.
pub(crate) struct ArchiveCursor<'a> {
    origin: Origin<'a>,
    at: u64,
    /// Bytes unpacked so far, or of the whole file.
    end: u64,
}

/// Where its bytes come from.
enum Origin<'a> {
    InPlace(&'a File),
    Unpacked(Unpacking<'a>),
}

/// What comes out of an archive and goes into the store.
struct Unpacking<'a> {
    packed: Box<dyn Read + Send>,
    store: &'a mut BlockStore,
    /// Where the archive begins in the store.
    begin: u64,
    buffer: Vec<u8>,
    /// Bytes in the buffer: the last ones that were stored.
    fresh: usize,
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

impl<'a> ArchiveCursor<'a> {
    /// Over a file that is read in place.
    pub(crate) fn in_place(file: &'a File) -> io::Result<Self> {
        let end = file.metadata()?.len();
        Ok(ArchiveCursor {
            origin: Origin::InPlace(file),
            at: 0,
            end,
        })
    }

    /// Over what comes out of `packed`, kept behind what is in the store.
    pub(crate) fn unpacked(packed: Box<dyn Read + Send>, store: &'a mut BlockStore) -> Self {
        let begin = store.len();
        ArchiveCursor {
            origin: Origin::Unpacked(Unpacking {
                packed,
                store,
                begin,
                buffer: vec![0; STEP],
                fresh: 0,
            }),
            at: 0,
            end: 0,
        }
    }

    /// Where it stands.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Bytes that are there up to now.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The next bytes; fewer only at the end.
    pub(crate) fn read(&mut self, buf: &mut [u8], step: Step<'_>) -> Result<usize, Stop> {
        let wanted = self.at.saturating_add(buf.len() as u64);
        self.unpack_to(wanted, step)?;
        let count = self.end.min(wanted).saturating_sub(self.at);
        let count = usize::try_from(count).unwrap_or(0);
        let room = buf.get_mut(..count).unwrap_or_default();
        let read = match &self.origin {
            Origin::InPlace(file) => file.read_exact_at(room, self.at),
            Origin::Unpacked(unpacking) => unpacking.read_back(self.at, self.end, room),
        };
        read.map_err(Stop::Broken)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }

    /// Goes to a place further on; says whether it lies on the tape.
    pub(crate) fn skip_to(&mut self, to: u64, step: Step<'_>) -> Result<bool, Stop> {
        self.unpack_to(to, step)?;
        self.at = to.min(self.end);
        Ok(self.end >= to)
    }

    /// Unpacks what is left and keeps nothing of it, so that checksums at the end are met; says
    /// whether the end came within so many bytes.
    pub(crate) fn drain(&mut self, bytes_max: u64, step: Step<'_>) -> Result<bool, Stop> {
        let Origin::Unpacked(unpacking) = &mut self.origin else {
            return Ok(true);
        };
        let mut passed = 0u64;
        loop {
            let count = match unpacking.unpack()? {
                0 => return Ok(true),
                count => count as u64,
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
        let Origin::Unpacked(unpacking) = &mut self.origin else {
            return Ok(());
        };
        while self.end < to {
            let count = match unpacking.store_more()? {
                0 => return Ok(()),
                count => count as u64,
            };
            self.end = self.end.saturating_add(count);
            if step(count).is_break() {
                return Err(Stop::Asked);
            }
        }
        Ok(())
    }
}

impl Unpacking<'_> {
    /// Unpacks into the buffer; how many bytes came, 0 at the end.
    fn unpack(&mut self) -> Result<usize, Stop> {
        self.fresh = 0;
        loop {
            match self.packed.read(&mut self.buffer) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Broken(error)),
            }
        }
    }

    /// Stores the next bytes; how many came.
    fn store_more(&mut self) -> Result<usize, Stop> {
        let count = self.unpack()?;
        let bytes = self.buffer.get(..count).unwrap_or_default();
        self.store.append(bytes).map_err(Stop::NoRoom)?;
        self.fresh = count;
        Ok(count)
    }

    /// Fills `room` from a place in front of `end`, up to which the archive is stored. What came
    /// last, as heads of members mostly have, need not be unpacked again.
    fn read_back(&self, at: u64, end: u64, room: &mut [u8]) -> io::Result<()> {
        let stale = end.saturating_sub(self.fresh as u64);
        let skip = at
            .checked_sub(stale)
            .and_then(|at| usize::try_from(at).ok());
        let fresh = skip.and_then(|skip| self.buffer.get(skip..skip.checked_add(room.len())?));
        if let Some(bytes) = fresh {
            room.copy_from_slice(bytes);
            return Ok(());
        }
        let count = self.store.read_at(self.begin.saturating_add(at), room)?;
        assert!(count == room.len(), "what was stored is there");
        Ok(())
    }
}
