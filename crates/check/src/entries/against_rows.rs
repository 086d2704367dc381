//! Every row of a table has its entry in each index, every entry its row, and both the same key.
//!
//! Truth: `bt_tuple_present_callback` in `contrib/amcheck/verify_nbtree.c` for the idea;
//! `src/backend/access/heap/README.HOT` for which line pointers entries name.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use pgclinic_cluster::Cluster;
use pgclinic_format::BlockNo;
use pgclinic_format::attribute::{Attribute, Attributes};
use pgclinic_format::btree::{BtreePage, BtreeTuple};
use pgclinic_format::gin::{META_BLOCK, Meta};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_model::Rule;
use pgclinic_model::document::{Level, NotChecked, SHOWN_VALUES};
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};

use crate::check::ForkCx;
use crate::entries::columns::{KeyColumns, KeyDifference};
use crate::entries::compare::{self, HeapSide, differing_blocks, tuple_at};
use crate::entries::contradiction;
use crate::entries::heap::HeapItems;
use crate::entries::index::{Against, IndexFacts, IndexSide};
use crate::entries::named_blocks::is_witness;
use crate::entries::row_map::PART_BLOCKS;
use crate::findings::Findings;
use crate::gin;
use crate::relation_check::{RelationCheck, RelationCx, draft_at};
use pgclinic_format::index_entries::names_rows;

/// Rows named in a message.
const TOLD: usize = 5;
/// Blocks of a table whose keys are compared one by one.
const BLOCKS_COMPARED: usize = 1000;

/// What makes an index anew throws away what it knows of rows that the table lost.
const REINDEX_LATER: &str = "copy the cluster first and compare the table's block with a backup or a standby: the entries may be the last trace of its rows; REINDEX only when the table is known to be sound";

/// An entry without a row.
pub const INDEX_ENTRY_WITHOUT_ROW: Rule =
    Rule::from_page(include_str!("../../rules/index-entry-without-row.md"));

/// A row without an entry.
pub const ROW_WITHOUT_INDEX_ENTRY: Rule =
    Rule::from_page(include_str!("../../rules/row-without-index-entry.md"));

/// A row and its entry with different keys.
pub const INDEX_ENTRY_OF_OTHER_KEY: Rule =
    Rule::from_page(include_str!("../../rules/index-entry-of-other-key.md"));

/// A row with two entries.
pub const INDEX_ENTRY_DUPLICATE: Rule =
    Rule::from_page(include_str!("../../rules/index-entry-duplicate.md"));

/// Compares the rows of a table with the entries of its indexes.
pub struct EntriesAgainstRows;

impl RelationCheck for EntriesAgainstRows {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &INDEX_ENTRY_WITHOUT_ROW,
                &ROW_WITHOUT_INDEX_ENTRY,
                &INDEX_ENTRY_OF_OTHER_KEY,
                &INDEX_ENTRY_DUPLICATE,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Heap
    }

    fn is_wide(&self, blocks: u64) -> bool {
        blocks > u64::from(PART_BLOCKS)
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let Some(cluster) = relation.fork.cluster.filter(|_| relation.settled()) else {
            return;
        };
        let indexes = indexes_of(relation, out);
        if indexes.is_empty() {
            return;
        }
        let (mut start, blocks) = (0, relation.fork.blocks);
        loop {
            let heap = compare::read_heap(relation, cluster, &indexes, start..blocks, None);
            if relation.is_interrupted() {
                return;
            }
            let is_last = heap.range.end >= blocks;
            for (which, index) in indexes.iter().enumerate() {
                let look = Look {
                    relation,
                    cluster,
                    index,
                    which,
                    heap: &heap,
                    is_last,
                };
                look.compare(out);
            }
            start = heap.range.end;
            if is_last {
                return;
            }
        }
    }
}

/// The indexes that can be compared; what cannot be is told.
fn indexes_of<'a>(relation: &RelationCx<'a>, out: &mut Findings) -> Vec<IndexFacts<'a>> {
    let mut indexes = Vec::new();
    for fork in relation.indexes() {
        let (Some(own), Some(table), Some(method)) =
            (fork.relation, relation.fork.relation, fork.method)
        else {
            continue;
        };
        let Some(facts) = own.index.as_ref().filter(|index| index.ready && index.live) else {
            continue;
        };
        if !names_rows(method) {
            continue;
        }
        let name = own.qualified_name();
        if facts.has_predicate {
            let what = format!("rows that {name} must hold");
            out.not_checked(NotChecked {
                what,
                why: "the condition of a partial index is not computed here".into(),
                inherent: true,
            });
        }
        let is_btree = method == AccessMethod::Btree;
        let compared = is_btree && !facts.has_predicate && facts.valid;
        let keys = compared.then(|| KeyColumns::new(table, own)).flatten();
        if is_btree && facts.has_expressions {
            out.not_checked(NotChecked {
                what: format!("keys of {name} that are expressions, against rows"),
                why: "expressions are not computed here".into(),
                inherent: true,
            });
        }
        if matches!(
            method,
            AccessMethod::Gin | AccessMethod::Gist | AccessMethod::Spgist
        ) {
            out.not_checked(NotChecked {
                what: format!("keys of {name} against rows"),
                why: "its operator class alone knows which keys a row has: that each row has an entry is checked, and not that it has the right ones".into(),
                inherent: true,
            });
        }
        let complete = facts.valid && !facts.has_predicate && holds_nulls(relation, fork);
        indexes.push(IndexFacts {
            fork,
            method,
            keys: keys.filter(|keys| !keys.is_empty()),
            complete,
            summed: is_btree && complete,
            reached: (method == AccessMethod::Gin).then(|| gin::reached(&relation.of(fork))),
        });
    }
    indexes
}

/// Whether the index has an entry for a row without keys: a GIN index that 9.0 made has none.
fn holds_nulls<'a>(relation: &RelationCx<'a>, fork: &'a ForkCx<'a>) -> bool {
    if fork.method != Some(AccessMethod::Gin) {
        return true;
    }
    let mut pages = relation.pages_of(fork);
    let meta = pages.page(META_BLOCK).and_then(Meta::of);
    meta.is_some_and(|meta| meta.version > 0)
}

/// One index against one range of the table.
struct Look<'a> {
    relation: &'a RelationCx<'a>,
    cluster: &'a Cluster,
    index: &'a IndexFacts<'a>,
    which: usize,
    heap: &'a HeapSide,
    is_last: bool,
}

impl Look<'_> {
    fn compare(&self, out: &mut Findings) {
        let unknown = self.heap.unknown.get(self.which).and_then(Option::as_ref);
        let against = Against {
            heap: self.heap,
            unknown: unknown.map_or(&[], Vec::as_slice),
            heap_blocks: self.relation.fork.blocks,
            is_last: self.is_last,
        };
        let side = compare::read_index(self.relation, self.index, against);
        if self.relation.is_interrupted() {
            return;
        }
        let differing = self.differing(&side);
        let closely = &self.heap.closely;
        let (known, far): (Vec<_>, Vec<_>) =
            differing.into_iter().partition(|block| closely.has(*block));
        if self.index.summed && !far.is_empty() {
            self.look_closely(&far, out);
            return;
        }
        self.tell_dangling(&side, out);
        self.tell_missing(&side, out);
        if self.index.method == AccessMethod::Btree {
            self.tell_doubled(&side, out);
        }
        if self.index.keys.is_none() || !self.index.complete {
            return;
        }
        if unknown.is_none() {
            let why = "more of its values stand in TOAST than are kept in memory";
            self.relation.not_checked(
                out,
                &format!("keys of {} against rows", self.name()),
                why,
                false,
            );
            return;
        }
        self.tell_other_keys(&known, against.unknown, out);
    }

    fn differing(&self, side: &IndexSide) -> Vec<BlockNo> {
        let sums = self.heap.sums.get(self.which);
        sums.map_or_else(Vec::new, |sums| {
            differing_blocks(self.heap.range.start, sums, &side.sums)
        })
    }

    /// Sums say in which blocks something is wrong; what it is shows entry by entry.
    fn look_closely(&self, blocks: &[BlockNo], out: &mut Findings) {
        let mut only = self.heap.closely.clone();
        blocks.iter().for_each(|block| only.add(u64::from(*block)));
        let index = std::slice::from_ref(self.index);
        let Range { mut start, end } = self.heap.range;
        while start < end && !self.relation.is_interrupted() {
            let (relation, cluster) = (self.relation, self.cluster);
            let heap = compare::read_heap(relation, cluster, index, start..end, Some(&only));
            start = heap.range.end;
            let look = Look {
                which: 0,
                heap: &heap,
                is_last: self.is_last && start >= end,
                ..*self
            };
            look.compare(out);
        }
    }

    fn name(&self) -> String {
        let relation = self.index.fork.relation;
        relation.map_or_else(String::new, pgclinic_cluster::Relation::qualified_name)
    }

    fn tell_dangling(&self, side: &IndexSide, out: &mut Findings) {
        for (block, dangling) in &side.dangling {
            if self.is_lost(*block) {
                continue;
            }
            let rows = dangling.examples.iter().map(|(tid, _)| tid.to_string());
            let message = format!(
                "{} of {} {} rows of block {block} that are not there: {}",
                plural(dangling.entries, "entry"),
                self.name(),
                verb_of(dangling.entries, "name"),
                list(rows, dangling.entries)
            );
            let first = dangling.examples.first().map(|(_, at)| *at);
            let (page, item) = (first.map(|at| at.block), first.and_then(|at| at.item));
            let own = draft_at(self.index.fork, &INDEX_ENTRY_WITHOUT_ROW, page, message);
            let mut draft = own
                .rows(dangling.entries)
                .fact("index", self.name())
                .fact("entries", dangling.entries)
                .fact("table_block", *block)
                .remedy("reindex", Safety::ShowOnly, REINDEX_LATER)
                .follows(self.relation.fork, *block);
            draft.item = item;
            for (_, at) in &dangling.examples {
                draft = draft.follows(self.index.fork, at.block);
            }
            if u64::from(*block) >= self.relation.fork.blocks {
                draft = draft.follows_fork(self.relation.fork);
            }
            out.add(draft);
        }
    }

    /// The block is all zero or not there, which the rules zeroed-page and file-truncated tell
    /// once.
    fn is_lost(&self, block: BlockNo) -> bool {
        let table = self.relation.fork;
        let zeroed = self.relation.neighbours.zeroed_in(table);
        let is_zeroed = || zeroed.is_some_and(|zeroed| zeroed.blocks.has(u64::from(block)));
        let is_missing = u64::from(block) >= table.blocks;
        is_witness(self.index.fork) && (is_missing || is_zeroed())
    }

    fn tell_missing(&self, side: &IndexSide, out: &mut Findings) {
        if !self.index.complete {
            return;
        }
        let (mut count, mut told) = (0u64, Vec::new());
        let mut reader = self.relation.pages();
        let missing = self.heap.map.live_unseen(&side.seen);
        // Elsewhere its sums were right; the map is there for other indexes.
        let is_looked_at = |tid: &Tid| !self.index.summed || self.heap.closely.has(tid.block);
        for tid in missing.filter(is_looked_at) {
            let page = reader.page(tid.block);
            let exempt = self.index.method == AccessMethod::Hash
                && page.is_some_and(|page| self.has_null_key(page, tid));
            if !exempt {
                count += 1;
                if told.len() < TOLD {
                    told.push(tid);
                }
            }
        }
        if count == 0 {
            return;
        }
        let message = format!(
            "{count} of {} {have} no entry: {}",
            self.relation
                .fork
                .relation
                .map_or_else(String::new, pgclinic_cluster::Relation::qualified_name),
            list(told.iter().map(Tid::to_string), count),
            count = plural(count, "live row"),
            have = verb_of(count, "have")
        );
        let own = draft_at(self.index.fork, &ROW_WITHOUT_INDEX_ENTRY, None, message);
        let mut draft = own
            .rows(0)
            .fact("rows", count)
            .follows_fork(self.index.fork);
        for tid in &told {
            draft = draft.follows(self.relation.fork, tid.block);
        }
        out.add(draft);
    }

    /// A row that an index without nulls leaves out.
    fn has_null_key(&self, page: pgclinic_format::Page<'_>, tid: Tid) -> bool {
        let mut items = HeapItems::default();
        items.read(page, tid.block, self.cluster);
        let live = items.live.iter().find(|(root, _)| *root == tid.offset);
        let Some(tuple) = live.and_then(|(_, live)| tuple_at(page, *live)) else {
            return true;
        };
        let layouts = self.relation.fork.columns.unwrap_or_default();
        let values: Vec<_> = Attributes::new(tuple, layouts).collect();
        let index = self.index.fork.relation.and_then(|own| own.index.as_ref());
        let keys = index.map(|index| index.keys.as_slice()).unwrap_or_default();
        keys.iter().any(|number| {
            let column = usize::try_from(*number).ok().and_then(|n| n.checked_sub(1));
            match column.and_then(|column| values.get(column)) {
                Some(Ok(Attribute::Value(_))) => false,
                // An expression, or a column that is null or was added later.
                _ => true,
            }
        })
    }

    fn tell_doubled(&self, side: &IndexSide, out: &mut Findings) {
        if side.doubled == 0 {
            return;
        }
        let rows = side.doubled_examples.iter().map(Tid::to_string);
        let message = format!(
            "{} {} rows that others name too: {}",
            plural(side.doubled, "entry"),
            verb_of(side.doubled, "name"),
            list(rows, side.doubled)
        );
        let own = draft_at(self.index.fork, &INDEX_ENTRY_DUPLICATE, None, message);
        out.add(
            own.rows(0)
                .fact("entries", side.doubled)
                .follows_fork(self.index.fork),
        );
    }

    /// Looks again at blocks whose sums differ, row by row.
    fn tell_other_keys(&self, blocks: &[BlockNo], unknown: &[Tid], out: &mut Findings) {
        let Some(keys) = &self.index.keys else { return };
        let compared = blocks.get(..BLOCKS_COMPARED).unwrap_or(blocks);
        if compared.is_empty() {
            return;
        }
        let mut hashes = self.hashes_of(compared, keys);
        for tid in unknown {
            hashes.remove(tid);
        }
        if hashes.is_empty() {
            return;
        }
        let mut pages = self.relation.pages_of(self.index.fork);
        for block in 1..self.index.fork.blocks {
            let Ok(block) = BlockNo::try_from(block) else {
                break;
            };
            let leaf = pages.page(block).and_then(BtreePage::parse);
            let Some(leaf) = leaf.filter(|page| page.is_leaf() && !page.is_ignored()) else {
                continue;
            };
            for (item, tuple) in leaf.data() {
                for tid in tuple.rows() {
                    let Some(expected) = hashes.get(&tid) else {
                        continue;
                    };
                    if keys.hash_entry(tid, tuple) != Some(*expected) {
                        self.tell_other_key(tid, (block, leaf), (item, tuple), out);
                    }
                }
            }
        }
    }

    fn hashes_of(&self, blocks: &[BlockNo], keys: &KeyColumns) -> HashMap<Tid, u64> {
        let layouts = self.relation.fork.columns.unwrap_or_default();
        let mut pages = self.relation.pages();
        let mut items = HeapItems::default();
        let mut hashes = HashMap::new();
        for block in blocks {
            let Some(page) = pages.page(*block) else {
                continue;
            };
            items.read(page, *block, self.cluster);
            for (root, live) in &items.live {
                let tid = Tid {
                    block: *block,
                    offset: *root,
                };
                let tuple = tuple_at(page, *live);
                let hash = tuple.and_then(|tuple| keys.hash_row(tid, tuple, layouts));
                hashes.extend(hash.map(|hash| (tid, hash)));
            }
        }
        hashes
    }

    fn tell_other_key(
        &self,
        tid: Tid,
        (block, leaf): (BlockNo, BtreePage<'_>),
        (item, entry): (u16, BtreeTuple<'_>),
        out: &mut Findings,
    ) {
        let table = self.table_fork();
        let differences = self.differences(tid, entry).unwrap_or_default();
        let relation = table.relation;
        let values =
            relation.map(|own| contradiction::values(&differences, own, self.relation.catalog));
        let values = values.unwrap_or_default().join(", ");
        let order = self.index.fork.key_order.as_ref();
        let flipped = order.and_then(|order| {
            contradiction::flipped_side(&differences, order, leaf, (item, entry))
        });
        let mut message = format!("the entry's key is not that of its row {tid}");
        if !values.is_empty() {
            message = format!("{message}: {values}");
        }
        if let Some(side) = flipped {
            let (side, other) = (side.name(), side.other().name());
            message = format!(
                "{message}; they differ in one bit, and only the {other}'s value fits between the entry's neighbours: the bit flipped in the {side}"
            );
        }
        let own = draft_at(
            self.index.fork,
            &INDEX_ENTRY_OF_OTHER_KEY,
            Some(block),
            message,
        );
        let mut draft = own.item(item).rows(1).fact("row", tid.to_string());
        if !values.is_empty() {
            draft = draft.fact(SHOWN_VALUES, values);
        }
        if let Some(side) = flipped {
            draft = draft.fact("flipped", side.name());
        }
        out.add(draft.follows(table, tid.block));
    }

    /// The columns in which the row and its entry differ.
    fn differences(&self, tid: Tid, entry: BtreeTuple<'_>) -> Option<Vec<KeyDifference>> {
        let keys = self.index.keys.as_ref()?;
        let mut pages = self.relation.pages();
        let page = pages.page(tid.block)?;
        let mut items = HeapItems::default();
        items.read(page, tid.block, self.cluster);
        let mut live = items.live.iter();
        let (_, live) = live.find(|(root, _)| *root == tid.offset)?;
        let layouts = self.relation.fork.columns?;
        keys.differences(tuple_at(page, *live)?, layouts, entry)
    }

    fn table_fork(&self) -> &ForkCx<'_> {
        self.relation.fork
    }
}

/// The first ones, and how many more.
fn list(items: impl Iterator<Item = String>, total: u64) -> String {
    let mut text = String::new();
    let mut told = 0u64;
    for item in items.take(TOLD) {
        let comma = if told == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{item}");
        told += 1;
    }
    if total > told {
        let _ = write!(text, " and {} more", total - told);
    }
    text
}
