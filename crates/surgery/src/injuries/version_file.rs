//! Injuries of the `PG_VERSION` of a database.

use crate::advice;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{self, InjuryTarget};

pub(super) const LOST_VERSION_FILE: Injury = Injury {
    name: "lost-version-file",
    summary: "PG_VERSION of a database is gone",
    wants: Wants::once(injury_target::VERSION_FILE),
    recovery_advice: advice::VERSION,
    damage: remove_version_file,
};

fn remove_version_file(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let damage = Damage::remove(target.path.clone(), "PG_VERSION removed");
    Some(damage.must(&["version-file"]))
}

pub(super) const VERSION_FILE: Injury = Injury {
    name: "version-file",
    summary: "PG_VERSION of a database names another major",
    wants: Wants::once(injury_target::VERSION_FILE),
    recovery_advice: advice::VERSION,
    damage: name_another_major,
};

fn name_another_major(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let damage = Damage::edit(target, "PG_VERSION changed", |text| {
        let last = text.iter_mut().rev().find(|byte| byte.is_ascii_digit());
        last.into_iter()
            .for_each(|digit| *digit = if *digit == b'4' { b'5' } else { b'4' });
    })?;
    Some(damage.must(&["version-file"]))
}
