//! Injuries of a page as a whole: zeros, torn and old pages, text and pages of others written over
//! it, a flipped bit.

use pgclinic_cluster::{Persistence, RelKind};
use pgclinic_format::build::{put_u16, put_u32, seal_page};
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{BlockNo, LpFlags, Page, Xid};

use super::page_header::{LOWER_AT, UPPER_AT};
use crate::advice;
use crate::byte_edits::put_bytes;
use crate::followers::{ATTRIBUTES, CHAINS, FATES, HEADER, LINE_POINTERS, Rules, TUPLE_HEADER};
use crate::index_entries::{entries_to, nothing_leads_to};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{ANY_PAGE, HEAP_PAGE, InjuryTarget, ROW_PAGE, Row, choose, rows_of};

/// What may be said where rows were overwritten.
const OVERWRITTEN_ROWS: [Rules; 3] = [LINE_POINTERS, TUPLE_HEADER, ATTRIBUTES];
/// A line of a server's log, which really was found on pages.
const TEXT: &[u8] = b"2024-02-29 03:14:15.926 UTC [4711] LOG:  checkpoint starting: time";

/// `hoff-mismatch`, if some row of the page has a `t_hoff` that contradicts its own header.
fn hoff_contradiction(page: &[u8]) -> Option<&'static str> {
    let rows = Page::parse(page).map(rows_of).unwrap_or_default();
    let wrong = |row: &Row<'_>| usize::from(row.tuple.t_hoff()) != row.tuple.expected_hoff();
    rows.iter().any(wrong).then_some("hoff-mismatch")
}

/// The page with this range of it set to zero.
fn with_zeros(target: &InjuryTarget<'_>, start: usize, len: usize) -> Option<Vec<u8>> {
    let mut after = target.bytes.clone();
    after.get_mut(start..start + len)?.fill(0);
    Some(after)
}

/// Which bytes were set to zero, and which of them change by that: an end of the range may have
/// been zero before, and what follows names the bytes that are written.
fn zeroed(target: &InjuryTarget<'_>, after: &[u8], start: usize, len: usize) -> Option<Damage> {
    let end = start + len;
    let words = format!("bytes {start} to {} set to zero", end - 1);
    let mut damage = Damage::bytes(target, after, words)?;
    let [first, past] = damage.bytes?;
    if [first, past] != [start as u64, end as u64] {
        let changed = format!("; bytes {first} to {} change", past - 1);
        damage.words.push_str(&changed);
    }
    Some(damage)
}

fn zero_whole_page(target: &InjuryTarget<'_>) -> Option<Damage> {
    let words = "the whole page set to zero";
    Damage::edit(target, words, |page| page.fill(0))
}

pub(super) const ZEROED_SECTOR: Injury = Injury {
    name: "zeroed-sector",
    summary: "a sector of 512 bytes in the middle of a page is zeros",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: zero_sector,
};

fn zero_sector(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let upper = usize::from(target.page()?.pd_upper());
    let sectors: Vec<usize> = (512..target.bytes.len())
        .step_by(512)
        .filter(|start| start + 512 > upper)
        .collect();
    let start = *choose(&sectors, seed)?;
    let after = with_zeros(target, start, 512)?;
    let damage = zeroed(target, &after, start, 512)?;
    Some(damage.may(&OVERWRITTEN_ROWS).must_or_blind(
        hoff_contradiction(&after),
        "no row begins in the sector, and zeros may be values",
    ))
}

pub(super) const ZEROED_FIRST_SECTOR: Injury = Injury {
    name: "zeroed-first-sector",
    summary: "the first 512 bytes of a page are zeros",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: zero_first_sector,
};

fn zero_first_sector(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let after = with_zeros(target, 0, 512)?;
    let words = "the first 512 bytes set to zero";
    (!Page::parse(&after)?.is_zeroed()).then_some(())?;
    let damage = Damage::bytes(target, &after, words)?;
    Some(damage.must(&["new-page-with-content"]).may(&[HEADER]))
}

pub(super) const ZEROED_4096: Injury = Injury {
    name: "zeroed-4096",
    summary: "4096 bytes of a page are zeros",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: zero_4096_bytes,
};

fn zero_4096_bytes(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let parts: Vec<usize> = (0..target.bytes.len()).step_by(4096).collect();
    let start = *choose(&parts, seed).filter(|_| parts.len() > 1)?;
    let after = with_zeros(target, start, 4096)?;
    let page = Page::parse(&after)?;
    (!page.is_zeroed()).then_some(())?;
    let seen = match start {
        0 => Some("new-page-with-content"),
        _ => hoff_contradiction(&after),
    };
    let damage = zeroed(target, &after, start, 4096)?;
    let damage = damage.may(&[HEADER]).may(&OVERWRITTEN_ROWS);
    Some(damage.must_or_blind(
        seen,
        "no row begins in these bytes, and zeros may be values",
    ))
}

pub(super) const ZEROED_PAGE: Injury = Injury {
    name: "zeroed-page",
    summary: "a page is all zeros, as one never used, and an index leads to its rows",
    wants: Wants::once(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: zero_page,
};

fn zero_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let block = u64::from(target.block);
    (target.checkpoint().is_some() && entries_to(target, block..block + 1) > 0).then_some(())?;
    let marked = (target.map_bits() != 0).then_some("zeroed-page-marked-visible");
    let damage = zero_whole_page(target)?.must(&["zeroed-page"]);
    Some(damage.must(marked.as_slice()))
}

pub(super) const ZEROED_PAGE_UNSEEN: Injury = Injury {
    name: "zeroed-page-unseen",
    summary: "a page is all zeros, as one never used, and no index leads to it",
    wants: Wants::once(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: zero_page_without_entries,
};

fn zero_page_without_entries(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let block = u64::from(target.block);
    nothing_leads_to(target, block..block + 1).then_some(())?;
    let marked = target.checkpoint().is_some() && target.map_bits() != 0;
    Some(zero_whole_page(target)?.must_or_blind(
        marked.then_some("zeroed-page-marked-visible"),
        "a page of zeros is legal anywhere: it is what a table grows by, and no index knows better",
    ))
}

pub(super) const EMPTIED_PAGE: Injury = Injury {
    name: "emptied-page",
    summary: "a page is sound and has no rows, and an index leads to rows on it",
    wants: Wants::once(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: empty_page,
};

fn empty_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let block = u64::from(target.block);
    (target.checkpoint().is_some() && entries_to(target, block..block + 1) > 0).then_some(())?;
    let special = target.page()?.pd_special();
    let mut after = target.bytes.clone();
    after.get_mut(HEADER_BYTES..usize::from(special))?.fill(0);
    put_u16(&mut after, LOWER_AT, u16::try_from(HEADER_BYTES).ok()?);
    put_u16(&mut after, UPPER_AT, special);
    if target.has_checksums() {
        seal_page(&mut after, target.block);
    }
    let words = "all line pointers and rows taken off the page";
    Some(Damage::bytes(target, &after, words)?.must(&["emptied-page"]))
}

pub(super) const FLIPPED_BIT: Injury = Injury {
    name: "flipped-bit",
    summary: "a single bit of a page is flipped",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: flip_bit,
};

fn flip_bit(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let mut random = fastrand::Rng::with_seed(seed);
    let at = random.usize(HEADER_BYTES..target.bytes.len());
    let bit = random.u8(0..8);
    let mut after = target.bytes.clone();
    *after.get_mut(at)? ^= 1 << bit;
    let words = format!("bit {bit} of byte {at} flipped");
    let damage = Damage::bytes(target, &after, words)?;
    let damage = damage.may(&OVERWRITTEN_ROWS);
    Some(damage.blind("one bit may stand in free space or in a value"))
}

pub(super) const TEXT_OVER_HEADER: Injury = Injury {
    name: "text-over-header",
    summary: "text was written over the beginning of a page",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: write_text_over_header,
};

fn write_text_over_header(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let words = "the first 66 bytes overwritten with text";
    let damage = Damage::edit(target, words, |page| put_bytes(page, 0, TEXT))?;
    Some(damage.must(&["invalid-page-flags"]).may(&[HEADER]))
}

pub(super) const TEXT_OVER_ROWS: Injury = Injury {
    name: "text-over-rows",
    summary: "text was written over the rows of a page",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: write_text_over_rows,
};

fn write_text_over_rows(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let mut after = target.bytes.clone();
    // The last row of a page may be shorter than the text.
    let rest = after.get_mut(row.at..)?.iter_mut();
    rest.zip(TEXT).for_each(|(byte, letter)| *byte = *letter);
    let words = format!("text written over the page from byte {}", row.at);
    let damage = Damage::bytes(target, &after, words)?.item(row.item);
    Some(damage.may(&OVERWRITTEN_ROWS).must_or_blind(
        hoff_contradiction(&after),
        "the text happens to read as the header of a row",
    ))
}

pub(super) const MISPLACED_PAGE: Injury = Injury {
    name: "misplaced-page",
    summary: "the page of another block of the same relation was written here",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: overwrite_by_another_block,
};

fn overwrite_by_another_block(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let found = target.other_blocks(seed).into_iter().find_map(|block| {
        let page = target.other_block(block)?;
        names_only(&page, block).then_some((block, page))
    });
    let (block, page) = found?;
    let words = format!("overwritten with the page of block {block}");
    let damage = Damage::bytes(target, &page, words)?;
    let damage = damage.must(&["misplaced-page"]);
    Some(damage.may(&[&["hot-update-leaves-page"], CHAINS, FATES]))
}

/// Its rows without a successor all name their own block, and there is one.
fn names_only(bytes: &[u8], block: BlockNo) -> bool {
    let rows = Page::parse(bytes).map(rows_of).unwrap_or_default();
    let lasting = rows.iter().filter(|row| {
        let tuple = row.tuple;
        tuple.t_ctid().offset == row.item
            && (tuple.t_xmax() == Xid::INVALID || tuple.has(HEAP_XMAX_INVALID))
    });
    let mut blocks = lasting.map(|row| row.tuple.t_ctid().block).peekable();
    blocks.peek().is_some() && blocks.all(|own| own == block)
}

pub(super) const PAGE_OF_ANOTHER_TABLE: Injury = Injury {
    name: "page-of-another-table",
    summary: "a page of another table was written here",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: overwrite_by_another_table,
};

fn overwrite_by_another_table(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let columns = target.relation?.layouts.as_ref()?.len();
    let donors = target.donors(seed, |relation| {
        relation.kind == RelKind::Table && relation.persistence == Persistence::Permanent
    });
    let (donor, block, page) = donors.into_iter().next()?;
    let has_more = |row: &Row<'_>| {
        let inserted = row.tuple.xmin_is_frozen() || row.tuple.has(HEAP_XMIN_COMMITTED);
        inserted && usize::from(row.tuple.attribute_count()) > columns
    };
    let seen = rows_of(Page::parse(&page)?).iter().any(has_more);
    let words = format!(
        "overwritten with block {block} of {}",
        donor.qualified_name()
    );
    let damage = Damage::bytes(target, &page, words)?;
    // Where VACUUM wrote the donor and its visibility map with one record.
    let damage = damage.may(&[&["page-of-another-table"]]);
    Some(damage.may(&OVERWRITTEN_ROWS).must_or_blind(
        seen.then_some("too-many-attributes"),
        "a page does not say which table it belongs to, and its rows may fit",
    ))
}

pub(super) const OLD_PAGE: Injury = Injury {
    name: "old-page",
    summary: "an old copy of the page came back, without its newest row",
    wants: Wants::once(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: take_back_newest_row,
};

fn take_back_newest_row(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = target.page()?;
    let (item, pointer) = page.line_pointers().last()?;
    let newest = pointer.flags() == LpFlags::Normal && pointer.lp_off() == page.pd_upper();
    (newest && item > 1 && !target.redirect_targets().contains(&item)).then_some(())?;
    let lower = page.pd_lower().checked_sub(4)?;
    let upper = pointer.range()?.end.next_multiple_of(8);
    let lsn = page.pd_lsn().0.saturating_sub(0x100);
    let mut after = target.bytes.clone();
    after.get_mut(usize::from(lower)..upper)?.fill(0);
    put_u32(&mut after, 0, u32::try_from(lsn >> 32).ok()?);
    put_u32(&mut after, 4, u32::try_from(lsn & 0xFFFF_FFFF).ok()?);
    put_u16(&mut after, LOWER_AT, lower);
    put_u16(&mut after, UPPER_AT, u16::try_from(upper).ok()?);
    // What was written then was right then.
    if target.has_checksums() {
        seal_page(&mut after, target.block);
    }
    let words = format!("item {item} taken off again, with an older LSN");
    let damage = Damage::bytes(target, &after, words)?.item(item);
    let damage = damage.may(&[CHAINS, FATES]);
    Some(damage.blind("an old page is right in itself"))
}

pub(super) const TORN_PAGE_512: Injury = Injury {
    name: "torn-page-512",
    summary: "only the first 512 bytes of a new page reached the disk",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: |target, _| tear_page(target, 512),
};

pub(super) const TORN_PAGE_4096: Injury = Injury {
    name: "torn-page-4096",
    summary: "only the first 4096 bytes of a new page reached the disk",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: |target, _| tear_page(target, 4096),
};

fn tear_page(target: &InjuryTarget<'_>, written: usize) -> Option<Damage> {
    let after = with_zeros(target, written, target.bytes.len().checked_sub(written)?)?;
    let seen = hoff_contradiction(&after)?;
    let words = format!("all bytes from {written} on set to zero");
    let damage = Damage::bytes(target, &after, words)?;
    Some(damage.must(&[seen]).may(&OVERWRITTEN_ROWS))
}
