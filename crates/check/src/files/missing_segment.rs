//! A gap between the segments of a fork.

use pgclinic_cluster::inventory::{Inventory, is_orphan};
use pgclinic_cluster::{Comparison, DatabaseContext};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static MISSING_SEGMENT: Rule = Rule::from_page(include_str!("../../rules/missing-segment.md"));

/// See [`MISSING_SEGMENT`].
pub struct MissingSegment;

impl DatabaseCheck for MissingSegment {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISSING_SEGMENT] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        if !database.cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let inventory = Inventory::new(database);
        let lasting = database
            .forks
            .iter()
            .filter(|files| files.temporary.is_none());
        for files in lasting {
            let used: Vec<_> = files
                .segments
                .iter()
                .filter(|segment| segment.len > 0)
                .collect();
            let Some(last) = used.last() else { continue };
            for (from, to) in gaps(
                files.segments.iter().map(|segment| segment.number),
                last.number,
            ) {
                if is_orphan(database, files) {
                    break;
                }
                let message = if from == to {
                    format!(
                        "segment {from} is missing, segment {} is there",
                        last.number
                    )
                } else {
                    format!(
                        "segments {from} to {to} are missing, segment {} is there",
                        last.number
                    )
                };
                let draft = Draft::new(&MISSING_SEGMENT, message)
                    .fact("first_missing", from)
                    .fact("last_missing", to);
                let draft = draft.place(inventory.place_of(files, from));
                out.add(draft.follows_files(files, files.fork));
            }
        }
    }
}

/// The runs of numbers between 0 and `last` that ascending `present` leaves out. A missing first
/// file is a missing relation and told by another rule.
fn gaps(present: impl Iterator<Item = u32>, last: u32) -> Vec<(u32, u32)> {
    let mut gaps = Vec::new();
    let mut expected = 1;
    for number in present.filter(|number| *number > 0 && *number <= last) {
        if number > expected {
            gaps.push((expected, number - 1));
        }
        expected = number.saturating_add(1);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_end_with_the_last_used_segment() {
        assert_eq!(gaps([0, 1, 2].into_iter(), 2), []);
        assert_eq!(gaps([0, 2, 7].into_iter(), 7), [(1, 1), (3, 6)]);
        assert_eq!(
            gaps([0, 5].into_iter(), 0),
            [],
            "an empty segment 5 asks for nothing before it"
        );
        assert_eq!(
            gaps([0, u32::MAX].into_iter(), u32::MAX),
            [(1, u32::MAX - 1)]
        );
    }
}
