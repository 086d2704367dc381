//! Injuries of the page header, `PageHeaderData` in `src/include/storage/bufpage.h`.
//!
//! ```text
//!  0 pd_lsn                8 pd_checksum   10 pd_flags
//! 12 pd_lower             14 pd_upper      16 pd_special
//! 18 page size | version  20 pd_prune_xid  24 line pointers
//! ```

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{LinePointer, LpFlags};

use crate::advice;
use crate::byte_edits::put_bytes;
use crate::followers::{CHAINS, ENTRIES, HEADER, SEQUENCES};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{ANY_PAGE, HEAP_PAGE, InjuryTarget, ROW_PAGE};

const CHECKSUM_AT: usize = 8;
pub(super) const FLAGS_AT: usize = 10;
pub(super) const LOWER_AT: usize = 12;
pub(super) const UPPER_AT: usize = 14;
const SPECIAL_AT: usize = 16;
const SIZE_AND_VERSION_AT: usize = 18;
const PRUNE_XID_AT: usize = 20;

pub(super) const PAGE_LSN: Injury = Injury {
    name: "page-lsn",
    summary: "the page claims a change beyond the end of the WAL",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::RESTORE_PAGE,
    damage: move_lsn_beyond_wal,
};

fn move_lsn_beyond_wal(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    target.checkpoint()?;
    let words = "pd_lsn set to 7FFFFFFF/0, which no WAL reaches";
    let damage = Damage::edit(target, words, |page| put_u32(page, 0, 0x7FFF_FFFF))?;
    Some(damage.must(&["lsn-beyond-wal"]))
}

pub(super) const PAGE_CHECKSUM: Injury = Injury {
    name: "page-checksum",
    summary: "the stored checksum alone is wrong",
    wants: Wants::once(ANY_PAGE),
    recovery_advice: advice::CHECKSUM_ONLY,
    damage: replace_checksum,
};

fn replace_checksum(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let stored = target.page()?.pd_checksum();
    let wrong = stored ^ 0x5A5A;
    let words = format!("pd_checksum {stored} replaced by {wrong}");
    let damage = Damage::edit(target, words, |page| put_u16(page, CHECKSUM_AT, wrong))?;
    let seen = target.has_checksums().then_some("checksum-mismatch");
    Some(damage.must_or_blind(seen, "with data checksums off nothing reads the field"))
}

pub(super) const PAGE_FLAGS: Injury = Injury {
    name: "page-flags",
    summary: "pd_flags has bits that do not exist",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: set_unknown_flag,
};

fn set_unknown_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let flags = target.page()?.pd_flags() | 0x0100 << (seed % 8);
    let words = format!("pd_flags set to {flags:#06x}");
    let damage = Damage::edit(target, words, |page| put_u16(page, FLAGS_AT, flags))?;
    Some(damage.must(&["invalid-page-flags"]))
}

/// Sets one of the three offsets.
fn set(target: &InjuryTarget<'_>, name: &str, at: usize, offset: u16) -> Option<Damage> {
    let words = format!("{name} set to {offset}");
    Damage::edit(target, words, |page| put_u16(page, at, offset))
}

pub(super) const LOWER_INSIDE_HEADER: Injury = Injury {
    name: "lower-inside-header",
    summary: "pd_lower lies inside the page header",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: move_lower_into_header,
};

fn move_lower_into_header(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let lower = u16::try_from(seed % 24).ok()?;
    let damage = set(target, "pd_lower", LOWER_AT, lower)?;
    Some(damage.must(&["lower-inside-header"]).may(&[SEQUENCES]))
}

pub(super) const LINE_POINTERS_LOST: Injury = Injury {
    name: "line-pointers-lost",
    summary: "pd_lower leaves no line pointer on a page that holds rows",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: move_lower_to_header,
};

fn move_lower_to_header(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = target.page()?;
    (page.pd_upper() < page.pd_special()).then_some(())?;
    let lower = u16::try_from(HEADER_BYTES).ok()?;
    let damage = set(target, "pd_lower", LOWER_AT, lower)?;
    Some(damage.must(&["line-pointers-lost"]).may(&[ENTRIES]))
}

pub(super) const LINE_POINTERS_CUT_OFF: Injury = Injury {
    name: "line-pointers-cut-off",
    summary: "pd_lower ends before the last line pointers of a page",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: move_lower_back,
};

fn move_lower_back(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let page = target.page()?;
    let most = page.line_pointer_count().checked_sub(1)?;
    let cut = u16::try_from(1 + seed % 3).ok()?.min(most);
    let left = page.line_pointer_count().checked_sub(cut)?;
    let mut named = page.line_pointers().skip(usize::from(left));
    let is_row = |(_, pointer): (u16, LinePointer)| pointer.flags() == LpFlags::Normal;
    (cut > 0 && named.all(is_row)).then_some(())?;
    let lower = page.pd_lower().checked_sub(cut.checked_mul(4)?)?;
    let damage = set(target, "pd_lower", LOWER_AT, lower)?;
    let may = [CHAINS, ENTRIES, &["ctid-out-of-range"]];
    Some(damage.must(&["line-pointers-lost"]).may(&may))
}

pub(super) const LOWER_BEYOND_UPPER: Injury = Injury {
    name: "lower-beyond-upper",
    summary: "pd_lower lies after pd_upper",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: move_lower_beyond_upper,
};

fn move_lower_beyond_upper(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let lower = target.page()?.pd_upper().checked_add(8)?;
    let damage = set(target, "pd_lower", LOWER_AT, lower)?;
    Some(damage.must(&["lower-beyond-upper"]))
}

pub(super) const UPPER_ZEROED: Injury = Injury {
    name: "upper-zeroed",
    summary: "pd_upper is zero, as on a page never used",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: zero_upper,
};

fn zero_upper(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let upper = target.page()?.pd_upper();
    let damage = set(target, &format!("pd_upper {upper}"), UPPER_AT, 0)?;
    Some(damage.must(&["new-page-with-content"]))
}

pub(super) const UPPER_BEYOND_SPECIAL: Injury = Injury {
    name: "upper-beyond-special",
    summary: "pd_upper lies after pd_special",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: move_upper_beyond_special,
};

fn move_upper_beyond_special(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let upper = target.page()?.pd_special().checked_add(8)?;
    let damage = set(target, "pd_upper", UPPER_AT, upper)?;
    Some(damage.must(&["upper-beyond-special"]))
}

pub(super) const SPECIAL_BEYOND_PAGE: Injury = Injury {
    name: "special-beyond-page",
    summary: "pd_special lies past the end of the page",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: move_special_beyond_page,
};

fn move_special_beyond_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let special = u16::try_from(target.bytes.len()).ok()?.checked_add(8)?;
    let damage = set(target, "pd_special", SPECIAL_AT, special)?;
    Some(damage.must(&["special-beyond-page"]))
}

pub(super) const SPECIAL_MISALIGNED: Injury = Injury {
    name: "special-misaligned",
    summary: "pd_special is no multiple of eight",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: misalign_special,
};

fn misalign_special(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let special = target.page()?.pd_special().checked_sub(4)?;
    let damage = set(target, "pd_special", SPECIAL_AT, special)?;
    let damage = damage.must(&["special-misaligned"]);
    Some(damage.may(&[&["upper-beyond-special"]]))
}

pub(super) const SPECIAL_SIZE: Injury = Injury {
    name: "special-size",
    summary: "a table page with a special space, which only other pages have",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: give_special_space,
};

fn give_special_space(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = target.page()?;
    let special = page.pd_special().checked_sub(8)?;
    (page.pd_upper() <= special).then_some(())?;
    let damage = set(target, "pd_special", SPECIAL_AT, special)?;
    let damage = damage.must(&["special-size-mismatch"]);
    Some(damage.may(&[&["item-beyond-page"]]))
}

pub(super) const PAGE_SIZE: Injury = Injury {
    name: "page-size",
    summary: "the header claims another page size",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: replace_page_size,
};

fn replace_page_size(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let size = if target.bytes.len() == 4096 {
        8192
    } else {
        4096
    };
    let both = size | u16::from(target.page()?.layout_version());
    let words = format!("page size set to {size}");
    let damage = Damage::edit(target, words, |page| {
        put_u16(page, SIZE_AND_VERSION_AT, both)
    })?;
    Some(damage.must(&["wrong-page-size"]))
}

pub(super) const LAYOUT_VERSION: Injury = Injury {
    name: "layout-version",
    summary: "the header claims a layout version that does not exist",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: raise_layout_version,
};

fn raise_layout_version(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let both = target.page()?.page_size() | 5;
    let damage = Damage::edit(target, "layout version set to 5", |page| {
        put_u16(page, SIZE_AND_VERSION_AT, both)
    })?;
    Some(damage.must(&["wrong-layout-version"]))
}

pub(super) const PRUNE_XID: Injury = Injury {
    name: "prune-xid",
    summary: "pd_prune_xid is a transaction that has not begun",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::SET_RIGHT_BY_VACUUM,
    damage: move_prune_xid_into_future,
};

fn move_prune_xid_into_future(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let xid = target.future_xid()?;
    let words = format!("pd_prune_xid set to {xid}");
    let damage = Damage::edit(target, words, |page| put_u32(page, PRUNE_XID_AT, xid))?;
    Some(damage.must(&["prune-xid-in-the-future"]))
}

pub(super) const HEADER_ZEROED: Injury = Injury {
    name: "header-zeroed",
    summary: "the page header is all zeros, the rest of the page is there",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: zero_header,
};

fn zero_header(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let words = "the 24 bytes of the page header set to zero";
    let damage = Damage::edit(target, words, |page| put_bytes(page, 0, &[0; HEADER_BYTES]))?;
    Some(damage.must(&["new-page-with-content"]).may(&[HEADER]))
}

pub(super) const HEADER_TAIL_ZEROED: Injury = Injury {
    name: "header-tail-zeroed",
    summary: "the last third of the page header is zeros",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: zero_header_tail,
};

fn zero_header_tail(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let words = "bytes 16 to 23 of the page header set to zero";
    let damage = Damage::edit(target, words, |page| put_bytes(page, SPECIAL_AT, &[0; 8]))?;
    let damage = damage.must(&["upper-beyond-special", "wrong-page-size"]);
    Some(damage.must(&["wrong-layout-version"]).may(&[HEADER]))
}

pub(super) const HEADER_RANDOM: Injury = Injury {
    name: "header-random",
    summary: "the page header is random bytes, the rest of the page is there",
    wants: Wants::page(ANY_PAGE),
    recovery_advice: advice::PAGE_HEADER,
    damage: randomize_header,
};

fn randomize_header(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let mut header = [0; HEADER_BYTES];
    fastrand::Rng::with_seed(seed).fill(&mut header);
    // One header in thousands says nothing that is plainly wrong.
    let unknown = 0x0100 << (seed % 8);
    let flags = u16::from_le_bytes([*header.get(FLAGS_AT)?, *header.get(FLAGS_AT + 1)?]);
    put_u16(&mut header, FLAGS_AT, flags | unknown);
    // Without pd_upper a page counts as new.
    let upper = u16::from_le_bytes([*header.get(UPPER_AT)?, *header.get(UPPER_AT + 1)?]);
    put_u16(&mut header, UPPER_AT, upper.max(1));
    let words = "the 24 bytes of the page header set to random ones";
    let damage = Damage::edit(target, words, |page| put_bytes(page, 0, &header))?;
    Some(damage.must(&["invalid-page-flags"]).may(&[HEADER]))
}
