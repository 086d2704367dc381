//! An index file that is another index's: its entries prove nothing of the table.
//!
//! An entry and the row it leads to have one key, whatever became of the row: VACUUM removes
//! entries before their line pointers are used again, and a heap-only update changes no key. Some
//! entries that lead to rows which are there tell whose index it is, before any is believed about
//! rows that are not.

use pgclinic_format::btree::BtreePage;
use pgclinic_format::heap_tuple::{HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple};
use pgclinic_model::plan::Safety;
use pgclinic_model::plural;

use crate::check::ForkCx;
use crate::entries::against_rows::INDEX_ENTRY_OF_OTHER_KEY;
use crate::entries::columns::KeyColumns;
use crate::entries::compare::tuple_at;
use crate::findings::Draft;
use crate::relation_check::{RelationCx, draft_at};

/// Leaves of which entries are compared, and entries of each.
const LEAVES: u64 = 32;
const ENTRIES_OF_LEAF: usize = 8;
/// Fewer entries tell nothing.
const ENTRIES_MIN: u64 = 8;

/// Entries that were compared with their rows.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sample {
    compared: u64,
    of_other_key: u64,
}

impl Sample {
    /// Most have the keys of other rows.
    pub(crate) fn is_foreign(self) -> bool {
        self.compared >= ENTRIES_MIN && self.of_other_key * 4 >= self.compared * 3
    }

    /// The index is wrong, and the table is not accused.
    pub(crate) fn accuse(self, index: &ForkCx<'_>) -> Draft {
        let name = index
            .relation
            .map_or_else(|| index.files.path(0), |own| own.qualified_name());
        let message = format!(
            "{} of {} that were compared have other keys than the rows they lead to: the file is that of another index, and proves nothing of the table",
            self.of_other_key,
            plural(self.compared, "entry")
        );
        let sql = index.relation.map_or(name, |own| own.sql_name());
        draft_at(index, &INDEX_ENTRY_OF_OTHER_KEY, None, message)
            .fact("compared", self.compared)
            .fact("of_other_key", self.of_other_key)
            .fact("foreign", true)
            .rows(0)
            .remedy("reindex", Safety::Exact, format!("REINDEX INDEX {sql};"))
            .rooted()
    }
}

/// Compares some entries of a btree that lead into the table. Nothing of other kinds, of partial
/// indexes and where keys are not known.
pub(crate) fn sample(relation: &RelationCx<'_>, index: &ForkCx<'_>) -> Sample {
    let mut sample = Sample::default();
    let (Some(table), Some(own)) = (relation.fork.relation, index.relation) else {
        return sample;
    };
    let keys = KeyColumns::new(table, own).filter(|keys| !keys.is_empty());
    let (Some(keys), Some(layouts)) = (keys, table.layouts.as_ref()) else {
        return sample;
    };
    if index.method != Some(AccessMethod::Btree) {
        return sample;
    }
    let (mut leaves, mut rows) = (relation.pages_of(index), relation.pages_of(relation.fork));
    let step = usize::try_from((index.blocks / LEAVES).max(1)).unwrap_or(1);
    for block in (1..index.blocks).step_by(step) {
        let Some(leaf) = BlockNo::try_from(block)
            .ok()
            .and_then(|block| leaves.page(block))
            .and_then(BtreePage::parse)
            .filter(|page| page.is_leaf() && !page.is_ignored())
        else {
            continue;
        };
        let single = leaf.data().filter(|(_, tuple)| tuple.names_one_row());
        for (_, entry) in single.take(ENTRIES_OF_LEAF) {
            let tid: Tid = entry.0.t_tid();
            let page = rows.page(tid.block);
            let row = page.and_then(|page| tuple_at(page, tid.offset));
            // An index that was made later has the key of a newer version of a chain.
            let of_chain = HEAP_ONLY_TUPLE | HEAP_HOT_UPDATED;
            let is_named = |row: &HeapTuple<'_>| row.t_infomask2() & of_chain == 0;
            let Some(row) = row.filter(is_named) else {
                continue;
            };
            let (of_row, of_entry) = (
                keys.hash_row(tid, row, layouts),
                keys.hash_entry(tid, entry),
            );
            if let (Some(of_row), Some(of_entry)) = (of_row, of_entry) {
                sample.compared += 1;
                sample.of_other_key += u64::from(of_row != of_entry);
            }
        }
    }
    sample
}
