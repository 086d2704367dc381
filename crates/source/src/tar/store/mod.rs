//! What was unpacked, kept in less room than it has, and still read at any place.
//!
//! ```text
//! in    ├────── 64 KiB ──────┼────── 64 KiB ──────┼────── 64 KiB ──────┼── the rest ──┤
//! file  ├ LZ4 ┤              ├ as it is ──────────┤ (zeros: nothing)   in memory
//! ```
//!
//! Bytes are appended and never changed. Each full block is packed alone, so that a read unpacks
//! the blocks that it touches and nothing else; one that hardly shrinks is kept as it is, one of
//! zeros takes nothing. The index lies in memory. Pages of a cluster shrink to a fifth or a third,
//! seldom to no less than two thirds.

mod cache;
mod index;

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use rustix::fs::{Advice, fadvise};

use super::disk_reserve::DiskReserve;
use cache::{Cache, copy_from};
use index::{Form, Index};

/// Bytes of a block, unpacked: as far as LZ4 looks back, and eight pages of a cluster.
const BLOCK: usize = 64 << 10;

/// A block that is not at least a sixteenth smaller when it is packed is quicker to read as it is.
const PACKED_MAX: usize = BLOCK - BLOCK / 16;

/// A block that takes less counts as if it was kept as it is: bytes that shrink to nothing would
/// come without end. Pages with something in them take more.
const COUNTED_MIN: u64 = BLOCK as u64 / 32;

/// Compressed blocks that are read at any place. Writing needs it alone, reading is for any number
/// of threads.
pub(crate) struct BlockStore {
    /// Without a name, so that it is gone when it is closed.
    file: File,
    index: Index,
    /// The last block, which is not full.
    open: Vec<u8>,
    room: DiskReserve,
    cache: Cache,
    table: CompressTable,
    packed: Vec<u8>,
}

impl BlockStore {
    /// An empty one, with a file in `folder`, which is refused where it lies inside a cluster.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        Ok(BlockStore {
            file: pgclinic_spill::nameless_file(folder)?,
            index: Index::default(),
            open: Vec::with_capacity(BLOCK),
            room: DiskReserve::default(),
            cache: Cache::new(),
            table: CompressTable::large(),
            packed: vec![0; get_maximum_output_size(BLOCK)],
        })
    }

    /// Bytes that were appended.
    pub(crate) fn len(&self) -> u64 {
        let full = self.index.blocks().saturating_mul(BLOCK as u64);
        full.saturating_add(self.open.len() as u64)
    }

    /// Bytes that they take: those of the file, and of the block that is not full.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.index.end().saturating_add(self.open.len() as u64)
    }

    /// Adds bytes at the end. Why there is no room for them, in words.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let count = BLOCK.saturating_sub(self.open.len()).min(bytes.len());
            let (part, rest) = bytes.split_at(count);
            self.open.extend_from_slice(part);
            bytes = rest;
            if self.open.len() >= BLOCK {
                self.keep_block()?;
            }
        }
        Ok(())
    }

    /// Writes the block that is full now.
    fn keep_block(&mut self) -> Result<(), String> {
        let (form, bytes) = pack(&self.open, &mut self.table, &mut self.packed);
        self.file
            .write_all_at(bytes, self.index.end())
            .map_err(|error| error.to_string())?;
        self.index.push(form);
        self.open.clear();
        self.room.take(&self.file, form.bytes(), counted(form))
    }

    /// Fills `buf` from `offset`; fewer bytes only at the end.
    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let there = self.len().saturating_sub(offset);
        let count = usize::try_from(there).unwrap_or(usize::MAX).min(buf.len());
        let (mut at, mut rest) = (offset, buf.get_mut(..count).unwrap_or_default());
        let mut packed = Vec::new();
        while !rest.is_empty() {
            let (block, skip) = place(at);
            let wanted = BLOCK.saturating_sub(skip).min(rest.len());
            let (room, behind) = std::mem::take(&mut rest).split_at_mut(wanted);
            self.read_block(block, skip, room, &mut packed)?;
            at = at.saturating_add(wanted as u64);
            rest = behind;
        }
        Ok(count)
    }

    /// Fills `room` from byte `skip` of a block, through memory for what is packed.
    fn read_block(
        &self,
        block: u64,
        skip: usize,
        room: &mut [u8],
        packed: &mut Vec<u8>,
    ) -> io::Result<()> {
        let Some((at, form)) = self.index.find(block) else {
            let was_there = copy_from(&self.open, skip, room);
            assert!(was_there, "nothing past the end is read");
            return Ok(());
        };
        match form {
            Form::Zeros => room.fill(0),
            Form::AsItIs => self.read_file(at.saturating_add(skip as u64), room)?,
            Form::Packed(_) if self.cache.copy(block, skip, room) => {}
            Form::Packed(len) => {
                packed.resize(usize::from(len), 0);
                self.read_file(at, packed)?;
                if room.len() == BLOCK {
                    // Who reads whole blocks seldom comes again.
                    return unpack(packed, room);
                }
                let mut whole = vec![0; BLOCK];
                unpack(packed, &mut whole)?;
                let was_there = copy_from(&whole, skip, room);
                assert!(was_there, "a block is read no further than to its end");
                self.cache.keep(block, whole);
            }
        }
        Ok(())
    }

    fn read_file(&self, at: u64, room: &mut [u8]) -> io::Result<()> {
        let read = self.file.read_exact_at(room, at);
        read.map_err(|error| not_given_back(&error.to_string()))
    }

    /// Says that these bytes are read soon.
    pub(crate) fn prefetch(&self, offset: u64, len: u64) {
        let Some(last) = len.checked_sub(1).map(|last| offset.saturating_add(last)) else {
            return;
        };
        let Some((begin, _)) = self.index.find(place(offset).0) else {
            return;
        };
        let end = self.index.find(place(last).0);
        let end = end.map_or(self.index.end(), |(at, form)| {
            at.saturating_add(form.bytes())
        });
        if let Some(len) = NonZeroU64::new(end.saturating_sub(begin)) {
            // Advice: it is read as well without.
            let _ = fadvise(&self.file, begin, Some(len), Advice::WillNeed);
        }
    }
}

/// The block in which a byte lies, and the bytes in front of it there.
fn place(offset: u64) -> (u64, usize) {
    let skip = offset % BLOCK as u64;
    (
        offset / BLOCK as u64,
        usize::try_from(skip).unwrap_or(usize::MAX),
    )
}

/// How a block is kept, and the bytes that are written of it; `memory` is as large as the worst
/// case.
fn pack<'a>(block: &'a [u8], table: &mut CompressTable, memory: &'a mut [u8]) -> (Form, &'a [u8]) {
    if is_zeros(block) {
        return (Form::Zeros, &[]);
    }
    let len = compress_into_with_table(block, memory, table);
    let memory: &[u8] = memory;
    let len = len.ok().filter(|len| *len <= PACKED_MAX);
    let form = len.and_then(|len| u16::try_from(len).ok());
    match (form, len.and_then(|len| memory.get(..len))) {
        (Some(len), Some(bytes)) => (Form::Packed(len), bytes),
        _ => (Form::AsItIs, block),
    }
}

fn is_zeros(block: &[u8]) -> bool {
    let (pieces, rest) = block.as_chunks::<64>();
    pieces.iter().all(|piece| *piece == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}

/// Bytes of room that a block counts.
fn counted(form: Form) -> u64 {
    match form.bytes() {
        0..COUNTED_MIN => BLOCK as u64,
        bytes => bytes,
    }
}

/// Fills `room` with exactly what was packed.
fn unpack(packed: &[u8], room: &mut [u8]) -> io::Result<()> {
    match decompress_into(packed, room) {
        Ok(len) if len == room.len() => Ok(()),
        Ok(len) => Err(not_given_back(&format!(
            "a block of {len} bytes where {} were",
            room.len()
        ))),
        Err(error) => Err(not_given_back(&error.to_string())),
    }
}

/// We packed it ourselves: the disk, or whoever wrote there, is to blame.
fn not_given_back(why: &str) -> io::Error {
    io::Error::other(format!(
        "the disk with the directory for temporary files does not give back what was decompressed there: {why}"
    ))
}

#[cfg(test)]
mod tests;
