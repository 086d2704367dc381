//! Injuries written to a copy.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_model::plan::Change;
use pgclinic_surgery::{InjuryOptions, InjuryTargets, PlannedInjury, injury_named, plan_on};
use pgclinic_testkit::{TempCopy, open};

/// Somewhere in the seed's database, with a checksum that is right.
pub(crate) fn anywhere() -> InjuryOptions {
    InjuryOptions {
        database: Some("clinic".into()),
        sealed: true,
        ..InjuryOptions::default()
    }
}

/// Writes what was planned.
pub(crate) fn write(pgdata: &Path, planned: &PlannedInjury) {
    for change in &planned.patch.changes {
        let Change::Bytes {
            path,
            offset,
            after,
            ..
        } = change
        else {
            panic!("pages are hurt in place");
        };
        let file = File::options()
            .write(true)
            .open(pgdata.join(path))
            .expect("a file");
        file.write_all_at(after, *offset).expect("a write");
    }
}

/// Hurts up to `pages_each` pages by each injury; how many found a page of their own.
pub(crate) fn hurt_pages(copy: &TempCopy, injuries: &[&str], pages_each: usize) -> usize {
    let cluster = open(&copy.pgdata);
    let targets = InjuryTargets::new(&cluster);
    let mut taken = BTreeSet::new();
    for name in injuries {
        let injury = injury_named(name).expect("an injury");
        let planned = (0..8).filter_map(|seed| {
            let options = InjuryOptions { seed, ..anywhere() };
            plan_on(&targets, injury, &options).ok()
        });
        planned
            .filter(|planned| taken.insert((planned.place.relation_oid, planned.place.block)))
            .take(pages_each)
            .for_each(|planned| write(&copy.pgdata, &planned));
    }
    taken.len()
}
