//! Injuries of SP-GiST indexes (`src/include/access/spgist_private.h`).
//!
//! ```text
//! special space:  0 flags  2 redirections  4 placeholders  6 page id
//! node:           0 block, two halves  4 item  6 t_info  8 label
//! leaf tuple:     0 state and size  4 next tuple  6 row  16 value
//! ```

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::spgist::{
    META, NULL_ROOT, ROOT, SPGIST_NULLS, SpgistPage, State, TUPLE_HEADER_BYTES, Tuple,
};
use pgclinic_format::types::{INVALID_BLOCK, Tid};
use pgclinic_format::{BlockNo, Page};

use crate::advice;
use crate::byte_edits::{put_block, put_bytes};
use crate::followers::INDEX_TREES;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget, choose};

const PLACEHOLDERS_AT: usize = 4;
const NEXT_AT: usize = 4;
const VALUE_AT: usize = 16;
/// The first of eight places for new rows on the meta page, of 8 bytes each.
const LAST_USED_AT: usize = 28;

/// The target as a page, the meta page left out.
fn spgist_page<'a>(target: &'a InjuryTarget<'_>) -> Option<SpgistPage<'a>> {
    let page = target.page_of(AccessMethod::Spgist)?;
    SpgistPage::parse(page).filter(|page| !page.is_meta())
}

fn live(page: SpgistPage<'_>) -> Vec<(u16, Tuple<'_>)> {
    let tuples = page.tuples();
    tuples
        .filter(|(_, tuple)| tuple.state() == State::Live)
        .collect()
}

/// Live rows of a leaf page that is no root.
fn rows<'a>(target: &'a InjuryTarget<'_>) -> Option<Vec<(u16, Tuple<'a>)>> {
    let page = spgist_page(target).filter(|page| page.is_leaf() && target.block > NULL_ROOT)?;
    Some(live(page))
}

/// Where the nodes of live inner tuples that lead somewhere stand: item, offset on the page.
fn nodes(target: &InjuryTarget<'_>) -> Option<Vec<(u16, usize)>> {
    let page = spgist_page(target).filter(|page| !page.is_leaf())?;
    let mut found = Vec::new();
    for (item, tuple) in live(page) {
        let inner = tuple.inner();
        let first = target.item_at(item)? + TUPLE_HEADER_BYTES;
        let mut at = first + usize::from(inner.prefix_size());
        let mut nodes = inner.nodes();
        let mut left = nodes.rest().len();
        while let Some(node) = nodes.next() {
            if node.downlink().is_some() {
                found.push((item, at));
            }
            at += left - nodes.rest().len();
            left = nodes.rest().len();
        }
    }
    Some(found)
}

pub(super) const SPGIST_FLAGS: Injury = Injury {
    name: "spgist-flags",
    summary: "a root of an SP-GiST index is marked as the root of the other tree",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: exchange_trees,
};

fn exchange_trees(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = spgist_page(target).filter(|_| matches!(target.block, ROOT | NULL_ROOT))?;
    let at = target.special_at()?;
    let flags = page.flags() ^ SPGIST_NULLS;
    let words = format!("flags set to {flags:#06x}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, flags))?;
    Some(damage.must(&["spgist-page-flags"]))
}

pub(super) const SPGIST_COUNTS: Injury = Injury {
    name: "spgist-counts",
    summary: "an SP-GiST page counts placeholders that are not there",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: count_more_placeholders,
};

fn count_more_placeholders(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let count = spgist_page(target)?.placeholder_count().checked_add(7)?;
    let at = target.special_at()? + PLACEHOLDERS_AT;
    let words = format!("the number of placeholders set to {count}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, count))?;
    Some(damage.must(&["spgist-tuple-counts"]))
}

pub(super) const SPGIST_CHAIN: Injury = Injury {
    name: "spgist-chain",
    summary: "a leaf tuple of an SP-GiST index is its own next one",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: chain_to_itself,
};

fn chain_to_itself(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (item, _) = *choose(&rows(target)?, seed)?;
    let at = target.item_at(item)? + NEXT_AT;
    let words = format!("the next tuple of tuple {item} set to itself");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, item))?;
    Some(damage.item(item).must(&["spgist-leaf-chain"]))
}

pub(super) const SPGIST_TUPLE_SIZE: Injury = Injury {
    name: "spgist-tuple-size",
    summary: "a leaf tuple of an SP-GiST index says that it is longer than its item",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lengthen_tuple,
};

fn lengthen_tuple(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (item, tuple) = *choose(&rows(target)?, seed)?;
    let at = target.item_at(item)?;
    let size = tuple.leaf_size().checked_add(8)?;
    let words = format!("the size of tuple {item} set to {size}");
    let damage = Damage::edit(target, words, |page| put_u32(page, at, size << 2))?;
    Some(damage.item(item).must(&["spgist-tuple"]))
}

pub(super) const SPGIST_NODE_BEYOND_END: Injury = Injury {
    name: "spgist-node-beyond-end",
    summary: "a node of an SP-GiST index leads past the end of the index",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lead_beyond_end,
};

fn lead_beyond_end(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (item, at) = *choose(&nodes(target)?, seed)?;
    let block = target.block_beyond_end()?;
    let words = format!("a node of tuple {item} set to block {block}");
    let damage = Damage::edit(target, words, |page| put_block(page, at, block))?;
    Some(damage.item(item).must(&["spgist-link"]))
}

pub(super) const SPGIST_NODE_DOUBLED: Injury = Injury {
    name: "spgist-node-duplicate",
    summary: "two nodes of an SP-GiST index lead to the same place",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lead_as_first_node,
};

fn lead_as_first_node(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let nodes = nodes(target)?;
    let ((model, from), rest) = nodes.split_first()?;
    let (item, at) = *choose(rest, seed)?;
    let link: [u8; 6] = *target.bytes.get(*from..)?.first_chunk()?;
    let words = format!("a node of tuple {item} set to what a node of tuple {model} leads to");
    let damage = Damage::edit(target, words, |page| put_bytes(page, at, &link))?;
    let damage = damage.item(item).must(&["spgist-downlink"]);
    Some(damage.may(&[INDEX_TREES]))
}

pub(super) const SPGIST_NODE_CLEARED: Injury = Injury {
    name: "spgist-node-cleared",
    summary: "a node of an SP-GiST index leads nowhere any more",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lead_nowhere,
};

fn lead_nowhere(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (item, at) = *choose(&nodes(target)?, seed)?;
    let child = tid_at(target, at)?;
    let bytes = target.other_block(child.block)?;
    let tuple = SpgistPage::parse(Page::parse(&bytes)?)?.tuple(child.offset)?;
    // A dead tuple that nothing leads to harms nobody.
    (tuple.state() == State::Live).then_some(())?;
    let words = format!("a node of tuple {item} set to lead nowhere");
    let damage = Damage::edit(target, words, |page| {
        put_block(page, at, INVALID_BLOCK);
        put_u16(page, at + 4, 0);
    })?;
    let damage = damage.item(item).must(&["spgist-page-unreachable"]);
    Some(damage.may(&[INDEX_TREES]))
}

fn tid_at(target: &InjuryTarget<'_>, at: usize) -> Option<Tid> {
    let half = |at: usize| Some(u16::from_le_bytes(*target.bytes.get(at..)?.first_chunk()?));
    let block = BlockNo::from(half(at)?) << 16 | BlockNo::from(half(at + 2)?);
    let offset = half(at + 4)?;
    Some(Tid { block, offset })
}

pub(super) const SPGIST_CACHED_PAGE: Injury = Injury {
    name: "spgist-cached-page",
    summary: "the meta page of an SP-GiST index proposes the root for new rows",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: propose_root,
};

fn propose_root(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    target.page_of(AccessMethod::Spgist)?;
    (target.block == META).then_some(())?;
    let slot = usize::try_from(seed % 8).ok()?;
    let at = LAST_USED_AT + slot * 8;
    let words = format!("last-used page {slot} set to block {ROOT}");
    let damage = Damage::edit(target, words, |page| put_u32(page, at, ROOT))?;
    Some(damage.must(&["spgist-cached-page"]))
}

pub(super) const SPGIST_VALUE_OUTSIDE: Injury = Injury {
    name: "spgist-value-outside",
    summary: "a point of an SP-GiST index is moved to where it does not belong",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: move_point,
};

fn move_point(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let points = ["quad_point_ops", "kd_point_ops"];
    points.contains(&target.first_class()?).then_some(())?;
    spgist_page(target).filter(|page| !page.holds_nulls())?;
    let (item, _) = *choose(&rows(target)?, seed)?;
    let at = target.item_at(item)? + VALUE_AT;
    let side = |at: usize| Some(f64::from_le_bytes(*target.bytes.get(at..)?.first_chunk()?));
    let (x, y) = (side(at)?, side(at + 8)?);
    // To the far side of every line but one at infinity, in both directions.
    let far = |value: f64| -> f64 { if value > 400.0 { -1.0e300 } else { 1.0e300 } };
    let words = format!("the point in tuple {item} moved from ({x},{y})");
    let damage = Damage::edit(target, words, |page| {
        put_bytes(page, at, &far(x).to_le_bytes());
        put_bytes(page, at + 8, &far(y).to_le_bytes());
    })?;
    Some(damage.item(item).must(&["spgist-value-outside-node"]))
}
