//! Injuries that take files of relations and databases away.

use pgclinic_model::plan::Change;
use pgclinic_model::plural;
use pgclinic_source::{Entry, EntryKind};

use crate::advice;
use crate::followers::{LOST_CATALOGS, SHORT_FILES};
use crate::index_entries::entries_to;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_FILE, InjuryTarget, VERSION_FILE};

pub(super) const LOST_FILE: Injury = Injury {
    name: "lost-file",
    summary: "the file of a table is gone",
    wants: Wants::once(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: remove_table,
};

fn remove_table(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    (target.single_file()?.bytes() > 0).then_some(())?;
    let damage = Damage::remove(target.path.clone(), "the file removed");
    Some(damage.must(&["missing-file"]))
}

pub(crate) const LOST_SEGMENT: Injury = Injury {
    name: "lost-segment",
    summary: "a segment of a large table is gone, a later one is there",
    wants: Wants::large(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: remove_segment,
};

fn remove_segment(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let files = target.files?;
    let (number, rule) = match files.segments.len() {
        0 | 1 => return None,
        2 => (0, "missing-file"),
        _ => (1, "missing-segment"),
    };
    let damage = Damage::remove(files.path(number), format!("segment {number} removed"));
    Some(damage.must(&[rule]).may(&[SHORT_FILES]))
}

pub(super) const LOST_LAST_SEGMENT: Injury = Injury {
    name: "lost-last-segment",
    summary: "the last segment of a large table is gone",
    wants: Wants::large(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: remove_last_segment,
};

fn remove_last_segment(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let files = target.files?;
    let last = files.segments.last()?;
    let number = last.number;
    (number > 0 && last.len > 0).then_some(())?;
    let left = u64::from(number) * target.cluster.build.segment_blocks();
    let marked = target.last_marked();
    let marked = marked.is_some_and(|marked| u64::from(marked) >= left);
    let seen = match (entries_to(target, left..u64::MAX) > 0, marked) {
        (true, _) => Some("file-truncated"),
        (false, true) => Some("map-beyond-end"),
        (false, false) => None,
    };
    let damage = Damage::remove(files.path(number), format!("segment {number} removed"));
    let damage = damage.may(&[SHORT_FILES]);
    Some(damage.must_or_blind(seen, "a table that ends with a full segment is legal"))
}

pub(super) const EMPTIED_DATABASE_FOLDER: Injury = Injury {
    name: "emptied-database-folder",
    summary: "every file of a database is gone, its directory is left",
    wants: Wants::once(VERSION_FILE),
    recovery_advice: advice::FILE,
    damage: empty_database_directory,
};

fn empty_database_directory(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let directory = target.path.strip_suffix("/PG_VERSION")?;
    let entries = target.cluster.source().list(directory).ok()?;
    let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
    let remove = |(entry, number): (&Entry, usize)| Change::Remove {
        path: format!("{directory}/{}", entry.name),
        kept: format!("removed-{number}"),
    };
    let changes: Vec<Change> = files.zip(0..).map(remove).collect();
    let words = format!("{} of {directory} removed", plural(changes.len(), "file"));
    let damage = Damage::changes(changes, words)?;
    let damage = damage.must(&["missing-database-directory"]);
    Some(damage.may(&[LOST_CATALOGS]))
}
