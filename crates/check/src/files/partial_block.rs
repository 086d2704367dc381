//! A relation file whose length is no multiple of the block size.

use pgclinic_cluster::inventory::{Inventory, is_orphan};
use pgclinic_cluster::{Comparison, DatabaseContext};
use pgclinic_model::document::Level;
use pgclinic_model::plural;
use pgclinic_model::{Rule, Severity};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static PARTIAL_BLOCK: Rule = Rule::from_page(include_str!("../../rules/partial-block.md"));

/// See [`PARTIAL_BLOCK`].
pub struct PartialBlock;

impl DatabaseCheck for PartialBlock {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PARTIAL_BLOCK] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let block_size = u64::from(database.cluster.build.block_size);
        let inventory = Inventory::new(database);
        let lasting = database
            .forks
            .iter()
            .filter(|files| files.temporary.is_none());
        for files in lasting {
            let last = files
                .segments
                .iter()
                .rfind(|segment| segment.len > 0)
                .map(|segment| segment.number);
            for segment in &files.segments {
                let rest = segment.len % block_size;
                if rest == 0 {
                    continue;
                }
                let message = format!(
                    "the file has {} bytes: {} and {}",
                    segment.len,
                    plural(segment.len / block_size, "whole block"),
                    plural(rest, "byte")
                );
                let is_last = Some(segment.number) == last;
                let half_written =
                    is_last && !database.cluster.may_compare(Comparison::FilesWithCatalogs);
                let is_room = is_last && database.cluster.ends_in_room(files, *segment);
                let severity = if half_written || is_room || is_orphan(database, files) {
                    Severity::Note
                } else {
                    Severity::Damage
                };
                let draft = Draft::new(&PARTIAL_BLOCK, message).severity(severity);
                let mut place = inventory.place_of(files, segment.number);
                place.bytes = Some([segment.len - rest, segment.len]);
                out.add(
                    draft
                        .fact("bytes", segment.len)
                        .fact("rest_bytes", rest)
                        .follows_files(files, files.fork)
                        .place(place),
                );
            }
        }
    }
}
