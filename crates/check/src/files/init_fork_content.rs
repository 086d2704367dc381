//! An init fork that is not what an empty relation of its kind looks like.
//!
//! Truth: the `ambuildempty` functions of the index access methods, and
//! `heapam_relation_set_new_filelocator` in `src/backend/access/heap/heapam_handler.c`.

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{DatabaseContext, ForkFiles, RelKind, Relation, read_block};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{BlockNo, Fork, Page};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static INIT_FORK_CONTENT: Rule =
    Rule::from_page(include_str!("../../rules/init-fork-content.md"));

/// See [`INIT_FORK_CONTENT`].
pub struct InitForkContent;

/// Where a btree's meta page names its root.
const BTREE_ROOT: std::ops::Range<usize> = HEADER_BYTES + 8..HEADER_BYTES + 12;

impl DatabaseCheck for InitForkContent {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&INIT_FORK_CONTENT] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        for relation in inventory.relations() {
            let Some(files) = inventory.fork(relation, Fork::Init) else {
                continue;
            };
            let begins = files
                .segments
                .first()
                .is_some_and(|first| first.number == 0);
            let Some((message, block)) = expected_blocks(relation)
                .filter(|_| begins)
                .and_then(|expected| fault(database, relation, files, expected))
            else {
                continue;
            };
            let mut place = inventory.place_of(files, 0);
            place.block = block;
            out.add(Draft::new(&INIT_FORK_CONTENT, message).place(place));
        }
    }
}

/// Pages of an empty relation; nothing for those of extensions.
fn expected_blocks(relation: &Relation) -> Option<u64> {
    match (relation.kind, relation.page_method()?) {
        (RelKind::Table | RelKind::Toast, AccessMethod::Heap) => Some(0),
        (RelKind::Sequence, _) => Some(1),
        (RelKind::Index, AccessMethod::Btree | AccessMethod::Gist | AccessMethod::Brin) => Some(1),
        (RelKind::Index, AccessMethod::Gin) => Some(2),
        (RelKind::Index, AccessMethod::Spgist) => Some(3),
        (RelKind::Index, AccessMethod::Hash) => Some(4),
        _ => None,
    }
}

fn fault(
    database: &DatabaseContext<'_>,
    relation: &Relation,
    files: &ForkFiles,
    expected: u64,
) -> Option<(String, Option<BlockNo>)> {
    let build = database.cluster.build;
    let blocks = files.blocks(build.block_size, build.segment_bytes);
    // That an index or a sequence has none at all is told by other rules.
    if blocks == 0 && expected > 0 {
        return None;
    }
    let name = relation.qualified_name();
    if files.bytes() != expected * u64::from(build.block_size) {
        let message = format!(
            "the init fork of {name} has {} bytes instead of {}",
            files.bytes(),
            plural(expected, "page")
        );
        return Some((message, None));
    }
    let source = database.cluster.source().as_ref();
    (0..u32::try_from(expected).unwrap_or(0)).find_map(|block| {
        let bytes = read_block(source, files, build, block)?;
        let page = Page::parse(&bytes).filter(|page| page.header_is_sane_to_the_server())?;
        let what = content(relation, page, block)?;
        Some((format!("the init fork of {name} has {what}"), Some(block)))
    })
}

/// What an empty index does not have on this page.
fn content(relation: &Relation, page: Page<'_>, block: BlockNo) -> Option<String> {
    let empty = match relation.page_method()? {
        AccessMethod::Btree => {
            let root = u32::from_le_bytes(*page.bytes().get(BTREE_ROOT)?.first_chunk()?);
            return (root != 0).then(|| format!("a root on block {root}"));
        }
        AccessMethod::Gist => block == 0,
        AccessMethod::Gin | AccessMethod::Spgist => block > 0,
        AccessMethod::Hash => block == 1 || block == 2,
        _ => false,
    };
    let count = page.line_pointer_count();
    (empty && count > 0).then(|| format!("{} on block {block}", plural(count, "entry")))
}
