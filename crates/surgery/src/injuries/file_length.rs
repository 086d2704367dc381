//! Injuries that leave the file of a relation shorter than it was.

use pgclinic_format::index_page::{AccessMethod, btree_links};
use pgclinic_format::{BlockNo, Fork, Page, RelationMap, oid};
use pgclinic_model::plan::Change;
use pgclinic_model::plural;

use crate::advice;
use crate::followers::{LOST_CATALOGS, SHORT_FILES};
use crate::index_entries::{entries_to, has_complete_btree, nothing_leads_to};
use crate::injury::{Damage, Injury, Wants, cut};
use crate::injury_target::{HEAP_FILE, INDEX_FILE, InjuryTarget, RELATION_MAP, SEQUENCE_FILE};

fn block_bytes(target: &InjuryTarget<'_>) -> u64 {
    u64::from(target.cluster.build.block_size)
}

/// Cuts a table to so many blocks and takes its visibility map away.
fn cut_without_map(target: &InjuryTarget<'_>, blocks: u64) -> Option<Damage> {
    let cut = cut(target.path.clone(), blocks * block_bytes(target));
    let remove = target.sibling(Fork::Vm).map(|map| Change::Remove {
        path: map.path(0),
        kept: "removed".into(),
    });
    let changes = std::iter::once(cut).chain(remove).collect();
    let words = format!(
        "the file truncated to {blocks}, its map removed",
        blocks = plural(blocks, "block")
    );
    Damage::changes(changes, words)
}

pub(super) const SHORT_SEGMENT: Injury = Injury {
    name: "short-segment",
    summary: "the first segment of a large table was truncated",
    wants: Wants::large(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: cut_first_segment,
};

fn cut_first_segment(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let segment = target.files?.segments.first()?;
    let less = block_bytes(target) * (1 + seed % 100);
    let len = segment.len.checked_sub(less)?;
    let damage = Damage::cut(
        target,
        len,
        format!("segment 0 truncated to {}", plural(len, "byte")),
    );
    let damage = damage.must(&["short-segment", "extra-segment"]);
    Some(damage.may(&[SHORT_FILES]))
}

pub(super) const CUT_FILE: Injury = Injury {
    name: "truncated-file",
    summary: "a table was truncated at the border of a block, its visibility map was not",
    wants: Wants::once(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: cut_within_map,
};

fn cut_within_map(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let bytes = target.single_file()?.bytes();
    let marked = u64::from(target.last_marked()?);
    let left = 1 + seed.checked_rem(marked)?;
    let len = left * block_bytes(target);
    (len < bytes).then_some(())?;
    let damage = Damage::cut(
        target,
        len,
        format!("the file truncated to {left}", left = plural(left, "block")),
    );
    // An index that would know rows there and knows none leaves only the map to be wrong.
    let proven = entries_to(target, left..u64::MAX) > 0 || !has_complete_btree(target);
    let root = proven.then_some("file-truncated");
    let damage = damage.must(&["map-beyond-end"]).must(root.as_slice());
    Some(damage.may(&[SHORT_FILES]))
}

pub(super) const CUT_FILE_UNSEEN: Injury = Injury {
    name: "truncated-file-unseen",
    summary: "a table was truncated at the border of a block, and no index and no map tells how long it was",
    wants: Wants::once(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: cut_last_block_that_nothing_names,
};

fn cut_last_block_that_nothing_names(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let blocks = target.single_file()?.bytes() / block_bytes(target);
    let left = blocks.checked_sub(1)?;
    nothing_leads_to(target, left..u64::MAX).then_some(())?;
    let counted = u64::try_from(target.relation?.relpages).unwrap_or(0);
    let seen = (counted > left).then_some("pages-beyond-end");
    Some(cut_without_map(target, left)?.must_or_blind(
        seen,
        "a table may end at any block where no index and no map knows more; relpages is only an estimate",
    ))
}

pub(super) const CUT_FILE_WITHOUT_MAP: Injury = Injury {
    name: "truncated-file-without-map",
    summary: "a table was truncated at the border of a block and its map is gone, an index knows its rows",
    wants: Wants::once(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: cut_rows_that_an_index_names,
};

fn cut_rows_that_an_index_names(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let blocks = target.single_file()?.bytes() / block_bytes(target);
    // More than one entry: a single one would rather be wrong itself.
    let left = seed.checked_rem(blocks.checked_sub(1)?)?;
    (target.checkpoint().is_some() && entries_to(target, left..u64::MAX) > 1).then_some(())?;
    let damage = cut_without_map(target, left)?;
    Some(damage.must(&["file-truncated"]).may(&[SHORT_FILES]))
}

pub(super) const CUT_INSIDE_BLOCK: Injury = Injury {
    name: "truncated-inside-block",
    summary: "a table was truncated in the middle of a block",
    wants: Wants::once(HEAP_FILE),
    recovery_advice: advice::FILE,
    damage: cut_inside_last_block,
};

fn cut_inside_last_block(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let bytes = target.single_file()?.bytes();
    let len = bytes.checked_sub(1 + seed % 1000)?;
    let damage = Damage::cut(
        target,
        len,
        format!("the file truncated to {}", plural(len, "byte")),
    );
    Some(damage.must(&["partial-block"]).may(&[SHORT_FILES]))
}

pub(super) const CUT_INDEX: Injury = Injury {
    name: "truncated-index",
    summary: "a btree lost its last blocks",
    wants: Wants::once(INDEX_FILE),
    recovery_advice: advice::INDEX,
    damage: cut_last_block_of_btree,
};

fn cut_last_block_of_btree(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    (target.method()? == AccessMethod::Btree).then_some(())?;
    let blocks = target.single_file()?.bytes() / block_bytes(target);
    let left = blocks.checked_sub(1).filter(|left| *left > 1)?;
    // The left neighbour still leads to the page that is cut off.
    let (previous, _) = neighbours(target, BlockNo::try_from(left).ok()?)?;
    let (_, next) = neighbours(target, previous).filter(|_| previous != 0)?;
    (u64::from(next) == left).then_some(())?;
    let len = left * block_bytes(target);
    let damage = Damage::cut(
        target,
        len,
        format!("the file truncated to {left}", left = plural(left, "block")),
    );
    let damage = damage.must(&["btree-link-beyond-end"]);
    Some(damage.may(&[&["pages-beyond-end"]]))
}

/// The blocks to the left and to the right of a page of a B-tree.
fn neighbours(target: &InjuryTarget<'_>, block: BlockNo) -> Option<(BlockNo, BlockNo)> {
    let page = target.other_block(block)?;
    let (left, right, _) = btree_links(Page::parse(&page)?)?;
    Some((left, right))
}

pub(super) const EMPTIED_INDEX: Injury = Injury {
    name: "emptied-index",
    summary: "the file of an index is empty",
    wants: Wants::once(INDEX_FILE),
    recovery_advice: advice::INDEX,
    damage: empty_index,
};

fn empty_index(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    (target.single_file()?.bytes() > 0).then_some(())?;
    let damage = Damage::cut(target, 0, "the file truncated to nothing");
    let damage = damage.must(&["empty-index"]);
    Some(damage.may(&[&["pages-beyond-end"]]))
}

pub(super) const EMPTIED_SEQUENCE: Injury = Injury {
    name: "emptied-sequence",
    summary: "the file of a sequence is empty",
    wants: Wants::once(SEQUENCE_FILE),
    recovery_advice: advice::SEQUENCE,
    damage: empty_sequence,
};

fn empty_sequence(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    (target.files?.bytes() > 0).then_some(())?;
    let damage = Damage::cut(target, 0, "the file truncated to nothing");
    let damage = damage.must(&["empty-sequence"]);
    Some(damage.may(&[&["pages-beyond-end"]]))
}

pub(super) const EMPTIED_CATALOG: Injury = Injury {
    name: "emptied-catalog",
    summary: "the file of pg_class is empty",
    wants: Wants::once(RELATION_MAP),
    recovery_advice: advice::FILE,
    damage: empty_pg_class,
};

fn empty_pg_class(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let map = RelationMap::parse(&target.bytes).ok()?;
    let filenode = map.filenode(oid::PG_CLASS).filter(|_| map.is_right())?;
    let (directory, _) = target.path.rsplit_once('/')?;
    let change = cut(format!("{directory}/{filenode}"), 0);
    let damage = Damage::change(change, "the file of pg_class truncated to nothing");
    let damage = damage.must(&["empty-catalog"]);
    Some(damage.may(&[LOST_CATALOGS, &["relation-lost"]]))
}
