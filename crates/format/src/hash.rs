//! Pages of hash indexes: meta page, buckets, their overflow pages, and bitmaps of free overflow
//! pages.
//!
//! ```text
//! block 0      1 … 2      3                    …
//!       meta | buckets | bitmap | overflow … | the next buckets | overflow … | …
//!
//! special space    0    prevblkno    4    nextblkno    8    bucket    12    flag    14    page id    16
//! entry            0    t_tid    6    t_info    8    hash code    12    padding    16
//! ```
//!
//! Buckets are laid out in groups that double; each group (from the tenth on in four phases) is
//! followed by the overflow pages that were made while it was the newest one. `hashm_spares` counts
//! them.
//!
//! Truth: `src/include/access/hash.h`,
//! `src/backend/access/hash/{README,hashutil.c,hashovfl.c,hashpage.c}`.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::line_pointer::LpFlags;
use crate::page::Page;
use crate::types::{BlockNo, INVALID_BLOCK};

/// `LH_UNUSED_PAGE`: no type bit at all; a free overflow page, or a bucket laid out ahead.
pub const LH_UNUSED_PAGE: u16 = 0;
/// `LH_OVERFLOW_PAGE`.
pub const LH_OVERFLOW_PAGE: u16 = 0x0001;
/// `LH_BUCKET_PAGE`: the first page of a bucket.
pub const LH_BUCKET_PAGE: u16 = 0x0002;
/// `LH_BITMAP_PAGE`.
pub const LH_BITMAP_PAGE: u16 = 0x0004;
/// `LH_META_PAGE`.
pub const LH_META_PAGE: u16 = 0x0008;
/// `LH_BUCKET_BEING_POPULATED`: the new bucket of a split that has not ended.
pub const LH_BUCKET_BEING_POPULATED: u16 = 0x0010;
/// `LH_BUCKET_BEING_SPLIT`: the old bucket of a split that has not ended.
pub const LH_BUCKET_BEING_SPLIT: u16 = 0x0020;
/// `LH_BUCKET_NEEDS_SPLIT_CLEANUP`: entries that a split copied elsewhere are still here.
pub const LH_BUCKET_NEEDS_SPLIT_CLEANUP: u16 = 0x0040;
/// `LH_PAGE_HAS_DEAD_TUPLES`: a hint.
pub const LH_PAGE_HAS_DEAD_TUPLES: u16 = 0x0080;
/// `LH_PAGE_TYPE`.
pub const LH_PAGE_TYPE: u16 = 0x000F;
/// Flags about splits, which only the first page of a bucket carries.
pub const LH_SPLIT_FLAGS: u16 =
    LH_BUCKET_BEING_POPULATED | LH_BUCKET_BEING_SPLIT | LH_BUCKET_NEEDS_SPLIT_CLEANUP;

/// Bytes of an index entry on the page, the same for every type of key.
pub const ENTRY_BYTES: usize = 16;
/// `HASH_MAX_SPLITPOINTS`.
pub const SPLITPOINTS_MAX: u32 = 98;
/// The largest number that `hashm_maxbucket` can have.
pub const BUCKET_MAX: u32 = 0x7FFF_FFFE;

const CONTENTS_AT: usize = 24;
const SPARES_AT: usize = CONTENTS_AT + 52;
const MAPP_AT: usize = SPARES_AT + SPLITPOINTS_MAX as usize * 4;
/// `HASH_SPLITPOINT_GROUPS_WITH_ONE_PHASE`.
const GROUPS_WITH_ONE_PHASE: u32 = 10;

/// The special space of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opaque {
    /// `hasho_prevblkno`: the previous page of the bucket; in its first page the number of the last
    /// bucket at its last split.
    pub prev: BlockNo,
    /// `hasho_nextblkno`: the next page of the bucket, or [`INVALID_BLOCK`].
    pub next: BlockNo,
    /// `hasho_bucket`.
    pub bucket: u32,
    /// `hasho_flag`.
    pub flags: u16,
}

impl Opaque {
    /// The type bits of `hasho_flag`.
    pub fn page_type(self) -> u16 {
        self.flags & LH_PAGE_TYPE
    }

    /// A page of a bucket, which holds entries.
    pub fn holds_entries(self) -> bool {
        matches!(self.page_type(), LH_BUCKET_PAGE | LH_OVERFLOW_PAGE)
    }
}

/// What the type bits stand for, for people.
pub fn type_name(page_type: u16) -> &'static str {
    match page_type {
        LH_UNUSED_PAGE => "unused",
        LH_OVERFLOW_PAGE => "overflow",
        LH_BUCKET_PAGE => "bucket",
        LH_BITMAP_PAGE => "bitmap",
        LH_META_PAGE => "meta",
        _ => "no known",
    }
}

/// The special space of a page that has one of the right size and signature.
pub fn opaque(page: Page<'_>) -> Option<Opaque> {
    let special = page.special().filter(|special| special.len() == 16)?;
    (u16_at(special, 14)? == 0xFF80).then_some(())?;
    Some(Opaque {
        prev: u32_at(special, 0)?,
        next: u32_at(special, 4)?,
        bucket: u32_at(special, 8)?,
        flags: u16_at(special, 12)?,
    })
}

/// An entry: a hash code and the row it was computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Line pointer number in the index page.
    pub item: u16,
    /// Heap block.
    pub block: BlockNo,
    /// Line pointer number in that block.
    pub offset: u16,
    /// The hash code.
    pub code: u32,
    /// Marked as dead by a scan: nothing is promised about its row.
    pub dead: bool,
}

/// Why the bytes behind a line pointer are no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryFault {
    /// The line pointer is unused, a redirect, or leads off the page.
    NoItem,
    /// It has another length than every entry.
    Length {
        /// By the line pointer.
        pointer: u16,
        /// By `t_info`.
        tuple: u16,
    },
    /// `t_info` says that it has nulls or values of varying length.
    Info {
        /// All of `t_info`.
        found: u16,
    },
    /// It points to line pointer 0 or to no block.
    Target,
}

/// All entries of a bucket or overflow page, with the number of their line pointer.
pub fn entries(page: Page<'_>) -> impl Iterator<Item = (u16, Result<Entry, EntryFault>)> + use<'_> {
    page.line_pointers().map(move |(item, pointer)| {
        let has_item = matches!(pointer.flags(), LpFlags::Normal | LpFlags::Dead);
        let bytes = page.item(pointer).filter(|_| has_item);
        let entry = bytes.ok_or(EntryFault::NoItem).and_then(|bytes| {
            let dead = pointer.flags() == LpFlags::Dead;
            entry(bytes, item, dead)
        });
        (item, entry)
    })
}

fn entry(bytes: &[u8], item: u16, dead: bool) -> Result<Entry, EntryFault> {
    const SIZE_MASK: u16 = 0x1FFF;
    const VARYING_OR_NULLS: u16 = 0xC000;
    let info = u16_at(bytes, 6).unwrap_or(0);
    let tuple = info & SIZE_MASK;
    if bytes.len() != ENTRY_BYTES || usize::from(tuple) != ENTRY_BYTES {
        let pointer = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        return Err(EntryFault::Length { pointer, tuple });
    }
    if info & VARYING_OR_NULLS != 0 {
        return Err(EntryFault::Info { found: info });
    }
    let number = |at| u16_at(bytes, at).unwrap_or(0);
    let block = u32::from(number(0)) << 16 | u32::from(number(2));
    let offset = number(4);
    if offset == 0 || block == INVALID_BLOCK {
        return Err(EntryFault::Target);
    }
    let code = u32_at(bytes, 8).unwrap_or(0);
    Ok(Entry {
        item,
        block,
        offset,
        code,
        dead,
    })
}

/// Calls `each` for every entry that can be read; nothing for pages that hold none.
pub fn for_each_row(page: Page<'_>, each: &mut dyn FnMut(Entry)) {
    if opaque(page).is_some_and(Opaque::holds_entries) {
        entries(page)
            .filter_map(|(_, entry)| entry.ok())
            .for_each(each);
    }
}

/// Bits of a bitmap page, from bit 0 at its first byte; nothing for other pages.
pub fn bitmap(page: Page<'_>) -> Option<&[u8]> {
    let opaque = opaque(page).filter(|opaque| opaque.page_type() == LH_BITMAP_PAGE);
    opaque.and_then(|_| {
        page.bytes()
            .get(CONTENTS_AT..usize::from(page.pd_special()))
    })
}

/// What belongs into a block, by the meta page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// The meta page.
    Meta,
    /// The first page of this bucket, in use or laid out ahead.
    Bucket(u32),
    /// An overflow or bitmap page, with its bit in the bitmaps.
    Overflow(u32),
    /// Behind everything that the meta page knows.
    Beyond,
}

/// A view of the meta page. Promised: the arrays lie on the page.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    bytes: &'a [u8],
}

impl<'a> Meta<'a> {
    /// Of block 0 with the right magic and version.
    pub fn parse(page: Page<'a>) -> Option<Self> {
        let meta = Meta {
            bytes: page.bytes(),
        };
        let known = meta.u32(0) == 0x0644_0640 && meta.u32(4) == 4;
        let whole = MAPP_AT + 4 * meta.bitmaps_max() as usize <= meta.bytes.len();
        (known && whole).then_some(meta)
    }

    fn u32(self, at: usize) -> u32 {
        u32_at(self.bytes, CONTENTS_AT + at).unwrap_or(0)
    }

    fn u16(self, at: usize) -> u16 {
        u16_at(self.bytes, CONTENTS_AT + at).unwrap_or(0)
    }

    /// `hashm_ntuples`, an estimate.
    pub fn ntuples(self) -> f64 {
        f64::from_bits(u64_at(self.bytes, CONTENTS_AT + 8).unwrap_or(0))
    }

    /// `hashm_ffactor`: entries a bucket.
    pub fn ffactor(self) -> u16 {
        self.u16(16)
    }

    /// `hashm_bsize`: bytes between header and special space.
    pub fn bsize(self) -> u16 {
        self.u16(18)
    }

    /// `hashm_bmsize`: bytes of a bitmap.
    pub fn bmsize(self) -> u16 {
        self.u16(20)
    }

    /// `hashm_bmshift`: the logarithm of a bitmap's bits.
    pub fn bmshift(self) -> u16 {
        self.u16(22)
    }

    /// `hashm_maxbucket`: the last bucket.
    pub fn maxbucket(self) -> u32 {
        self.u32(24)
    }

    /// `hashm_highmask`.
    pub fn highmask(self) -> u32 {
        self.u32(28)
    }

    /// `hashm_lowmask`.
    pub fn lowmask(self) -> u32 {
        self.u32(32)
    }

    /// `hashm_ovflpoint`: the phase that overflow pages are made in.
    pub fn ovflpoint(self) -> u32 {
        self.u32(36)
    }

    /// `hashm_firstfree`: no free overflow page has a lower bit.
    pub fn firstfree(self) -> u32 {
        self.u32(40)
    }

    /// `hashm_nmaps`: bitmap pages.
    pub fn nmaps(self) -> u32 {
        self.u32(44)
    }

    /// `HASH_MAX_BITMAPS` for this block size.
    pub fn bitmaps_max(self) -> u32 {
        u32::try_from(self.bytes.len() / 8).map_or(1024, |count| count.min(1024))
    }

    /// `hashm_spares[phase]`: overflow pages up to this phase.
    pub fn spares(self, phase: u32) -> Option<u32> {
        let at = usize::try_from(phase).ok()?.checked_mul(4)?;
        (phase < SPLITPOINTS_MAX).then(|| u32_at(self.bytes, SPARES_AT.checked_add(at)?))?
    }

    /// `hashm_mapp[index]`: the block of a bitmap page.
    pub fn mapp(self, index: u32) -> Option<BlockNo> {
        let at = usize::try_from(index).ok()?.checked_mul(4)?;
        (index < self.bitmaps_max()).then(|| u32_at(self.bytes, MAPP_AT.checked_add(at)?))?
    }

    /// Overflow pages, bitmaps among them.
    pub fn overflow_pages(self) -> u32 {
        self.spares(self.ovflpoint()).unwrap_or(0)
    }

    /// Blocks that the index needs for everything the meta page speaks of.
    pub fn blocks(self) -> u64 {
        1 + total_buckets(self.ovflpoint()) + u64::from(self.overflow_pages())
    }

    /// The bucket that a hash code belongs into.
    pub fn bucket_of(self, code: u32) -> u32 {
        let bucket = code & self.highmask();
        if bucket > self.maxbucket() {
            bucket & self.lowmask()
        } else {
            bucket
        }
    }

    /// The bucket that was last split off from this one, or would be.
    pub fn split_from(self, bucket: u32) -> u32 {
        let new = |mask: u32| bucket | mask.wrapping_add(1);
        match new(self.lowmask()) {
            other if other > self.maxbucket() => new(self.lowmask() >> 1),
            other => other,
        }
    }

    /// The block of a bucket's first page.
    pub fn block_of_bucket(self, bucket: u32) -> Option<BlockNo> {
        let spares = match bucket {
            0 => 0,
            _ => self.spares(spare_index(bucket.checked_add(1)?).checked_sub(1)?)?,
        };
        bucket.checked_add(spares)?.checked_add(1)
    }

    /// The block of an overflow page by its bit; bits count from 0.
    pub fn block_of_bit(self, bit: u32) -> Option<BlockNo> {
        let number = bit.checked_add(1)?;
        let phases = 1..self.ovflpoint().min(SPLITPOINTS_MAX);
        let phase = phases
            .into_iter()
            .find(|phase| self.spares(*phase).is_some_and(|spares| number <= spares))
            .unwrap_or(self.ovflpoint().max(1));
        u32::try_from(total_buckets(phase).checked_add(u64::from(number))?).ok()
    }

    /// The block is of a bucket that no split has reached: the server lays many out at once and
    /// leaves their pages zeros.
    pub fn is_laid_out_ahead(self, block: BlockNo) -> bool {
        matches!(self.use_of(block), Use::Bucket(bucket) if bucket > self.maxbucket())
    }

    /// What belongs into a block.
    pub fn use_of(self, block: BlockNo) -> Use {
        if block == 0 {
            return Use::Meta;
        }
        let mut before = 0u32;
        let mut buckets = 0u64;
        // Phase 0 is one bucket, and no overflow page is ever made before phase 1.
        for phase in 0..=self.ovflpoint().min(SPLITPOINTS_MAX - 1) {
            let ends_at = total_buckets(phase) + u64::from(before);
            if u64::from(block) <= ends_at {
                let bucket = u64::from(block) - 1 - u64::from(before);
                return match u32::try_from(bucket) {
                    Ok(bucket) if bucket_is_of(phase, u64::from(bucket), buckets) => {
                        Use::Bucket(bucket)
                    }
                    _ => Use::Beyond,
                };
            }
            let spares = self.spares(phase).unwrap_or(0).max(before);
            if u64::from(block) <= total_buckets(phase) + u64::from(spares) {
                let bit = u64::from(block) - total_buckets(phase) - 1;
                return u32::try_from(bit).map_or(Use::Beyond, Use::Overflow);
            }
            buckets = total_buckets(phase);
            before = spares;
        }
        Use::Beyond
    }
}

fn bucket_is_of(phase: u32, bucket: u64, before: u64) -> bool {
    bucket >= before && bucket < total_buckets(phase)
}

/// `_hash_get_totalbuckets`: buckets laid out up to this phase, itself included.
pub fn total_buckets(phase: u32) -> u64 {
    if phase < GROUPS_WITH_ONE_PHASE {
        return 1 << phase;
    }
    let beyond = phase.min(SPLITPOINTS_MAX) - GROUPS_WITH_ONE_PHASE;
    let group = GROUPS_WITH_ONE_PHASE + (beyond >> 2);
    let half = 1u64 << (group - 1);
    half + (half >> 2) * u64::from((beyond & 3) + 1)
}

/// `_hash_spareindex`: the phase in which so many buckets exist; the number counts from 1.
pub fn spare_index(buckets: u32) -> u32 {
    let group = u32::BITS - buckets.saturating_sub(1).leading_zeros();
    if group < GROUPS_WITH_ONE_PHASE {
        return group;
    }
    let phase = (buckets - 1) >> (group - 3) & 3;
    GROUPS_WITH_ONE_PHASE + ((group - GROUPS_WITH_ONE_PHASE) << 2) + phase
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{PageBuilder, put_u16, put_u32};

    /// The meta page of an index with these spares up to its last phase.
    fn meta_page(maxbucket: u32, spares: &[(u32, u32)]) -> Vec<u8> {
        let mut page = vec![0; 8192];
        let highmask = (maxbucket + 2).next_power_of_two() - 1;
        for (at, value) in [
            (0, 0x0644_0640),
            (4, 4),
            (24, maxbucket),
            (28, highmask),
            (32, highmask >> 1),
            (36, spare_index(maxbucket + 1)),
        ] {
            put_u32(&mut page, CONTENTS_AT + at, value);
        }
        for (phase, count) in spares {
            put_u32(&mut page, SPARES_AT + *phase as usize * 4, *count);
        }
        page
    }

    #[test]
    fn phases_are_those_of_the_server() {
        assert_eq!([0, 1, 9].map(total_buckets), [1, 2, 512]);
        // The tenth group has four phases of 128 buckets.
        assert_eq!([10, 11, 12, 13].map(total_buckets), [640, 768, 896, 1024]);
        assert_eq!(total_buckets(14), 1280);
        let buckets = [1, 2, 3, 4, 5, 512, 513, 640, 641, 1024, 1025];
        assert_eq!(
            buckets.map(spare_index),
            [0, 1, 2, 2, 3, 9, 10, 10, 11, 13, 14]
        );
        assert_eq!(spare_index(BUCKET_MAX + 1), SPLITPOINTS_MAX - 1);
    }

    #[test]
    fn every_block_has_one_use_and_the_way_back() {
        let spares = [(1, 3), (2, 3), (3, 5), (4, 9)];
        let bytes = meta_page(11, &spares);
        let meta = Meta::parse(Page::parse(&bytes).expect("a page")).expect("a meta page");
        assert_eq!(meta.blocks(), 1 + 16 + 9);
        assert_eq!(meta.use_of(0), Use::Meta);
        for block in 1..26 {
            match meta.use_of(block) {
                Use::Bucket(bucket) => assert_eq!(meta.block_of_bucket(bucket), Some(block)),
                Use::Overflow(bit) => assert_eq!(meta.block_of_bit(bit), Some(block)),
                other => panic!("block {block} is {other:?}"),
            }
        }
        assert_eq!(meta.use_of(3), Use::Overflow(0), "the first bitmap");
        assert_eq!(meta.use_of(6), Use::Bucket(2));
        assert_eq!(meta.use_of(26), Use::Beyond);
        let ahead: Vec<_> = (0..30)
            .filter(|block| meta.is_laid_out_ahead(*block))
            .collect();
        assert_eq!(ahead, [18, 19, 20, 21]);
    }

    #[test]
    fn a_code_has_its_bucket_and_a_bucket_its_twin() {
        let bytes = meta_page(5, &[]);
        let meta = Meta::parse(Page::parse(&bytes).expect("a page")).expect("a meta page");
        assert_eq!([4, 5, 6, 7].map(|code| meta.bucket_of(code)), [4, 5, 2, 3]);
        assert_eq!(meta.split_from(0), 4);
        assert_eq!(meta.split_from(1), 5);
        assert_eq!(meta.split_from(2), 2, "not split yet");
    }

    #[test]
    fn entries_are_read_or_their_fault_is_told() {
        let mut special = [0; 16];
        put_u16(&mut special, 12, LH_BUCKET_PAGE);
        put_u16(&mut special, 14, 0xFF80);
        let mut entry = [0; 16];
        put_u16(&mut entry, 2, 7);
        put_u16(&mut entry, 4, 3);
        put_u16(&mut entry, 6, 16 | 0x2000);
        put_u32(&mut entry, 8, 0xCAFE);
        let mut nulls = entry;
        put_u16(&mut nulls, 6, 16 | 0x8000);
        let page = PageBuilder::new(8192, &special)
            .item(&entry)
            .item(&entry[..12])
            .item(&nulls)
            .item(&[16; 16])
            .finish(1);
        let page = Page::parse(&page).expect("a page");
        let mut seen = Vec::new();
        for_each_row(page, &mut |entry| {
            seen.push((entry.block, entry.offset, entry.code))
        });
        assert_eq!(seen, [(7, 3, 0xCAFE)]);
        let faults: Vec<_> = entries(page).filter_map(|(_, entry)| entry.err()).collect();
        assert_eq!(
            faults[..2],
            [
                EntryFault::Length {
                    pointer: 12,
                    tuple: 16
                },
                EntryFault::Info { found: 0x8010 }
            ]
        );
    }
}
