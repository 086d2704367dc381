//! The 4-byte line pointer (`ItemIdData`): where an item stands on its page.
//!
//! ```text
//! bit 0      15    17         32
//!     lp_off | flags | lp_len
//! ```
//!
//! Truth: `src/include/storage/itemid.h`.

/// The two state bits of a line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LpFlags {
    /// `LP_UNUSED`: free for use, must have `lp_len` 0.
    Unused,
    /// `LP_NORMAL`: names an item.
    Normal,
    /// `LP_REDIRECT`: `lp_off` is the number of another line pointer (heap only).
    Redirect,
    /// `LP_DEAD`: dead, with or without storage.
    Dead,
}

impl LpFlags {
    /// PostgreSQL's own name.
    pub fn name(self) -> &'static str {
        match self {
            LpFlags::Unused => "LP_UNUSED",
            LpFlags::Normal => "LP_NORMAL",
            LpFlags::Redirect => "LP_REDIRECT",
            LpFlags::Dead => "LP_DEAD",
        }
    }
}

/// One line pointer, by value. Nothing is promised about the range it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePointer(pub u32);

impl LinePointer {
    /// Bytes of a line pointer.
    pub const SIZE: usize = 4;

    /// Puts the three fields together; each is cut to its bits.
    pub fn new(lp_off: u16, flags: LpFlags, lp_len: u16) -> Self {
        let flags = match flags {
            LpFlags::Unused => 0,
            LpFlags::Normal => 1,
            LpFlags::Redirect => 2,
            LpFlags::Dead => 3u32,
        };
        LinePointer(u32::from(lp_off & 0x7FFF) | flags << 15 | u32::from(lp_len & 0x7FFF) << 17)
    }

    /// Offset of the item in bytes from the page's start, or a line pointer number in a redirect.
    #[inline]
    pub fn lp_off(self) -> u16 {
        (self.0 & 0x7FFF) as u16
    }

    /// Length of the item in bytes.
    #[inline]
    pub fn lp_len(self) -> u16 {
        (self.0 >> 17) as u16
    }

    /// The state bits.
    #[inline]
    pub fn flags(self) -> LpFlags {
        match (self.0 >> 15) & 3 {
            0 => LpFlags::Unused,
            1 => LpFlags::Normal,
            2 => LpFlags::Redirect,
            _ => LpFlags::Dead,
        }
    }

    /// The item's first byte and the byte after its last, if it has storage.
    #[inline]
    pub fn range(self) -> Option<std::ops::Range<usize>> {
        let start = usize::from(self.lp_off());
        let len = usize::from(self.lp_len());
        let stored = matches!(self.flags(), LpFlags::Normal | LpFlags::Dead) && len > 0;
        stored.then(|| start..start + len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_come_back() {
        let pointer = LinePointer::new(8152, LpFlags::Normal, 37);
        assert_eq!(
            (pointer.lp_off(), pointer.flags(), pointer.lp_len()),
            (8152, LpFlags::Normal, 37)
        );
        assert_eq!(pointer.range(), Some(8152..8189));
        assert_eq!(LinePointer::new(2, LpFlags::Redirect, 0).range(), None);
    }
}
