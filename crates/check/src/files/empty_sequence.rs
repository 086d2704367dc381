//! A sequence without its page.

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{DatabaseContext, RelKind};
use pgclinic_format::Fork;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::DatabaseCheck;
use crate::files::empty_index::no_first_block_words;
use crate::findings::{Draft, Findings};

/// The rule.
pub static EMPTY_SEQUENCE: Rule = Rule::from_page(include_str!("../../rules/empty-sequence.md"));

/// See [`EMPTY_SEQUENCE`].
pub struct EmptySequence;

impl DatabaseCheck for EmptySequence {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&EMPTY_SEQUENCE] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable_at_rest(database) else {
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
