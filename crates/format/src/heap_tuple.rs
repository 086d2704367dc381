//! The heap tuple: 23 bytes of header, a bitmap of nulls, padding, attributes.
//!
//! ```text
//! 0      4      8        12      18          20         22     23      t_hoff
//! | xmin | xmax | field3 | ctid  | infomask2 | infomask | hoff | nulls … | attributes …
//! ```
//!
//! Truth: `src/include/access/htup_details.h`.

use crate::bytes::{align_up, u16_at, u32_at};
use crate::types::{MAXALIGN, Tid, Xid};

/// `SizeofHeapTupleHeader`: bytes before the bitmap.
pub const HEADER_BYTES: usize = 23;

/// A bitmap of nulls follows the header.
pub const HEAP_HASNULL: u16 = 0x0001;
/// At least one attribute of variable width.
pub const HEAP_HASVARWIDTH: u16 = 0x0002;
/// At least one attribute in TOAST.
pub const HEAP_HASEXTERNAL: u16 = 0x0004;
/// An object identifier stands before the attributes; no major read here writes it.
pub const HEAP_HASOID_OLD: u16 = 0x0008;
/// `xmax` is a key-share locker.
pub const HEAP_XMAX_KEYSHR_LOCK: u16 = 0x0010;
/// `t_cid` stands for two commands of one transaction.
pub const HEAP_COMBOCID: u16 = 0x0020;
/// `xmax` is an exclusive locker.
pub const HEAP_XMAX_EXCL_LOCK: u16 = 0x0040;
/// Both bits: `xmax` is a shared locker.
pub const HEAP_XMAX_SHR_LOCK: u16 = HEAP_XMAX_KEYSHR_LOCK | HEAP_XMAX_EXCL_LOCK;
/// `xmax` only locked the row.
pub const HEAP_XMAX_LOCK_ONLY: u16 = 0x0080;
/// `xmin` is known to have committed.
pub const HEAP_XMIN_COMMITTED: u16 = 0x0100;
/// `xmin` is known to have aborted.
pub const HEAP_XMIN_INVALID: u16 = 0x0200;
/// Both bits: the row is frozen, `xmin` is kept for forensics only.
pub const HEAP_XMIN_FROZEN: u16 = HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;
/// `xmax` is known to have committed.
pub const HEAP_XMAX_COMMITTED: u16 = 0x0400;
/// `xmax` counts for nothing.
pub const HEAP_XMAX_INVALID: u16 = 0x0800;
/// `xmax` is a multixact.
pub const HEAP_XMAX_IS_MULTI: u16 = 0x1000;
/// This is the new version of an updated row.
pub const HEAP_UPDATED: u16 = 0x2000;
/// Moved away by VACUUM FULL before 9.0.
pub const HEAP_MOVED_OFF: u16 = 0x4000;
/// Moved here by VACUUM FULL before 9.0.
pub const HEAP_MOVED_IN: u16 = 0x8000;
/// Either of the two.
pub const HEAP_MOVED: u16 = HEAP_MOVED_OFF | HEAP_MOVED_IN;
/// The number of attributes in `t_infomask2`.
pub const HEAP_NATTS_MASK: u16 = 0x07FF;
/// Bits of `t_infomask2` that no PostgreSQL sets.
pub const INFOMASK2_UNUSED: u16 = 0x1800;
/// An update that changed key columns, or a delete.
pub const HEAP_KEYS_UPDATED: u16 = 0x2000;
/// The next version is a heap-only tuple on this page.
pub const HEAP_HOT_UPDATED: u16 = 0x4000;
/// No index entry points here.
pub const HEAP_ONLY_TUPLE: u16 = 0x8000;
/// Line pointer number that marks a speculative insertion in `t_ctid`.
pub const SPEC_TOKEN_OFFSET: u16 = 0xFFFE;
/// Line pointer number that marks a row moved to another partition in `t_ctid`.
pub const MOVED_PARTITIONS_OFFSET: u16 = 0xFFFD;

/// A view of one tuple. Promised: the 23 bytes of the header are there.
#[derive(Clone, Copy, Debug)]
pub struct HeapTuple<'a> {
    header: &'a [u8; HEADER_BYTES],
    bytes: &'a [u8],
}

impl<'a> HeapTuple<'a> {
    /// The tuple in an item's bytes, unless they are too short for a header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk()?;
        Some(HeapTuple { header, bytes })
    }

    /// All bytes of the item.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn u16(self, at: usize) -> u16 {
        u16_at(self.header, at).unwrap_or_default()
    }

    #[inline]
    fn u32(self, at: usize) -> u32 {
        u32_at(self.header, at).unwrap_or_default()
    }

    /// The inserting transaction as stored, also when frozen.
    #[inline]
    pub fn t_xmin(self) -> Xid {
        Xid(self.u32(0))
    }

    /// The deleting or locking transaction, or a multixact.
    #[inline]
    pub fn t_xmax(self) -> Xid {
        Xid(self.u32(4))
    }

    /// Command number, combined command number or old VACUUM's transaction.
    #[inline]
    pub fn t_field3(self) -> u32 {
        self.u32(8)
    }

    /// Where the next version is, or the tuple's own place. The block is stored as two halves.
    #[inline]
    pub fn t_ctid(self) -> Tid {
        Tid {
            block: u32::from(self.u16(12)) << 16 | u32::from(self.u16(14)),
            offset: self.u16(16),
        }
    }

    /// Number of attributes and flags.
    #[inline]
    pub fn t_infomask2(self) -> u16 {
        self.u16(18)
    }

    /// Flags.
    #[inline]
    pub fn t_infomask(self) -> u16 {
        self.u16(20)
    }

    /// Offset of the first attribute in the tuple.
    #[inline]
    pub fn t_hoff(self) -> u8 {
        self.header.get(22).copied().unwrap_or_default()
    }

    /// All bits of `flag` are set in `t_infomask`.
    #[inline]
    pub fn has(self, flag: u16) -> bool {
        self.t_infomask() & flag == flag
    }

    /// How many attributes the tuple says it stores, 0 to 2047.
    #[inline]
    pub fn attribute_count(self) -> u16 {
        self.t_infomask2() & HEAP_NATTS_MASK
    }

    /// The `t_hoff` that the attribute count and the bitmap flag ask for.
    #[inline]
    pub fn expected_hoff(self) -> usize {
        let bitmap = if self.has(HEAP_HASNULL) {
            usize::from(self.attribute_count()).div_ceil(8)
        } else {
            0
        };
        align_up(HEADER_BYTES + bitmap, MAXALIGN)
    }

    /// The bitmap of nulls: a set bit is a value. `None` without the flag or when it is cut.
    #[inline]
    pub fn null_bitmap(self) -> Option<&'a [u8]> {
        self.has(HEAP_HASNULL).then_some(())?;
        let len = usize::from(self.attribute_count()).div_ceil(8);
        self.bytes.get(HEADER_BYTES..HEADER_BYTES + len)
    }

    /// `HEAP_XMAX_IS_LOCKED_ONLY`: whoever is in `xmax` did not delete the row.
    #[inline]
    pub fn xmax_is_locked_only(self) -> bool {
        let mask = self.t_infomask();
        mask & HEAP_XMAX_LOCK_ONLY != 0
            || mask & (HEAP_XMAX_IS_MULTI | HEAP_XMAX_SHR_LOCK) == HEAP_XMAX_EXCL_LOCK
    }

    /// `HEAP_LOCKED_UPGRADED`: a multixact of a cluster before 9.3, which is never looked up.
    #[inline]
    pub fn xmax_is_from_before_93(self) -> bool {
        let mask = self.t_infomask();
        mask & HEAP_XMAX_IS_MULTI != 0
            && mask & HEAP_XMAX_LOCK_ONLY != 0
            && mask & HEAP_XMAX_SHR_LOCK == 0
    }

    /// Frozen by flag or by one of the two reserved numbers.
    #[inline]
    pub fn xmin_is_frozen(self) -> bool {
        self.has(HEAP_XMIN_FROZEN) || matches!(self.t_xmin(), Xid::FROZEN | Xid::BOOTSTRAP)
    }
}
