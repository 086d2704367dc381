//! Injuries of init forks, from which unlogged relations are made again after a crash.

use pgclinic_format::build::{put_u32, seal_page};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::plan::Change;

use super::btree::ROOT_AT;
use crate::advice;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INIT_FILE, InjuryTarget};

pub(super) const LOST_INIT_FORK: Injury = Injury {
    name: "lost-init-fork",
    summary: "the init fork of an unlogged relation is gone",
    wants: Wants::once(INIT_FILE),
    recovery_advice: advice::FILE,
    damage: remove_init_fork,
};

fn remove_init_fork(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    target.files?;
    let damage = Damage::remove(target.path.clone(), "the init fork removed");
    Some(damage.must(&["missing-init-fork"]))
}

pub(super) const INIT_FORK_CONTENT: Injury = Injury {
    name: "init-fork-content",
    summary: "the init fork of an unlogged index has a root",
    wants: Wants::once(INIT_FILE),
    recovery_advice: advice::INDEX,
    damage: give_root,
};

fn give_root(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    (target.method()? == AccessMethod::Btree).then_some(())?;
    let before = target.other_block(0)?;
    let mut after = before.clone();
    put_u32(&mut after, ROOT_AT, 1);
    if target.has_checksums() {
        seal_page(&mut after, 0);
    }
    let change = Change::Bytes {
        path: target.path.clone(),
        offset: 0,
        before,
        after,
    };
    let words = "the root set to block 1, with a right checksum";
    Some(Damage::change(change, words).must(&["init-fork-content"]))
}
