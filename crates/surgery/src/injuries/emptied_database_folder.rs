//! Every file of a database is gone; its folder is left.

use pgclinic_model::plan::{Change, Patch};
use pgclinic_source::EntryKind;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, VERSION_FILE};
use crate::way_out;

/// See the module.
pub struct EmptiedDatabaseFolder;

impl Injury for EmptiedDatabaseFolder {
    fn name(&self) -> &'static str {
        "emptied-database-folder"
    }

    fn summary(&self) -> &'static str {
        "every file of a database is gone, its folder is left"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(VERSION_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let folder = site.path.strip_suffix("/PG_VERSION")?;
        let entries = site.cluster.source().list(folder).ok()?;
        let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
        let remove = |(entry, number): (&pgclinic_source::Entry, usize)| Change::Remove {
            path: format!("{folder}/{}", entry.name),
            kept: format!("removed-{number}"),
        };
        let changes: Vec<Change> = files.zip(0..).map(remove).collect();
        let words = format!("{} files of {folder} removed", changes.len());
        let wound = Wound::of_all(Patch { changes }, words)?;
        Some(
            wound
                .must(&["missing-database-folder"])
                .may(&[followers::LOST_CATALOGS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
