//! An index without a single page, or without the first ones.

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{Cluster, DatabaseContext, ForkFiles, RelKind, Relation};
use pgclinic_format::Fork;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static EMPTY_INDEX: Rule = Rule::from_page(include_str!("../../rules/empty-index.md"));

/// See [`EMPTY_INDEX`].
pub struct EmptyIndex;

impl DatabaseCheck for EmptyIndex {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&EMPTY_INDEX] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable_at_rest(database) else {
            return;
        };
        let (cluster, build) = (database.cluster, database.cluster.build);
        let indexes = inventory.relations();
        let indexes = indexes.filter(|relation| {
            let has_pages = is_known(relation) || had_pages(cluster, relation);
            relation.kind == RelKind::Index && has_pages && is_built(relation)
        });
        for relation in indexes {
            for fork in [Fork::Main, Fork::Init] {
                let Some(files) = inventory.fork(relation, fork) else {
                    continue;
                };
                let begins = files
                    .segments
                    .first()
                    .is_some_and(|first| first.number == 0);
                let blocks = files.blocks(build.block_size, build.segment_bytes);
                let first_pages = relation.access_method.map_or(1, first_pages);
                if !begins || blocks >= first_pages {
                    continue;
                }
                let name = relation.qualified_name();
                let message = match blocks {
                    0 => format!("the {fork} fork of index {name} has no pages"),
                    _ => format!(
                        "the {fork} fork of index {name} has {blocks} of the {first_pages} pages that it is made with"
                    ),
                };
                let draft = Draft::new(&EMPTY_INDEX, message).place(inventory.place_of(files, 0));
                let planner_reads_it = relation.access_method == Some(AccessMethod::Btree);
                let words = no_first_block_words(database, files).filter(|_| planner_reads_it);
                out.add(match words {
                    Some(words) => draft.server_says(words),
                    None => draft,
                });
            }
        }
    }
}

fn is_known(relation: &Relation) -> bool {
    relation
        .access_method
        .is_some_and(|own| own != AccessMethod::Heap)
}

/// An index of an extension, of which `pg_class` counts pages: that was true of the file when it
/// was made. Whether one without rows may be without pages only the extension knows; one of `bloom`
/// may not (`blbuild` in `contrib/bloom/blinsert.c`).
fn had_pages(cluster: &Cluster, relation: &Relation) -> bool {
    let is_counted = relation.relpages > 0 && cluster.counts_own_pages();
    let foreign = relation.foreign_method.as_ref();
    foreign.is_some_and(|own| !own.is_of_table && (is_counted || own.name == "bloom"))
}

/// Pages that every index of the method has, that of an empty table too.
fn first_pages(method: AccessMethod) -> u64 {
    match method {
        // The meta page and the root.
        AccessMethod::Gin => 2,
        // The meta page, the root, and the root of nulls.
        AccessMethod::Spgist => 3,
        _ => 1,
    }
}

/// `CREATE INDEX CONCURRENTLY` commits an empty file first, which stays when it fails; nobody reads
/// or writes the index before it is ready.
fn is_built(relation: &Relation) -> bool {
    relation.index.as_ref().is_none_or(|index| index.ready)
}

/// What the server says when it wants block 0 of an empty main fork.
pub(crate) fn no_first_block_words(cx: &DatabaseContext<'_>, files: &ForkFiles) -> Option<String> {
    (files.fork == Fork::Main && files.bytes() == 0).then_some(())?;
    let blocks = match cx.cluster.layout.major {
        ..17 => "block 0",
        _ => "blocks 0..0",
    };
    let (path, bytes) = (files.path(0), cx.cluster.build.block_size);
    Some(format!(
        "ERROR:  could not read {blocks} in file \"{path}\": read only 0 of {bytes} bytes"
    ))
}
