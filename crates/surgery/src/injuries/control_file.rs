//! Injuries of the control file, `ControlFileData` in `src/include/catalog/pg_control.h`.
//!
//! ```text
//! 0 system_identifier  16 state  136 minRecoveryPoint  216 blcksz  then the checksum of all before
//! ```

use pgclinic_format::build::put_u32;
use pgclinic_format::control_file;
use pgclinic_model::plural;

use crate::advice;
use crate::byte_edits::flip;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{CONTROL_FILE, InjuryTarget};

const STATE_AT: usize = 16;
const RECOVERY_POINT_AT: usize = 136;
const BLOCK_SIZE_AT: usize = 216;

/// Replaces a number, and makes the checksum true again.
fn set_sealed(target: &InjuryTarget<'_>, at: usize, value: u32, words: &str) -> Option<Damage> {
    let mut after = target.bytes.clone();
    put_u32(&mut after, at, value);
    control_file::seal(&mut after).then_some(())?;
    let words = format!("{words}, with a right checksum");
    Some(Damage::bytes(target, &after, words)?.must(&["control-file-inconsistent"]))
}

pub(super) const CONTROL_FILE_ZEROED: Injury = Injury {
    name: "control-file-zeroed",
    summary: "the control file is zeros",
    wants: Wants::once(CONTROL_FILE),
    recovery_advice: advice::CONTROL,
    damage: zero_file,
};

fn zero_file(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let words = "the whole file set to zero";
    let damage = Damage::edit(target, words, |file| file.fill(0))?;
    Some(damage.must(&["control-file-unreadable"]))
}

pub(super) const CONTROL_FILE_CUT: Injury = Injury {
    name: "control-file-truncated",
    summary: "the control file was truncated",
    wants: Wants::once(CONTROL_FILE),
    recovery_advice: advice::CONTROL,
    damage: cut_file,
};

fn cut_file(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let len = 16 + seed % 200;
    let damage = Damage::cut(
        target,
        len,
        format!("the file truncated to {}", plural(len, "byte")),
    );
    Some(damage.must(&["control-file-unreadable"]))
}

pub(super) const CONTROL_FILE_BYTE: Injury = Injury {
    name: "control-file-byte",
    summary: "a byte of the control file is wrong",
    wants: Wants::once(CONTROL_FILE),
    recovery_advice: advice::CONTROL,
    damage: change_byte,
};

fn change_byte(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let at = usize::try_from(40 + seed % 80).ok()?;
    let damage = Damage::edit(target, format!("byte {at} changed"), |file| flip(file, at))?;
    let damage = damage.must(&["control-file-checksum"]);
    Some(damage.may(&[&["control-file-inconsistent"]]))
}

pub(super) const CONTROL_FILE_STATE: Injury = Injury {
    name: "control-file-state",
    summary: "the control file names a state that does not exist",
    wants: Wants::once(CONTROL_FILE),
    recovery_advice: advice::CONTROL,
    damage: set_unknown_state,
};

fn set_unknown_state(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    set_sealed(target, STATE_AT, 99, "the state set to 99")
}

pub(super) const CONTROL_FILE_RECOVERY_POINT: Injury = Injury {
    name: "control-file-recovery-point",
    summary: "the control file of a stopped cluster asks for recovery",
    wants: Wants::once(CONTROL_FILE),
    recovery_advice: advice::CONTROL,
    damage: ask_for_recovery,
};

fn ask_for_recovery(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    target.checkpoint()?;
    let words = "minRecoveryPoint set to 0/2000000";
    set_sealed(target, RECOVERY_POINT_AT, 0x0200_0000, words)
}

pub(super) const CONTROL_FILE_BLOCK_SIZE: Injury = Injury {
    name: "control-file-block-size",
    summary: "the control file names a block size that does not exist",
    wants: Wants::once(CONTROL_FILE),
    recovery_advice: advice::CONTROL,
    damage: set_unknown_block_size,
};

fn set_unknown_block_size(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let words = "the block size set to 12345";
    set_sealed(target, BLOCK_SIZE_AT, 12_345, words)
}
