//! Injuries of free space maps (`src/include/storage/fsm_internals.h`): a page is a binary tree of
//! bytes, in which every node is the larger of its two children.

use pgclinic_format::free_space_map::NODES_AT;

use crate::advice;
use crate::byte_edits::put_u8;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{FREE_SPACE_PAGE, InjuryTarget};

pub(super) const FREE_SPACE_NODE: Injury = Injury {
    name: "free-space-node",
    summary: "the root of a page of a free space map says less than its branches",
    wants: Wants::page(FREE_SPACE_PAGE),
    recovery_advice: advice::NOTHING,
    damage: lower_root,
};

fn lower_root(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let root = *target.bytes.get(NODES_AT)?;
    let less = root.checked_sub(1)?;
    let words = format!("the root's {root} set to {less}");
    let damage = Damage::edit(target, words, |page| put_u8(page, NODES_AT, less))?;
    Some(damage.must(&["free-space-map-tree"]))
}
