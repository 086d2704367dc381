//! Injuries of hash indexes (`src/include/access/hash.h`).
//!
//! ```text
//! special space:  0 hasho_prevblkno  4 hasho_nextblkno  8 hasho_bucket  12 hasho_flag  14 page id
//! entry:          0 row  6 t_info  8 hash code
//! ```

use pgclinic_format::Page;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::hash::{
    self, Entry, LH_BITMAP_PAGE, LH_BUCKET_BEING_POPULATED, LH_BUCKET_PAGE, LH_OVERFLOW_PAGE,
    LH_SPLIT_FLAGS, Meta, Opaque,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;

use crate::advice;
use crate::byte_edits::put_u8;
use crate::followers::HASH;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget, choose};

const MAX_BUCKET_AT: usize = 48;
const PREV_AT: usize = 0;
const NEXT_AT: usize = 4;
const BUCKET_AT: usize = 8;
const FLAG_AT: usize = 12;
const INFO_AT: usize = 6;
const CODE_AT: usize = 8;

/// The special space of a page, and where it begins.
fn opaque(target: &InjuryTarget<'_>) -> Option<(Opaque, usize)> {
    let page = target.page_of(AccessMethod::Hash)?;
    Some((hash::opaque(page)?, usize::from(page.pd_special())))
}

/// The same of a page of this type.
fn opaque_of_type(target: &InjuryTarget<'_>, page_type: u16) -> Option<(Opaque, usize)> {
    opaque(target).filter(|(opaque, _)| opaque.page_type() == page_type)
}

/// The same of a page that holds entries.
fn opaque_of_bucket(target: &InjuryTarget<'_>) -> Option<(Opaque, usize)> {
    opaque(target).filter(|(opaque, _)| opaque.holds_entries())
}

/// An entry of the page that has a neighbour on both sides, with where it stands, by the seed.
/// `fits` is asked about the codes before, here and after.
fn entry(
    target: &InjuryTarget<'_>,
    seed: u64,
    fits: impl Fn([u32; 3]) -> bool,
) -> Option<(Entry, usize)> {
    opaque_of_bucket(target)?;
    let mut entries = Vec::new();
    hash::for_each_row(target.page()?, &mut |entry| entries.push(entry));
    let fitting: Vec<Entry> = entries
        .windows(3)
        .filter_map(|three| match three {
            [before, entry, after] if fits([before.code, entry.code, after.code]) => Some(*entry),
            _ => None,
        })
        .filter(|entry| target.item.is_none_or(|item| item == entry.item))
        .collect();
    let entry = *choose(&fitting, seed)?;
    Some((entry, target.item_at(entry.item)?))
}

fn set_code(
    target: &InjuryTarget<'_>,
    entry: Entry,
    at: usize,
    code: u32,
    words: impl Into<String>,
) -> Option<Damage> {
    let damage = Damage::edit(target, words, |page| put_u32(page, at + CODE_AT, code))?;
    Some(damage.item(entry.item))
}

fn meta_of(page: &[u8]) -> Option<Meta<'_>> {
    Meta::parse(Page::parse(page)?)
}

pub(super) const HASH_BUCKET_COUNT: Injury = Injury {
    name: "hash-bucket-count",
    summary: "the meta page of a hash index names a last bucket that cannot be",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: raise_last_bucket,
};

fn raise_last_bucket(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = target.page_of(AccessMethod::Hash)?;
    let meta = Meta::parse(page).filter(|_| target.block == 0)?;
    let bucket = meta.highmask().checked_add(1)?;
    let words = format!("hashm_maxbucket set to {bucket}");
    let damage = Damage::edit(target, words, |page| put_u32(page, MAX_BUCKET_AT, bucket))?;
    Some(damage.must(&["hash-meta-inconsistent"]).may(&[HASH]))
}

pub(super) const HASH_PAGE_TYPE: Injury = Injury {
    name: "hash-page-type",
    summary: "a page of a hash index is of two types at once",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: give_two_types,
};

fn give_two_types(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (opaque, special) = opaque_of_bucket(target)?;
    let flags = opaque.flags | LH_BUCKET_PAGE | LH_OVERFLOW_PAGE;
    let damage = set_flags(target, special, flags)?;
    Some(damage.must(&["hash-page-flags"]).may(&[HASH]))
}

fn set_flags(target: &InjuryTarget<'_>, special: usize, flags: u16) -> Option<Damage> {
    let words = format!("hasho_flag set to {flags:#06x}");
    Damage::edit(target, words, |page| {
        put_u16(page, special + FLAG_AT, flags)
    })
}

pub(super) const HASH_ENTRY_LENGTH: Injury = Injury {
    name: "hash-entry-length",
    summary: "an entry of a hash index claims another length",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lengthen_entry,
};

fn lengthen_entry(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (entry, at) = entry(target, seed, |_| true)?;
    let words = "the size in t_info set to 24";
    let damage = Damage::edit(target, words, |page| put_u16(page, at + INFO_AT, 24))?;
    let damage = damage.item(entry.item).must(&["hash-entry-damaged"]);
    Some(damage.may(&[HASH]))
}

pub(super) const HASH_CODE_ORDER: Injury = Injury {
    name: "hash-code-order",
    summary: "the highest bit of a hash code in an index is the other one",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: flip_highest_bit,
};

fn flip_highest_bit(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    // Between two others it cannot stay in order on both sides.
    let between = |[before, _, after]: [u32; 3]| before >> 31 == after >> 31;
    let (entry, at) = entry(target, seed, between)?;
    let words = "bit 31 of the hash code turned over";
    let damage = set_code(target, entry, at, entry.code ^ 1 << 31, words)?;
    Some(damage.must(&["hash-code-order"]).may(&[HASH]))
}

pub(super) const HASH_CODE_BUCKET: Injury = Injury {
    name: "hash-code-bucket",
    summary: "a bit of a hash code that chooses the bucket is the other one",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: flip_lowest_bit,
};

fn flip_lowest_bit(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    // The order of the page is kept.
    let roomy = |[before, code, after]: [u32; 3]| (before..=after).contains(&(code ^ 1));
    let (entry, at) = entry(target, seed, roomy)?;
    let words = "bit 0 of the hash code turned over";
    let damage = set_code(target, entry, at, entry.code ^ 1, words)?;
    Some(damage.must(&["hash-bucket-wrong"]).may(&[HASH]))
}

pub(super) const HASH_CODE_OTHER: Injury = Injury {
    name: "hash-code-other",
    summary: "a hash code in an index is that of another value of the same bucket",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: replace_code_within_bucket,
};

fn replace_code_within_bucket(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    opaque(target)?;
    let meta_page = target.other_block(0)?;
    let step = meta_of(&meta_page)?.highmask().checked_add(1)?;
    let other = |code: u32| code.checked_add(step);
    let roomy = |[_, code, after]: [u32; 3]| other(code).is_some_and(|code| code <= after);
    let (entry, at) = entry(target, seed, roomy)?;
    let code = other(entry.code)?;
    let words = format!("the hash code set to {code:#010x}");
    let damage = set_code(target, entry, at, code, words)?;
    Some(damage.must(&["hash-code-wrong"]))
}

pub(super) const HASH_PAGE_BUCKET: Injury = Injury {
    name: "hash-page-bucket",
    summary: "the first page of a bucket of a hash index names another bucket",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: name_another_bucket,
};

fn name_another_bucket(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (opaque, special) = opaque_of_type(target, LH_BUCKET_PAGE)?;
    let bucket = opaque.bucket ^ 1;
    let words = format!("hasho_bucket set to {bucket}");
    let at = special + BUCKET_AT;
    let damage = Damage::edit(target, words, |page| put_u32(page, at, bucket))?;
    Some(damage.must(&["hash-page-misplaced"]).may(&[HASH]))
}

pub(super) const HASH_NEXT_PAGE: Injury = Injury {
    name: "hash-next-page",
    summary: "a page of a hash index names a first page of a bucket as its overflow page",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: overflow_to_bucket,
};

fn overflow_to_bucket(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (_, special) = opaque_of_bucket(target)?;
    let words = "hasho_nextblkno set to 1";
    let damage = Damage::edit(target, words, |page| put_u32(page, special + NEXT_AT, 1))?;
    Some(damage.must(&["hash-chain-broken"]).may(&[HASH]))
}

pub(super) const HASH_PAGE_BACK: Injury = Injury {
    name: "hash-page-back",
    summary: "an overflow page of a hash index names itself as the page before",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: link_back_to_itself,
};

fn link_back_to_itself(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (_, special) = opaque_of_type(target, LH_OVERFLOW_PAGE)?;
    let own = target.block;
    let words = format!("hasho_prevblkno set to {own}");
    let damage = Damage::edit(target, words, |page| put_u32(page, special + PREV_AT, own))?;
    Some(damage.must(&["hash-chain-broken"]).may(&[HASH]))
}

pub(super) const HASH_SPLIT_FLAG: Injury = Injury {
    name: "hash-split-flag",
    summary: "a bucket of a hash index is marked as being filled by a split",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: mark_being_populated,
};

fn mark_being_populated(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (opaque, special) = opaque_of_type(target, LH_BUCKET_PAGE)?;
    (opaque.flags & LH_SPLIT_FLAGS == 0 && opaque.bucket > 0).then_some(())?;
    let flags = opaque.flags | LH_BUCKET_BEING_POPULATED;
    let damage = set_flags(target, special, flags)?;
    Some(damage.must(&["hash-split-state"]).may(&[HASH]))
}

pub(super) const HASH_BITMAP_BIT: Injury = Injury {
    name: "hash-bitmap-bit",
    summary: "an overflow page of a hash index in use is marked as free",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: mark_overflow_page_free,
};

fn mark_overflow_page_free(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    opaque_of_type(target, LH_BITMAP_PAGE)?;
    let meta_page = target.other_block(0)?;
    let meta = meta_of(&meta_page)?;
    // Bit 0 of a bitmap is its own page; only the first bitmap is taken here.
    (meta.mapp(0)? == target.block).then_some(())?;
    let pages = meta.overflow_pages().min(8 * u32::from(meta.bmsize()));
    let byte = |bit: u32| {
        let at = HEADER_BYTES + usize::try_from(bit / 8).ok()?;
        Some((at, *target.bytes.get(at)?))
    };
    let is_used = |bit: &u32| byte(*bit).is_some_and(|(_, byte)| byte & 1 << (bit % 8) != 0);
    let used: Vec<u32> = (1..pages).filter(is_used).collect();
    let bit = *choose(&used, seed)?;
    let (at, before) = byte(bit)?;
    let cleared = before & !(1 << (bit % 8));
    let words = format!("bit {bit} cleared");
    let damage = Damage::edit(target, words, |page| put_u8(page, at, cleared))?;
    Some(damage.must(&["hash-bitmap-wrong"]).may(&[HASH]))
}
