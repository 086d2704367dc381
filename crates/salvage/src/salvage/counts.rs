//! Counts of what was saved: the rows of a file beside the rows to which a whole index leads.
//!
//! ```text
//! leaves of the index ─► places of rows, sorted, each once ─► pages of the table in order ─┬─ a row that counts
//!                                                                                         ├─ none any more
//!                                                                                         └─ nowhere: nothing is left to be read
//! ```
//!
//! What leads nowhere was a row, or a deleted one that VACUUM did not pass: at most so many are
//! missing. Where no index has all rows there is only the estimate of `pg_class`, which is told and
//! decides nothing.

use pgclinic_cluster::{
    Catalog, Cluster, Comparison, Leaves, Persistence, Pieces, Relation, Visibility, each_leaf,
};
use pgclinic_format::heap_tuple::{HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, ColumnLayout, HeapTuple, LpFlags, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{CountAccount, TableAccount};
use pgclinic_spill::Part;
use pgclinic_spill::{SortedRecords, SortedRuns};

use super::error::SalvageError;
use super::{Rows, SalvageOptions};
use crate::carve::{PageState, is_row};
use crate::shape::{ColumnChoice, MainForks, Table};
use crate::visible::VersionFate;

/// What the look at one database shares.
pub(super) struct Counts<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) catalog: &'a Catalog,
    pub(super) files: &'a MainForks,
    pub(super) options: &'a SalvageOptions,
    pub(super) progress: &'a dyn Progress,
}

/// Where the entries of an index lead.
#[derive(Default)]
struct Led {
    to_rows: u64,
    nowhere: u64,
}

impl Counts<'_> {
    /// Counts of all tables that were written, up to where somebody interrupts.
    pub(super) fn of_tables(
        &self,
        tables: &[TableAccount],
    ) -> Result<Vec<CountAccount>, SalvageError> {
        let mut found = Vec::new();
        for table in tables.iter().filter(|table| table.file.is_some()) {
            let Some(relation) = self.catalog.relations.get(&table.oid) else {
                continue;
            };
            let mut account = CountAccount {
                database: table.database.clone(),
                schema: table.schema.clone(),
                table: table.table.clone(),
                written: table.rows.written,
                estimate: relation.reltuples,
                ..CountAccount::default()
            };
            let counted = self.count(relation, &mut account)?;
            // Not all entries may have been followed.
            if self.progress.is_interrupted() {
                break;
            }
            account.not_counted = counted.err();
            found.push(account);
        }
        Ok(found)
    }

    /// Follows the entries of the table's index; the reason where there is none to be followed.
    fn count(
        &self,
        relation: &Relation,
        account: &mut CountAccount,
    ) -> Result<Result<(), String>, SalvageError> {
        let index = match self.index_of(relation) {
            Ok(index) => index,
            Err(why) => return Ok(Err(why.into())),
        };
        let table = Table::of(self.files, self.catalog, relation, ColumnChoice::default());
        let table = match table {
            Ok(table) => table,
            Err(why) => return Ok(Err(why)),
        };
        account.index = Some(index.qualified_name());
        let Some(places) = self.places(index)? else {
            let why = "pages of the index are missing or damaged";
            return Ok(Err(why.into()));
        };
        let led = self.follow(places, &table)?;
        account.led_to = Some(led.to_rows);
        account.nowhere = led.nowhere;
        Ok(Ok(()))
    }

    /// An index that has an entry for every row; one of a key, if there is one.
    fn index_of(&self, table: &Relation) -> Result<&Relation, &'static str> {
        if self.options.rows == Rows::All {
            return Err("dead versions were written too");
        }
        let is_unlogged = table.persistence == Persistence::Unlogged;
        if is_unlogged && self.cluster.empties_unlogged() {
            return Err("it is unlogged, and its indexes are of another moment");
        }
        let compared = Comparison::RowsWithEntriesOneByOne;
        if !self.cluster.may_compare(compared) {
            return Err("the write-ahead log was not applied");
        }
        let rank = |relation: &&Relation| {
            let is_unique = relation.index.as_ref().is_some_and(|index| index.unique);
            (!is_unique, relation.name.clone())
        };
        let all = self.catalog.relations.values();
        let fitting = all.filter(|relation| {
            let is_btree = relation.page_method() == Some(AccessMethod::Btree);
            let holds_all = relation.index.as_ref().is_some_and(|index| {
                index.table == table.oid && index.valid && index.live && !index.has_predicate
            });
            is_btree && holds_all
        });
        fitting.min_by_key(rank).ok_or("no index has all its rows")
    }

    /// The places that the index's entries name, in order; nothing where leaves are missing.
    fn places(&self, index: &Relation) -> Result<Option<SortedRecords>, SalvageError> {
        let files = self.files.of(self.catalog, index);
        if files.segments.is_empty() {
            return Ok(None);
        }
        let memory = self.options.memory.part(Part::KeySort);
        let runs = SortedRuns::within(&memory, &self.options.spill_folder);
        let mut runs = runs.map_err(|error| self.spill(error))?;
        let mut failure = None;
        let seen = each_leaf(self.cluster, &files, Leaves::All, &mut |_, leaf| {
            for (item, tuple) in leaf.data() {
                // A killed entry leads to a row that nobody needs.
                let pointer = leaf.page().line_pointer(item);
                if pointer.is_none_or(|pointer| pointer.flags() == LpFlags::Dead) {
                    continue;
                }
                let taken = tuple
                    .rows()
                    .filter(|tid| self.options.selection.takes_block(tid.block.into()))
                    .try_for_each(|tid| runs.push(&key_of(tid), &[]));
                failure = failure.take().or(taken.err());
            }
            failure.is_none() && !self.progress.is_interrupted()
        });
        if let Some(failure) = failure {
            return Err(self.spill(failure));
        }
        if !seen.is_whole() {
            return Ok(None);
        }
        runs.finish().map(Some).map_err(|error| self.spill(error))
    }

    fn follow(&self, places: SortedRecords, table: &Table) -> Result<Led, SalvageError> {
        let mut heap = Heap {
            cluster: self.cluster,
            visibility: Visibility::new(self.cluster),
            pieces: Pieces::of(&table.files, self.cluster.build),
            layouts: &table.layouts,
            page: Vec::new(),
            block: None,
        };
        let (mut led, mut before) = (Led::default(), None);
        for place in places {
            let (key, _) = place.map_err(|error| self.spill(error))?;
            let Some(tid) = place_of(&key).filter(|_| before.as_ref() != Some(&key)) else {
                continue;
            };
            match heap.leads(tid) {
                Leads::ToRow => led.to_rows += 1,
                Leads::ToNone => {}
                Leads::Nowhere => led.nowhere += 1,
            }
            before = Some(key);
            if self.progress.is_interrupted() {
                break;
            }
        }
        Ok(led)
    }

    fn spill(&self, source: std::io::Error) -> SalvageError {
        SalvageError::destination(&self.options.spill_folder, "sort in", source)
    }
}

/// Sorts as places do.
fn key_of(tid: Tid) -> [u8; 6] {
    let mut key = [0; 6];
    key[..4].copy_from_slice(&tid.block.to_be_bytes());
    key[4..].copy_from_slice(&tid.offset.to_be_bytes());
    key
}

fn place_of(key: &[u8]) -> Option<Tid> {
    let (block, offset) = key.split_first_chunk()?;
    Some(Tid {
        block: BlockNo::from_be_bytes(*block),
        offset: u16::from_be_bytes(*offset.first_chunk()?),
    })
}

/// What an entry leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leads {
    ToRow,
    /// A row that was deleted or never committed.
    ToNone,
    /// No page, or nothing on it that tells.
    Nowhere,
}

/// A table, one page of it at a time.
struct Heap<'a> {
    cluster: &'a Cluster,
    visibility: Visibility<'a>,
    pieces: Pieces,
    layouts: &'a [ColumnLayout],
    page: Vec<u8>,
    block: Option<BlockNo>,
}

impl Heap<'_> {
    fn leads(&mut self, tid: Tid) -> Leads {
        if self.block != Some(tid.block) {
            self.read(tid.block);
        }
        let page = Page::parse(&self.page);
        match page.filter(|page| PageState::of(*page) == PageState::Sound) {
            Some(page) => self.leads_on(page, tid),
            None => Leads::Nowhere,
        }
    }

    /// Reads a page; what is not there is empty.
    fn read(&mut self, block: BlockNo) {
        let page_bytes = usize::try_from(self.cluster.build.block_size).unwrap_or(8192);
        self.block = Some(block);
        self.page.clear();
        let Some((path, offset)) = self.pieces.place_of(block) else {
            return;
        };
        self.page.resize(page_bytes, 0);
        let read = self.cluster.source().read_at(&path, offset, &mut self.page);
        if read != Ok(page_bytes) {
            self.page.clear();
        }
    }

    /// Goes from the line pointer along its redirect and the versions on this page to the one that
    /// counts.
    fn leads_on(&self, page: Page<'_>, tid: Tid) -> Leads {
        let all_visible =
            page.pd_flags() & PD_ALL_VISIBLE != 0 && self.visibility.trusts_all_visible();
        let mut item = tid.offset;
        for step in 0..=page.line_pointer_count() {
            let is_first = step == 0;
            let Some(pointer) = page.line_pointer(item) else {
                return end_of_chain(is_first);
            };
            match pointer.flags() {
                LpFlags::Unused => return end_of_chain(is_first),
                LpFlags::Dead => return Leads::ToNone,
                LpFlags::Redirect => {
                    item = pointer.lp_off();
                    continue;
                }
                LpFlags::Normal => {}
            }
            let row = page.item(pointer).and_then(HeapTuple::parse);
            let Some(tuple) = row.filter(|tuple| is_row(*tuple, self.layouts)) else {
                return Leads::Nowhere;
            };
            // Behind the first version stand those that no index names.
            if !is_first && tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0 {
                return Leads::ToNone;
            }
            let place = Tid {
                offset: item,
                ..tid
            };
            if all_visible || VersionFate::of(&self.visibility, tuple, place).counts() {
                return Leads::ToRow;
            }
            let next = tuple.t_ctid();
            if tuple.t_infomask2() & HEAP_HOT_UPDATED == 0 || next.block != tid.block {
                return Leads::ToNone;
            }
            item = next.offset;
        }
        Leads::ToNone
    }
}

/// An entry never leads to a line pointer that is free; the last version of a chain may be gone.
fn end_of_chain(is_first: bool) -> Leads {
    if is_first {
        Leads::Nowhere
    } else {
        Leads::ToNone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_places_do() {
        let places = [(0, 7), (1, 1), (1, 300), (256, 2), (70_000, 1)];
        let places = places.map(|(block, offset)| Tid { block, offset });
        let keys = places.map(key_of);
        assert!(keys.is_sorted());
        assert_eq!(keys.map(|key| place_of(&key)), places.map(Some));
        assert_eq!(place_of(&[1, 2, 3, 4, 5]), None);
    }
}
