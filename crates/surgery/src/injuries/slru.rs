//! Injuries of SLRU files: `pg_xact`, `pg_multixact/offsets` and `pg_multixact/members`
//! (`src/backend/access/transam`).

use pgclinic_format::StatusLog;
use pgclinic_format::slru::{GROUP_BYTES, PAGES_PER_SEGMENT};
use pgclinic_model::plural;

use crate::advice;
use crate::byte_edits::put_u8;
use crate::followers::TRANSACTION_STATUS;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{
    InjuryTarget, InjuryTargetKind, MULTIXACT_MEMBERS, MULTIXACT_OFFSETS, TRANSACTION_LOG,
};

const SECTOR_BYTES: usize = 512;
/// Of an offset in `pg_multixact/offsets`.
const OFFSET_BYTES: usize = 4;
/// Of four members with their flags in `pg_multixact/members`.
const MEMBER_GROUP_BYTES: usize = 20;
const _: () = assert!(MEMBER_GROUP_BYTES as u64 == GROUP_BYTES);

/// The bytes of this file that are in use, if the next number lies in it.
fn bytes_in_use(target: &InjuryTarget<'_>) -> Option<usize> {
    let checkpoint = target.checkpoint()?;
    let (log, next) = match target.kind {
        InjuryTargetKind::TransactionLog => (StatusLog::Xact, checkpoint.next_xid().0),
        InjuryTargetKind::MultixactOffsets => (StatusLog::MultiOffsets, checkpoint.next_multi.0),
        InjuryTargetKind::MultixactMembers => {
            (StatusLog::MultiMembers, checkpoint.next_multi_offset)
        }
        _ => return None,
    };
    let page_bytes = u64::from(target.cluster.build.block_size);
    let page = log.page_of(next, page_bytes);
    let entry = log.entry_of(next, page_bytes);
    let path = log.path(page / PAGES_PER_SEGMENT, target.cluster.layout.major);
    (path == target.path).then_some(())?;
    let within = match log {
        StatusLog::Xact => entry / 4,
        StatusLog::MultiMembers => entry / 4 * GROUP_BYTES,
        _ => entry * 4,
    };
    let bytes = usize::try_from((page % PAGES_PER_SEGMENT) * page_bytes + within);
    bytes.ok().filter(|bytes| *bytes > 0)
}

fn remove_file(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    bytes_in_use(target)?;
    let damage = Damage::remove(target.path.clone(), "the file removed");
    let damage = damage.must(&["slru-file-missing"]);
    Some(damage.may(&[TRANSACTION_STATUS]))
}

fn cut_file(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let len = seed.checked_rem(u64::try_from(bytes_in_use(target)?).ok()?)?;
    let damage = Damage::cut(
        target,
        len,
        format!("the file truncated to {}", plural(len, "byte")),
    );
    let damage = damage.must(&["slru-file-truncated"]);
    Some(damage.may(&[TRANSACTION_STATUS]))
}

fn zero_sectors_in_use(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let seen = match target.kind {
        InjuryTargetKind::MultixactOffsets => "multixact-offset-out-of-range",
        InjuryTargetKind::MultixactMembers => "multixact-member-out-of-range",
        _ => "slru-file-zeroed",
    };
    let end = bytes_in_use(target)?.next_multiple_of(SECTOR_BYTES);
    let words = "the first sectors of the file zeroed";
    let damage = Damage::edit(target, words, |bytes| {
        bytes.iter_mut().take(end).for_each(|byte| *byte = 0)
    })?;
    Some(damage.must(&[seen]).may(&[TRANSACTION_STATUS]))
}

pub(super) const LOST_TRANSACTION_LOG: Injury = Injury {
    name: "lost-transaction-log",
    summary: "the last file of pg_xact is gone",
    wants: Wants::once(TRANSACTION_LOG),
    recovery_advice: advice::STATUS,
    damage: remove_file,
};

pub(super) const CUT_TRANSACTION_LOG: Injury = Injury {
    name: "truncated-transaction-log",
    summary: "the last file of pg_xact was truncated",
    wants: Wants::once(TRANSACTION_LOG),
    recovery_advice: advice::STATUS,
    damage: cut_file,
};

pub(super) const ZEROED_TRANSACTION_LOG: Injury = Injury {
    name: "zeroed-transaction-log",
    summary: "the last file of pg_xact was overwritten with zeros",
    wants: Wants::once(TRANSACTION_LOG),
    recovery_advice: advice::STATUS,
    damage: zero_sectors_in_use,
};

pub(super) const LOST_MULTIXACT_OFFSETS: Injury = Injury {
    name: "lost-multixact-offsets",
    summary: "the last file of pg_multixact/offsets is gone",
    wants: Wants::once(MULTIXACT_OFFSETS),
    recovery_advice: advice::STATUS,
    damage: remove_file,
};

pub(super) const CUT_MULTIXACT_OFFSETS: Injury = Injury {
    name: "truncated-multixact-offsets",
    summary: "the last file of pg_multixact/offsets was truncated",
    wants: Wants::once(MULTIXACT_OFFSETS),
    recovery_advice: advice::STATUS,
    damage: cut_file,
};

pub(super) const ZEROED_MULTIXACT_OFFSETS: Injury = Injury {
    name: "zeroed-multixact-offsets",
    summary: "the last file of pg_multixact/offsets was overwritten with zeros",
    wants: Wants::once(MULTIXACT_OFFSETS),
    recovery_advice: advice::STATUS,
    damage: zero_sectors_in_use,
};

pub(super) const LOST_MULTIXACT_MEMBERS: Injury = Injury {
    name: "lost-multixact-members",
    summary: "the last file of pg_multixact/members is gone",
    wants: Wants::once(MULTIXACT_MEMBERS),
    recovery_advice: advice::STATUS,
    damage: remove_file,
};

pub(super) const CUT_MULTIXACT_MEMBERS: Injury = Injury {
    name: "truncated-multixact-members",
    summary: "the last file of pg_multixact/members was truncated",
    wants: Wants::once(MULTIXACT_MEMBERS),
    recovery_advice: advice::STATUS,
    damage: cut_file,
};

pub(super) const ZEROED_MULTIXACT_MEMBERS: Injury = Injury {
    name: "zeroed-multixact-members",
    summary: "the last file of pg_multixact/members was overwritten with zeros",
    wants: Wants::once(MULTIXACT_MEMBERS),
    recovery_advice: advice::STATUS,
    damage: zero_sectors_in_use,
};

pub(super) const MULTIXACT_OFFSET: Injury = Injury {
    name: "multixact-offset",
    summary: "the members of a multixact begin elsewhere",
    wants: Wants::once(MULTIXACT_OFFSETS),
    recovery_advice: advice::STATUS,
    damage: raise_offset,
};

fn raise_offset(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    // Multixact 0 does not exist; of the last one the next number bounds the offset only from
    // above.
    let multis = (bytes_in_use(target)? / OFFSET_BYTES).checked_sub(3)?;
    let number = 2 + usize::try_from(seed).ok()?.checked_rem(multis)?;
    let at = number * OFFSET_BYTES + 2;
    let raised = target.bytes.get(at)?.wrapping_add(1);
    let words = "an offset raised by 65536";
    let damage = Damage::edit(target, words, |bytes| put_u8(bytes, at, raised))?;
    let damage = damage.must(&["multixact-offset-out-of-range"]);
    Some(damage.may(&[TRANSACTION_STATUS]))
}

pub(super) const MULTIXACT_MEMBER_STATUS: Injury = Injury {
    name: "multixact-member-status",
    summary: "a member of a multixact does what no member can",
    wants: Wants::once(MULTIXACT_MEMBERS),
    recovery_advice: advice::STATUS,
    damage: replace_member_status,
};

fn replace_member_status(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let groups = (bytes_in_use(target)? / MEMBER_GROUP_BYTES).checked_sub(1)?;
    // Member 0 of the first group is never written.
    let at = match usize::try_from(seed).ok()? % (groups + 1) {
        0 => 1,
        group => group * MEMBER_GROUP_BYTES,
    };
    let words = "the status of a member set to 77";
    let damage = Damage::edit(target, words, |bytes| put_u8(bytes, at, 77))?;
    let damage = damage.must(&["multixact-member-out-of-range"]);
    Some(damage.may(&[TRANSACTION_STATUS]))
}
