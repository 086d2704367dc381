//! Where the chunks of some values stand, and where they should: the blocks that hold a chunk of
//! them, whoever sees it, and those that an entry of the index leads to. A page that went back to
//! an older state, or whose chunk has another number, is among them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::toast_chunk::ToastChunk;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Oid, Page};

use crate::btree_leaves::{Leaves, each_leaf, pages};
use crate::cluster::Cluster;
use crate::context::DatabaseContext;
use crate::files::ForkFiles;
use crate::pieces::Pieces;
use crate::relation::Relation;

/// Blocks by value; a value that is found nowhere is left out.
pub type BlocksOfValues = BTreeMap<Oid, BTreeSet<BlockNo>>;

/// The blocks of a TOAST relation that have, or should have, chunks of these values.
pub fn blocks_of_values(
    database: &DatabaseContext<'_>,
    toast: &Relation,
    values: &BTreeSet<Oid>,
) -> BlocksOfValues {
    let mut blocks = BlocksOfValues::new();
    let mut add = |value: Oid, block: BlockNo| {
        if values.contains(&value) {
            blocks.entry(value).or_default().insert(block);
        }
    };
    if let Some(files) = database.main_fork(toast) {
        each_chunk(database.cluster, files, &mut add);
    }
    for index in indexes_of(database, toast) {
        if let Some(files) = database.main_fork(index) {
            each_entry(database.cluster, files, &mut add);
        }
    }
    blocks
}

fn indexes_of<'a>(database: &DatabaseContext<'a>, toast: &Relation) -> Vec<&'a Relation> {
    let relations = database.catalog.relations.values();
    let own = relations.filter(|relation| {
        let index = relation.index.as_ref();
        index.is_some_and(|index| index.table == toast.oid)
    });
    own.collect()
}

fn each_chunk(cluster: &Cluster, files: &ForkFiles, add: &mut dyn FnMut(Oid, BlockNo)) {
    let pieces = Pieces::of(files, cluster.build);
    let (mut buffer, mut broken) = (Vec::new(), 0);
    for piece in (0..pieces.count()).filter_map(|number| pieces.get(number)) {
        for (block, page) in pages(cluster, &piece, &mut buffer, &mut broken) {
            each_chunk_of_page(page, block, add);
        }
    }
}

/// Whatever became of the transactions that wrote them.
fn each_chunk_of_page(page: Page<'_>, block: BlockNo, add: &mut dyn FnMut(Oid, BlockNo)) {
    let pointers = page.line_pointers().map(|(_, pointer)| pointer);
    for pointer in pointers.filter(|pointer| pointer.flags() == LpFlags::Normal) {
        let tuple = page.item(pointer).and_then(HeapTuple::parse);
        let chunk = tuple.and_then(ToastChunk::parse);
        if let Some(value) = chunk.and_then(|chunk| chunk.chunk_id) {
            add(value, block);
        }
    }
}

/// The first column of the index is the number of the value.
fn each_entry(cluster: &Cluster, files: &ForkFiles, add: &mut dyn FnMut(Oid, BlockNo)) {
    each_leaf(cluster, files, Leaves::All, &mut |_, leaf| {
        for (_, entry) in leaf.data() {
            let value = entry.0.data().first_chunk().copied();
            if let Some(value) = value.map(u32::from_le_bytes) {
                entry.rows().for_each(|tid| add(value, tid.block));
            }
        }
        true
    });
}
