//! A relation file whose length is no multiple of the block size.

use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::{DatabaseCheck, DatabaseCx};
use crate::findings::{Draft, Findings};
use crate::inventory::{Inventory, is_orphan};

/// The rule.
pub static PARTIAL_BLOCK: Rule = Rule {
    name: "partial-block",
    severity: Severity::Damage,
    summary: "a relation's file ends within a block",
    explain: "\
PostgreSQL writes and extends relations by whole blocks, so the length of every file of a relation is a \
multiple of the block size. This one has some bytes more.

The server ignores the rest: to it the relation ends with the last whole block. If the file was cut within \
a block, the rows of that block and of all that followed are gone without a message; `pg_checksums` and \
`pg_basebackup` may complain about the length.

Usual causes: the file was cut by a full disk, a quota or an interrupted copy, or something appended bytes \
that are none of PostgreSQL's. After a crash a half-written last block is normal and replay mends it; \
there, and in files that belong to no relation, this is only a note.

Keep a copy with the odd end. Compare the length with a backup or a standby: a shorter file has to be \
restored from there, superfluous bytes at the end do no harm until the relation grows.",
};

/// See [`PARTIAL_BLOCK`].
pub struct PartialBlock;

impl DatabaseCheck for PartialBlock {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PARTIAL_BLOCK] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseCx<'_>, out: &mut Findings) {
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
                    "the file has {} bytes: {} whole blocks and {rest} bytes",
                    segment.len,
                    segment.len / block_size
                );
                let half_written = Some(segment.number) == last && !database.cluster.is_settled();
                let severity = match half_written || is_orphan(database, files) {
                    true => Severity::Note,
                    false => Severity::Damage,
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
