//! A cursor over the bytes of one value; every step is checked.

use super::undecodable::Undecodable;

/// What stands before a varlena's payload when its header has four bytes: alignment inside a
/// value counts from there, however the value itself was stored.
pub(crate) const HEADER: usize = 4;

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Reader { data, at: 0 }
    }

    /// Starts at `at`, which may lie beyond the end: then nothing can be read.
    pub(crate) fn starting(data: &'a [u8], at: usize) -> Self {
        Reader { data, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.data.len()
    }

    pub(crate) fn damaged(&self, what: &'static str) -> Undecodable {
        Undecodable::damaged(what, self.at)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Undecodable> {
        let end = self.at.checked_add(count);
        let bytes = end.and_then(|end| self.data.get(self.at..end));
        let bytes = bytes.ok_or_else(|| self.damaged("the value ends too early"))?;
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        let bytes = self.bytes(N)?;
        bytes
            .try_into()
            .map_err(|_| self.damaged("the value ends too early"))
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.data.get(self.at..).unwrap_or_default();
        self.at += rest.len();
        rest
    }

    /// The bytes from here to the end, without moving.
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// Moves to the next multiple of `align`, counted from `shift` bytes before the data.
    pub(crate) fn align(&mut self, align: u8, shift: usize) {
        let align = usize::from(align.max(1));
        let over = self.at.saturating_add(shift) % align;
        if over != 0 {
            self.at = self.at.saturating_add(align - over);
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Undecodable> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Undecodable> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Undecodable> {
        Ok(i16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Undecodable> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Undecodable> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Undecodable> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Undecodable> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64, Undecodable> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A count stored as a signed 32-bit number that must not be negative.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, Undecodable> {
        let at = self.at;
        usize::try_from(self.i32()?).map_err(|_| Undecodable::damaged(what, at))
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<(), Undecodable> {
        if self.is_at_end() {
            Ok(())
        } else {
            Err(self.damaged("the value goes on after its end"))
        }
    }
}

/// The `N` bytes of a fixed-size value, and no more.
pub(crate) fn exact<const N: usize>(value: &[u8]) -> Result<[u8; N], Undecodable> {
    value
        .try_into()
        .map_err(|_| Undecodable::damaged("the value has the wrong length", value.len().min(N)))
}
