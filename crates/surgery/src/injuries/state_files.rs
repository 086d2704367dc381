//! Injuries of small files of state that carry a checksum of their own: prepared transactions,
//! replication slots, the progress of replication origins.

use crate::advice;
use crate::byte_edits::put_u8;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{
    InjuryTarget, PREPARED_TRANSACTION, REPLICATION_ORIGINS, REPLICATION_SLOT,
};

/// Inverts the byte that the seed chooses.
fn invert_byte(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let len = u64::try_from(target.bytes.len()).ok()?;
    let at = usize::try_from(seed.checked_rem(len)?).ok()?;
    let inverted = !*target.bytes.get(at)?;
    let words = format!("byte {at} inverted");
    Damage::edit(target, words, |bytes| put_u8(bytes, at, inverted))
}

pub(super) const PREPARED_TRANSACTION_BYTE: Injury = Injury {
    name: "prepared-transaction-byte",
    summary: "a byte of a prepared transaction's file changed",
    wants: Wants::large(PREPARED_TRANSACTION),
    recovery_advice: advice::SMALL_STATE,
    damage: |target, seed| Some(invert_byte(target, seed)?.must(&["prepared-transaction-file"])),
};

pub(super) const REPLICATION_SLOT_BYTE: Injury = Injury {
    name: "replication-slot-byte",
    summary: "a byte of a replication slot's state changed",
    wants: Wants::large(REPLICATION_SLOT),
    recovery_advice: advice::SMALL_STATE,
    damage: |target, seed| Some(invert_byte(target, seed)?.must(&["replication-slot-file"])),
};

pub(super) const REPLICATION_ORIGIN_BYTE: Injury = Injury {
    name: "replication-origin-byte",
    summary: "a byte of the replication origins' progress changed",
    wants: Wants::once(REPLICATION_ORIGINS),
    recovery_advice: advice::SMALL_STATE,
    damage: |target, seed| Some(invert_byte(target, seed)?.must(&["replication-origin-file"])),
};
