//! A segment that is not full although later ones hold pages.

use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::{DatabaseCheck, DatabaseCx};
use crate::findings::{Draft, Findings};
use crate::inventory::{Inventory, is_orphan};

/// The rule.
pub static SHORT_SEGMENT: Rule = Rule {
    name: "short-segment",
    severity: Severity::Damage,
    summary: "a segment is not full although the next ones hold pages",
    explain: "\
A relation larger than a segment (1 GB in most builds) lies in several files, and each but the last one \
is full to the byte. This segment is shorter, and a later one is not empty.

The server takes the end of the first segment that is not full for the end of the relation. Scans stop \
there without a word: counts are too low and a dump lacks rows. Index scans that lead behind it say \
`could not open file \"…\" (target block …): previous segment is only … blocks`.

The file was cut, by a full disk while it was copied, an interrupted copy, or a file system that lost its \
end; or a stray later segment of another day lies behind a relation that really ends here.

Copy all segments first. Compare their lengths with a backup or a standby, and put back the one that \
differs, then replay the WAL. Until then do not write to the relation and do not `VACUUM` it. An index \
is made again with `REINDEX`.",
};

/// See [`SHORT_SEGMENT`].
pub struct ShortSegment;

impl DatabaseCheck for ShortSegment {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SHORT_SEGMENT] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseCx<'_>, out: &mut Findings) {
        if !database.cluster.is_settled() {
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
