//! A segment that is not full although later ones hold pages.

use pgclinic_cluster::inventory::{Inventory, is_orphan};
use pgclinic_cluster::{Comparison, DatabaseContext};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static SHORT_SEGMENT: Rule = Rule::from_page(include_str!("../../rules/short-segment.md"));

/// See [`SHORT_SEGMENT`].
pub struct ShortSegment;

impl DatabaseCheck for ShortSegment {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SHORT_SEGMENT] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        if !database.cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let full = database.cluster.build.segment_bytes;
        let inventory = Inventory::new(database);
        let lasting = database
            .forks
            .iter()
            .filter(|files| files.temporary.is_none());
        for files in lasting {
            let Some(last) = files.segments.iter().rposition(|segment| segment.len > 0) else {
                continue;
            };
            let before = files
                .segments
                .iter()
                .take(last)
                .filter(|segment| segment.len < full);
            for segment in before {
                if is_orphan(database, files) {
                    break;
                }
                let message = format!(
                    "segment {} has {} of {full} bytes, and a later segment is not empty",
                    segment.number, segment.len
                );
                let draft = Draft::new(&SHORT_SEGMENT, message)
                    .fact("bytes", segment.len)
                    .fact("full_bytes", full);
                let draft = draft.place(inventory.place_of(files, segment.number));
                out.add(draft.follows_files(files, files.fork));
            }
        }
    }
}
