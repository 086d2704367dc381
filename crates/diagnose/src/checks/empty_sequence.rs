//! A sequence without its page.

use pgclinic_cluster::RelKind;
use pgclinic_format::Fork;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use super::empty_index::no_first_block_words;
use crate::check::{DatabaseCheck, DatabaseCx};
use crate::findings::{Draft, Findings};
use crate::inventory::Inventory;

/// The rule.
pub static EMPTY_SEQUENCE: Rule = Rule {
    name: "empty-sequence",
    severity: Severity::Damage,
    summary: "a sequence has no page",
    explain: "\
A sequence is one page with one row that holds its last value. The file of this one has no whole block.

`nextval` and `setval` fail with `could not read block … in file \"…\": read only 0 of … bytes`, and so do \
inserts into every table whose column takes its default from it. `pg_dump` reads sequences, so it fails \
as well.

The file was emptied or cut, or an empty one was created in place of a lost one. In the `init` fork of an \
unlogged sequence the same does harm only after the next crash.

Only the position of the sequence is lost, and it can be found again: look for the highest number in the \
columns that use it. Take a copy, note the definition in `pg_sequence`, then drop the sequence and create \
it again with a start value above that number, or put the file back from a backup and call `setval`.",
};

/// See [`EMPTY_SEQUENCE`].
pub struct EmptySequence;

impl DatabaseCheck for EmptySequence {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&EMPTY_SEQUENCE] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseCx<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        let build = database.cluster.build;
        let sequences = inventory
            .relations()
            .filter(|relation| relation.kind == RelKind::Sequence);
        for relation in sequences {
            for fork in [Fork::Main, Fork::Init] {
                let Some(files) = inventory.fork(relation, fork) else {
                    continue;
                };
                let begins = files
                    .segments
                    .first()
                    .is_some_and(|first| first.number == 0);
                if !begins || files.blocks(build.block_size, build.segment_bytes) > 0 {
                    continue;
                }
                let message = format!(
                    "the {fork} fork of sequence {} has no page",
                    relation.qualified_name()
                );
                let draft =
                    Draft::new(&EMPTY_SEQUENCE, message).place(inventory.place_of(files, 0));
                out.add(match no_first_block_words(database, files) {
                    Some(words) => draft.server_says(words),
                    None => draft,
                });
            }
        }
    }
}
