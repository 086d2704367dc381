//! What the btrees of a table say of its blocks: which injuries of the table they give away.

use std::ops::Range;

use pgclinic_cluster::{ForkFiles, Relation, read_block};
use pgclinic_format::btree::BtreePage;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, LpFlags, Page};

use crate::injury_target::InjuryTarget;

/// Entries of valid btrees of the target's table that name rows of these blocks and are not marked
/// dead.
pub(crate) fn entries_to(target: &InjuryTarget<'_>, blocks: Range<u64>) -> u64 {
    let names = |index: &Relation| in_index(target, index, &blocks).unwrap_or(0);
    btrees_of(target).into_iter().map(names).sum()
}

/// Some valid btree of the target's table has an entry for each of its rows.
pub(crate) fn has_complete_btree(target: &InjuryTarget<'_>) -> bool {
    let is_complete = |index: &&Relation| {
        let index = index.index.as_ref();
        index.is_some_and(|index| !index.has_predicate)
    };
    btrees_of(target).iter().any(is_complete)
}

/// No valid index of the target's table leads to rows of these blocks. Other indexes than btrees
/// are not read: a table that has one may be given away by it.
pub(crate) fn nothing_leads_to(target: &InjuryTarget<'_>, blocks: Range<u64>) -> bool {
    let is_mute = |index: &&Relation| {
        use AccessMethod::{Brin, Btree};
        matches!(index.page_method(), Some(Btree | Brin) | None)
    };
    indexes_of(target).iter().all(is_mute) && entries_to(target, blocks) == 0
}

fn btrees_of<'a>(target: &InjuryTarget<'a>) -> Vec<&'a Relation> {
    let mut indexes = indexes_of(target);
    indexes.retain(|index| index.page_method() == Some(AccessMethod::Btree));
    indexes
}

fn indexes_of<'a>(target: &InjuryTarget<'a>) -> Vec<&'a Relation> {
    let (Some(table), Some(catalog)) = (target.relation, target.catalog) else {
        return Vec::new();
    };
    let is_own = |relation: &&Relation| {
        let index = relation.index.as_ref();
        index.is_some_and(|index| index.table == table.oid && index.valid && index.live)
    };
    catalog.relations.values().filter(is_own).collect()
}

fn in_index(target: &InjuryTarget<'_>, index: &Relation, blocks: &Range<u64>) -> Option<u64> {
    let files = files_of(target, index)?;
    let build = target.cluster.build;
    let source = target.cluster.source().as_ref();
    let mut entries = 0;
    for number in 1..files.blocks(build.block_size, build.segment_bytes) {
        let bytes = read_block(source, &files, build, BlockNo::try_from(number).ok()?)?;
        let page = Page::parse(&bytes).and_then(BtreePage::parse);
        let leaf = page.filter(|leaf| leaf.is_leaf() && !leaf.is_ignored());
        entries += leaf.map_or(0, |leaf| in_leaf(leaf, blocks));
    }
    Some(entries)
}

fn files_of(target: &InjuryTarget<'_>, index: &Relation) -> Option<ForkFiles> {
    let database = target.files.map_or(0, |files| files.home.database);
    let mut homes = target.cluster.homes.iter();
    let home =
        homes.find(|home| home.tablespace == index.tablespace && home.database == database)?;
    let files = target.cluster.files(home).ok()?.into_iter();
    let mut own = files.filter(|files| files.filenode == index.filenode);
    own.find(|files| files.fork == Fork::Main && files.temporary.is_none())
}

fn in_leaf(leaf: BtreePage<'_>, blocks: &Range<u64>) -> u64 {
    let alive = |item: &u16| {
        let pointer = leaf.page().line_pointer(*item);
        pointer.is_some_and(|pointer| pointer.flags() == LpFlags::Normal)
    };
    let entries = leaf.data().filter(|(item, _)| alive(item));
    let rows = entries.flat_map(|(_, tuple)| tuple.rows());
    rows.filter(|tid| blocks.contains(&u64::from(tid.block)))
        .count() as u64
}
