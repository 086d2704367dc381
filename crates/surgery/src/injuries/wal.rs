//! Injuries of the write-ahead log (`src/include/access/xlog_internal.h`): the segment with the
//! checkpoint record, and older pages that recovery does not need.
//!
//! ```text
//! page header:  0 xlp_magic  2 xlp_info  4 xlp_tli  8 xlp_pageaddr  16 xlp_rem_len  24 xlp_sysid in a segment's first
//! record:       0 xl_tot_len  4 xl_xid  8 xl_prev  16 xl_info  17 xl_rmid  20 xl_crc  24 data
//! ```

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::wal::PageHeader;
use pgclinic_model::plural;

use crate::advice;
use crate::byte_edits::flip;
use crate::followers::WAL;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{InjuryTarget, WAL_CHECKPOINT, WAL_HEAD, WAL_OLDER, wal_record_on};

const INFO_AT: usize = 2;
/// A byte inside of `xlp_pageaddr`.
const ADDRESS_BYTE: usize = 10;
const REMAINING_AT: usize = 16;
const SYSTEM_IDENTIFIER_AT: usize = 24;
const RECORD_HEADER_BYTES: usize = 24;

/// Where the checkpoint record stands on the page.
fn checkpoint_at(target: &InjuryTarget<'_>) -> Option<usize> {
    let recovery = target.cluster.recovery()?;
    let at = recovery.start.checkpoint;
    usize::try_from(at.0 - recovery.shape.page_of(at).0).ok()
}

/// The page goes on with a record, does not begin its segment and lies before the redo point.
fn is_inner_page(target: &InjuryTarget<'_>) -> Option<()> {
    let redo = target.cluster.recovery().map(|recovery| {
        let page = recovery.shape.page_of(recovery.start.redo);
        page.0 / u64::from(recovery.shape.page_bytes)
    });
    let continues = PageHeader::parse(&target.bytes)?.continues();
    (continues && target.offset != 0 && redo != Some(u64::from(target.block))).then_some(())
}

/// Changes a byte of the page.
fn flip_byte(target: &InjuryTarget<'_>, at: usize, words: impl Into<String>) -> Option<Damage> {
    let damage = Damage::edit(target, words, |page| flip(page, at))?;
    Some(damage.may(&[WAL]))
}

pub(super) const LOST_WAL_SEGMENT: Injury = Injury {
    name: "lost-wal-segment",
    summary: "the WAL segment with the checkpoint record is gone",
    wants: Wants::once(WAL_CHECKPOINT),
    recovery_advice: advice::WAL,
    damage: remove_segment,
};

fn remove_segment(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let damage = Damage::remove(target.path.clone(), "the segment removed");
    Some(damage.must(&["wal-segment-missing"]).may(&[WAL]))
}

pub(super) const CUT_WAL_SEGMENT: Injury = Injury {
    name: "truncated-wal-segment",
    summary: "the WAL segment with the checkpoint record is truncated before it",
    wants: Wants::once(WAL_CHECKPOINT),
    recovery_advice: advice::WAL,
    damage: cut_segment,
};

fn cut_segment(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let len = target.offset;
    let damage = Damage::cut(
        target,
        len,
        format!("the segment truncated to {}", plural(len, "byte")),
    );
    let damage = damage.must(&["wal-page-header", "checkpoint-record-missing"]);
    Some(damage.may(&[WAL]))
}

pub(super) const WAL_SEGMENT_OF_ANOTHER_CLUSTER: Injury = Injury {
    name: "wal-segment-of-another-cluster",
    summary: "the WAL segment with the checkpoint record carries another system identifier",
    wants: Wants::once(WAL_HEAD),
    recovery_advice: advice::WAL,
    damage: change_system_identifier,
};

fn change_system_identifier(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let damage = flip_byte(target, SYSTEM_IDENTIFIER_AT, "xlp_sysid changed")?;
    Some(damage.must(&["wal-page-header", "checkpoint-record-missing"]))
}

pub(super) const WAL_PAGE_MAGIC: Injury = Injury {
    name: "wal-page-magic",
    summary: "the WAL page with the checkpoint record carries the magic number of another version",
    wants: Wants::once(WAL_CHECKPOINT),
    recovery_advice: advice::WAL,
    damage: change_magic,
};

fn change_magic(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let damage = flip_byte(target, 0, "xlp_magic changed")?;
    Some(damage.must(&["checkpoint-record-missing"]))
}

pub(super) const WAL_PAGE_ADDRESS: Injury = Injury {
    name: "wal-page-address",
    summary: "the WAL page with the checkpoint record was written for another place",
    wants: Wants::once(WAL_CHECKPOINT),
    recovery_advice: advice::WAL,
    damage: change_address,
};

fn change_address(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let damage = flip_byte(target, ADDRESS_BYTE, "xlp_pageaddr changed")?;
    Some(damage.must(&["checkpoint-record-missing"]))
}

pub(super) const WAL_CHECKPOINT_ZEROED: Injury = Injury {
    name: "wal-checkpoint-zeroed",
    summary: "the checkpoint record in the WAL is zeroed",
    wants: Wants::once(WAL_CHECKPOINT),
    recovery_advice: advice::WAL,
    damage: zero_checkpoint_record,
};

fn zero_checkpoint_record(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let at = checkpoint_at(target)?;
    let words = "the checkpoint record filled with zeros";
    // The record may go on on the next page.
    let damage = Damage::edit(target, words, |page| {
        page.iter_mut().skip(at).take(64).for_each(|byte| *byte = 0)
    })?;
    Some(damage.must(&["checkpoint-record-missing"]).may(&[WAL]))
}

pub(super) const WAL_CHECKPOINT_BYTE: Injury = Injury {
    name: "wal-checkpoint-byte",
    summary: "a byte of the checkpoint record in the WAL is wrong",
    wants: Wants::once(WAL_CHECKPOINT),
    recovery_advice: advice::WAL,
    damage: change_checkpoint_record,
};

fn change_checkpoint_record(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let at = checkpoint_at(target)? + 40;
    let words = format!("byte {at} of the WAL page, in the checkpoint record, changed");
    let damage = flip_byte(target, at, words)?;
    Some(damage.must(&["checkpoint-record-missing"]))
}

pub(super) const OLDER_WAL_RECORD_BYTE: Injury = Injury {
    name: "older-wal-record-byte",
    summary: "a byte of an older WAL record is wrong",
    wants: Wants::once(WAL_OLDER),
    recovery_advice: advice::OLDER_WAL,
    damage: change_older_record,
};

fn change_older_record(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let at = wal_record_on(&target.bytes)? + RECORD_HEADER_BYTES;
    let words = format!("byte {at} of the WAL page, in a record, changed");
    let damage = flip_byte(target, at, words)?;
    Some(damage.must(&["wal-record-checksum"]))
}

pub(super) const OLDER_WAL_RECORD_LENGTH: Injury = Injury {
    name: "older-wal-record-length",
    summary: "an older WAL record has an impossible length",
    wants: Wants::once(WAL_OLDER),
    recovery_advice: advice::OLDER_WAL,
    damage: shorten_older_record,
};

fn shorten_older_record(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let at = wal_record_on(&target.bytes)?;
    let words = "xl_tot_len of a record set to 8";
    let damage = Damage::edit(target, words, |page| put_u32(page, at, 8))?;
    Some(damage.must(&["wal-record-broken"]).may(&[WAL]))
}

pub(super) const OLDER_WAL_PAGE_FLAGS: Injury = Injury {
    name: "older-wal-page-flags",
    summary: "an older WAL page does not say that it goes on with a record",
    wants: Wants::large(WAL_OLDER),
    recovery_advice: advice::OLDER_WAL,
    damage: clear_continuation,
};

fn clear_continuation(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    is_inner_page(target)?;
    let words = "xlp_info and xlp_rem_len cleared";
    let damage = Damage::edit(target, words, |page| {
        put_u16(page, INFO_AT, 0);
        put_u32(page, REMAINING_AT, 0);
    })?;
    Some(damage.must(&["wal-record-broken"]).may(&[WAL]))
}

pub(super) const OLDER_WAL_PAGE_ADDRESS: Injury = Injury {
    name: "older-wal-page-address",
    summary: "an older WAL page was written for another place",
    wants: Wants::large(WAL_OLDER),
    recovery_advice: advice::OLDER_WAL,
    damage: change_older_address,
};

fn change_older_address(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    is_inner_page(target)?;
    let damage = flip_byte(target, ADDRESS_BYTE, "xlp_pageaddr changed")?;
    Some(damage.must(&["wal-page-header"]))
}
