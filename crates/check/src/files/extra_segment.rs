//! Pages behind the place where the server takes the relation to end.

use pgclinic_cluster::inventory::{Inventory, is_orphan};
use pgclinic_cluster::{Comparison, DatabaseContext, Segment};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static EXTRA_SEGMENT: Rule = Rule::from_page(include_str!("../../rules/extra-segment.md"));

/// See [`EXTRA_SEGMENT`].
pub struct ExtraSegment;

impl DatabaseCheck for ExtraSegment {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&EXTRA_SEGMENT] }
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
            for (segment, message) in extras(&files.segments, full) {
                if is_orphan(database, files) {
                    break;
                }
                let draft = Draft::new(&EXTRA_SEGMENT, message).fact("bytes", segment.len);
                let draft = draft.place(inventory.place_of(files, segment.number));
                out.add(draft.follows_files(files, files.fork));
            }
        }
    }
}

fn extras(segments: &[Segment], full: u64) -> Vec<(Segment, String)> {
    let mut found = Vec::new();
    let mut end: Option<Segment> = None;
    for segment in segments {
        match end {
            Some(end) if segment.len > 0 => {
                let message = format!(
                    "segment {} has {} bytes, but the relation ends in segment {}",
                    segment.number, segment.len, end.number
                );
                found.push((*segment, message));
            }
            _ if segment.len > full => {
                let message = format!(
                    "segment {} has {} bytes, more than {full}",
                    segment.number, segment.len
                );
                found.push((*segment, message));
            }
            _ => {}
        }
        if segment.len < full {
            end = end.or(Some(*segment));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lens: &[u64]) -> Vec<String> {
        let segments: Vec<_> = lens
            .iter()
            .zip(0..)
            .map(|(len, number)| Segment { number, len: *len })
            .collect();
        extras(&segments, 100)
            .into_iter()
            .map(|(_, message)| message)
            .collect()
    }

    #[test]
    fn empty_segments_behind_the_last_one_are_left_by_a_truncation() {
        assert!(said(&[100, 40, 0, 0]).is_empty());
        assert!(said(&[100, 100, 0]).is_empty());
        assert_eq!(
            said(&[40, 7]),
            ["segment 1 has 7 bytes, but the relation ends in segment 0"]
        );
        assert_eq!(
            said(&[100, 101]),
            ["segment 1 has 101 bytes, more than 100"]
        );
    }
}
