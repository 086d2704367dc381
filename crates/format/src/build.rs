//! Pages and tuples made from parts, for tests and injuries.

use crate::checksum::page_checksum;
use crate::control_file;
use crate::heap_tuple::{HEADER_BYTES as TUPLE_HEADER_BYTES, HEAP_HASNULL};
use crate::line_pointer::{LinePointer, LpFlags};
use crate::page::{HEADER_BYTES, LAYOUT_VERSION};
use crate::types::{BlockNo, Lsn};

/// Overwrites the `u16` at `at`; nothing happens where the bytes end before.
pub fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    put_bytes(bytes, at, &value.to_le_bytes());
}

/// Overwrites the `u32` at `at`; nothing happens where the bytes end before.
pub fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put_bytes(bytes, at, &value.to_le_bytes());
}

/// Puts bytes at their place; nothing where they would end past the last byte.
pub fn put_bytes(bytes: &mut [u8], at: usize, value: &[u8]) {
    let slot = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()));
    if let Some(slot) = slot {
        slot.copy_from_slice(value);
    }
}

/// Makes a page's checksum true for `block`.
pub fn seal_page(page: &mut [u8], block: BlockNo) {
    let sum = page_checksum(page, block);
    put_u16(page, 8, sum);
}

/// The control file of a cluster of 18 with pages of this size, without data checksums, that was
/// shut down in good order.
pub fn sound_control_file(block_size: u32) -> Vec<u8> {
    let mut bytes = vec![0; control_file::FILE_BYTES];
    // Four chunks of a long value fill a page.
    let toast_chunk = ((block_size.saturating_sub(40) / 4) & !7).saturating_sub(36);
    let words = [
        (0, 77),
        (8, 1800),
        (12, 202_506_291),
        (16, 1),
        // The checkpoint, and its redo.
        (32, 0x0100_0028),
        (40, 0x0100_0028),
        (48, 1),
        (52, 1),
        (64, 1000),
        (72, 20_000),
        (76, 5),
        (84, 700),
        (92, 1),
        (204, 8),
        (216, block_size),
        (220, (1u32 << 30).checked_div(block_size).unwrap_or(0)),
        (224, block_size),
        (228, 16 << 20),
        (232, 64),
        (236, 32),
        (240, toast_chunk),
        (244, block_size / 4),
    ];
    for (at, value) in words {
        put_u32(&mut bytes, at, value);
    }
    if let Some(float_format) = bytes.get_mut(208..216) {
        float_format.copy_from_slice(&1_234_567.0f64.to_le_bytes());
    }
    control_file::seal(&mut bytes);
    bytes
}

/// Puts a page together, items from its end towards its beginning.
#[derive(Clone, Debug)]
pub struct PageBuilder {
    bytes: Vec<u8>,
    lower: u16,
    upper: u16,
}

impl PageBuilder {
    /// An empty page of `len` bytes, a block size, with `special` bytes of special space.
    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "tests make pages by it: what does not fit panics"
    )]
    pub fn new(len: u16, special: &[u8]) -> Self {
        assert!(
            len.is_power_of_two() && len >= 1024,
            "{len} is no block size"
        );
        let mut bytes = vec![0; usize::from(len)];
        let start = usize::from(len) - special.len();
        bytes[start..].copy_from_slice(special);
        let upper = u16::try_from(start).expect("below the page's length");
        put_u16(&mut bytes, 16, upper);
        put_u16(&mut bytes, 18, len | u16::from(LAYOUT_VERSION));
        PageBuilder {
            bytes,
            lower: HEADER_BYTES as u16,
            upper,
        }
    }

    /// Adds an item, MAXALIGNed, with a line pointer.
    #[expect(
        clippy::indexing_slicing,
        reason = "tests make pages by it: what does not fit panics"
    )]
    pub fn item(mut self, item: &[u8]) -> Self {
        let len = u16::try_from(item.len()).expect("an item fits on a page");
        self.upper -= len.next_multiple_of(8);
        let start = usize::from(self.upper);
        self.bytes[start..start + item.len()].copy_from_slice(item);
        let pointer = LinePointer::new(self.upper, LpFlags::Normal, len);
        self.line_pointer(pointer)
    }

    /// Adds a line pointer without an item.
    #[expect(clippy::cast_possible_truncation, reason = "four bytes")]
    pub fn line_pointer(mut self, pointer: LinePointer) -> Self {
        put_u32(&mut self.bytes, usize::from(self.lower), pointer.0);
        self.lower += LinePointer::SIZE as u16;
        self
    }

    /// Sets the page's position in the WAL.
    pub fn lsn(mut self, lsn: Lsn) -> Self {
        put_u32(&mut self.bytes, 0, (lsn.0 >> 32) as u32);
        put_u32(&mut self.bytes, 4, (lsn.0 & 0xFFFF_FFFF) as u32);
        self
    }

    /// The page with its header filled in and a true checksum for `block`.
    pub fn finish(mut self, block: BlockNo) -> Vec<u8> {
        assert!(self.lower <= self.upper, "the items do not fit on the page");
        put_u16(&mut self.bytes, 12, self.lower);
        put_u16(&mut self.bytes, 14, self.upper);
        seal_page(&mut self.bytes, block);
        self.bytes
    }
}

/// Puts a heap tuple together.
#[derive(Clone, Debug)]
pub struct TupleBuilder {
    header: [u8; TUPLE_HEADER_BYTES],
    nulls: Vec<u8>,
    data: Vec<u8>,
}

impl TupleBuilder {
    /// A frozen tuple of `attributes` attributes with `xmax` 0.
    pub fn new(attributes: u16) -> Self {
        let mut header = [0; TUPLE_HEADER_BYTES];
        put_u32(&mut header, 0, 3);
        put_u16(&mut header, 18, attributes);
        put_u16(&mut header, 20, 0x0900 | 0x0200);
        TupleBuilder {
            header,
            nulls: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Sets `t_xmin` and `t_xmax`.
    pub fn xids(mut self, xmin: u32, xmax: u32) -> Self {
        put_u32(&mut self.header, 0, xmin);
        put_u32(&mut self.header, 4, xmax);
        self
    }

    /// Sets `t_infomask`; the flag for nulls is kept right by itself.
    pub fn infomask(mut self, infomask: u16) -> Self {
        put_u16(&mut self.header, 20, infomask);
        self
    }

    /// Sets `t_ctid`.
    pub fn ctid(mut self, block: BlockNo, offset: u16) -> Self {
        put_u16(&mut self.header, 12, (block >> 16) as u16);
        put_u16(&mut self.header, 14, (block & 0xFFFF) as u16);
        put_u16(&mut self.header, 16, offset);
        self
    }

    /// Adds the bitmap of nulls: a set bit is a value.
    pub fn nulls(mut self, bitmap: &[u8]) -> Self {
        self.nulls = bitmap.to_vec();
        self
    }

    /// Appends attribute bytes as they are, with whatever padding the caller put in.
    pub fn data(mut self, data: &[u8]) -> Self {
        self.data.extend_from_slice(data);
        self
    }

    /// The tuple's bytes.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the bit stands in the low byte"
    )]
    pub fn finish(mut self) -> Vec<u8> {
        let hoff = (TUPLE_HEADER_BYTES + self.nulls.len()).next_multiple_of(8);
        if !self.nulls.is_empty() {
            self.header[20] |= HEAP_HASNULL as u8;
        }
        self.header[22] = u8::try_from(hoff).expect("a short header");
        let mut bytes = self.header.to_vec();
        bytes.extend_from_slice(&self.nulls);
        bytes.resize(hoff, 0);
        bytes.extend_from_slice(&self.data);
        bytes
    }
}
