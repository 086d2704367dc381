//! Keys of rows that are lost, as surviving unique indexes still hold them.
//!
//! ```text
//! entries of the index that lead to damaged pages ─► minus keys of rows that were found on those pages
//!                                                 ─► minus keys with an entry that leads to a live row elsewhere
//! ```
//!
//! An entry of a row that was deleted and not vacuumed yet looks the same: such keys are on the
//! list too.

mod in_parts;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use pgclinic_cluster::wal::Replay;
use pgclinic_cluster::{Catalog, Cluster, Leaves, Pieces, Relation, Visibility, each_leaf};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::btree::BtreeTuple;
use pgclinic_format::datum::{Limits, Printed};
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page, varlena};
use pgclinic_model::Progress;
use pgclinic_model::document::{LostKeys, TableAccount};
use pgclinic_spill::Limit;

use super::blocks::blocks_of_table;
use super::error::SalvageError;
use super::folder::Folder;
use super::ordered_files::Piece;
use super::row_sink::TakeRows;
use super::{SalvageOptions, charset_of};
use crate::file_names::{FileNames, beside};
use crate::formats::{copy_escape, csv_field, csv_header, form_named};
use crate::shape::{Column, MainForks, Origin, Table};
use crate::texts::Texts;
use crate::visible::VersionFate;
use in_parts::KeyPart;

/// What a key takes in memory beside its own bytes.
const BESIDE_KEY_BYTES: usize = 112;
/// Bytes of the list that are written at once.
const WRITE_BYTES: usize = 1 << 20;
/// The longest value that is unpacked in an index: it never holds one that is longer than a page.
const KEY_BYTES_MAX: u32 = 1 << 20;

/// What the look at one database shares.
pub(super) struct Search<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) catalog: &'a Catalog,
    pub(super) files: &'a MainForks,
    pub(super) options: &'a SalvageOptions,
    pub(super) progress: &'a dyn Progress,
    /// What recovery did to tables in memory: indexes stay as they lie there.
    pub(super) replay: Option<&'a Replay>,
}

/// An index, and where its columns stand in the table.
struct UniqueIndex<'a> {
    relation: &'a Relation,
    columns: Vec<Column>,
    /// Of these the first ones are the key.
    key_count: usize,
}

impl UniqueIndex<'_> {
    fn name(&self) -> &str {
        &self.relation.name
    }

    /// Every row has an entry.
    fn has_all(&self) -> bool {
        let index = self.relation.index.as_ref();
        index.is_some_and(|index| index.live && index.ready && !index.has_predicate)
    }
}

/// Blocks of which rows may be lost.
struct Damaged<'a> {
    blocks: &'a [BlockNo],
    /// Pages without any row, in order, as half-open ranges.
    vacant: &'a [(BlockNo, BlockNo)],
    /// Rows on other pages whose line pointers are not there, in order.
    items: &'a [(BlockNo, u16)],
    pieces: Pieces,
}

impl Damaged<'_> {
    fn holds(&self, block: BlockNo) -> bool {
        self.blocks.binary_search(&block).is_ok()
            || self.is_vacant(block)
            || !self.pieces.hold(block)
    }

    fn holds_row(&self, tid: Tid) -> bool {
        self.holds(tid.block) || self.items.binary_search(&(tid.block, tid.offset)).is_ok()
    }

    fn is_vacant(&self, block: BlockNo) -> bool {
        let behind = self.vacant.partition_point(|(start, _)| *start <= block);
        let range = behind.checked_sub(1).and_then(|at| self.vacant.get(at));
        range.is_some_and(|(_, end)| block < *end)
    }
}

/// Takes the row that an entry leads to, the text of its key and a line of all its values.
type EachEntry<'a> = dyn FnMut(Tid, &[u8], &[u8]) + 'a;

/// Keys of lost rows in memory.
#[derive(Default)]
struct Keys {
    /// By their text, each with the line that is written.
    lines: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: u64,
    /// How many there was room for.
    kept: u64,
    /// Entries for which there was none.
    omitted: u64,
    /// All leaves of the index were there.
    is_whole: bool,
}

impl Keys {
    fn add(&mut self, key: &[u8], line: &[u8], bytes_max: u64) {
        if self.lines.contains_key(key) {
            return;
        }
        let bytes = (key.len() + line.len() + BESIDE_KEY_BYTES) as u64;
        if self.bytes + bytes > bytes_max {
            self.omitted += 1;
            return;
        }
        self.bytes += bytes;
        self.kept += 1;
        self.lines.insert(key.to_vec(), line.to_vec());
    }
}

impl Search<'_> {
    /// Writes the keys of lost rows of a table beside its file, where there is a folder; notes in
    /// the account which there are. Says how many keys are lost of an index that has all rows and
    /// can be read whole; nothing where there is none.
    pub(super) fn of_table(
        &self,
        folder: Option<&Folder>,
        account: &mut TableAccount,
    ) -> Result<Option<u64>, SalvageError> {
        let Some(relation) = self.catalog.relations.get(&account.oid) else {
            return Ok(None);
        };
        let mut options = self.options.clone();
        options.form = form_named("copy").expect("a form of the register");
        options.rows = super::Rows::Live;
        let choice = options.column_choice();
        let Ok(table) = Table::of(self.files, self.catalog, relation, choice) else {
            return Ok(None);
        };
        let pages = account.pages.clone();
        let damaged = Damaged {
            blocks: &pages.damaged,
            vacant: &pages.vacant,
            items: &pages.lost_items,
            pieces: Pieces::of(&table.files, self.cluster.build),
        };
        let indexes = self.unique_indexes(relation, &table);
        let parts: Vec<[&str; 1]> = indexes.iter().map(|index| [index.name()]).collect();
        let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
        let mut counted = None;
        for index in &indexes {
            let mut keys = self.entries(index, &damaged, KeyPart::ALL);
            if !keys.lines.is_empty() {
                self.leave_out_found(&table, index, &damaged, &options, relation, &mut keys);
            }
            // Of keys that had no room nobody knows whether their rows were found.
            let is_complete = keys.is_whole && keys.omitted == 0;
            if is_complete && index.has_all() && !self.is_earlier(index) {
                // Where keys may be null, those are one on the list: another index may count more.
                counted = counted.max(Some(keys.lines.len() as u64));
            }
            let list = folder.and_then(|folder| Some((folder, self.list_of(account)?)));
            let Some((folder, file)) = list else {
                continue;
            };
            if keys.omitted > 0 {
                account.notes.push(format!(
                    "the list of lost keys of {} is not whole: {} more of its entries lead to damaged pages, and --memory has no room for them",
                    index.relation.qualified_name(),
                    keys.omitted
                ));
            }
            if !keys.lines.is_empty() {
                let number = index.relation.oid;
                let own = names.name(&[index.name()], number);
                let name = beside((&file, relation.oid), "lost_keys", (&own, number));
                let found = self.write(folder, &name, index, &keys)?;
                account.lost_keys.push(found);
            }
        }
        Ok(counted)
    }

    /// Recovery would change the index.
    fn is_earlier(&self, index: &UniqueIndex<'_>) -> bool {
        let files = self.files.of(self.catalog, index.relation);
        let replay = self.replay;
        replay.is_some_and(|replay| replay.touches(files.number()))
    }

    /// The table's file without its extension, beside which lists of its keys stand.
    fn list_of(&self, account: &TableAccount) -> Option<String> {
        let extension = format!(".{}", self.options.form.extension());
        let file = account.file.as_ref()?.strip_suffix(&extension)?;
        Some(file.to_owned())
    }

    fn unique_indexes<'s>(&'s self, table: &Relation, shape: &Table) -> Vec<UniqueIndex<'s>> {
        let indexes = self.catalog.relations.values();
        let mut found: Vec<UniqueIndex<'s>> = indexes
            .filter(|relation| relation.page_method() == Some(AccessMethod::Btree))
            .filter_map(|relation| {
                let index = relation.index.as_ref()?;
                let fits = index.table == table.oid && index.unique && index.valid;
                (fits && !index.has_expressions).then_some(())?;
                let column = |number: &i16| {
                    let at = usize::try_from(*number).ok()?.checked_sub(1)?;
                    let of_table = |column: &&Column| column.origin == Origin::Attribute(at);
                    shape.columns.iter().find(of_table).cloned()
                };
                let columns: Option<Vec<Column>> = index.keys.iter().map(column).collect();
                Some(UniqueIndex {
                    relation,
                    columns: columns?,
                    key_count: usize::from(index.key_count),
                })
            })
            .collect();
        found.sort_by(|a, b| a.relation.name.cmp(&b.relation.name));
        found
    }

    /// Entries that lead to damaged blocks, less those whose key leads to a live row elsewhere.
    fn entries(&self, index: &UniqueIndex<'_>, damaged: &Damaged<'_>, part: KeyPart) -> Keys {
        let mut keys = Keys::default();
        // The rest is for reading the damaged pages again.
        let (memory, threads) = (&self.options.memory, self.options.threads);
        let bytes_max = memory.limit(Limit::LostKeys, threads);
        let takes = |block: BlockNo| self.options.selection.takes_block(block.into());
        let is_whole = self.each_entry(index, &mut |tid, key, line| {
            if damaged.holds_row(tid) && takes(tid.block) && part.holds(key) {
                keys.add(key, line, bytes_max);
            }
        });
        keys.is_whole = is_whole;
        if !keys.lines.is_empty() {
            self.each_entry(index, &mut |tid, key, _| {
                let is_elsewhere = !damaged.holds_row(tid) && keys.lines.contains_key(key);
                if is_elsewhere && self.is_live(&damaged.pieces, tid) {
                    keys.lines.remove(key);
                }
            });
        }
        keys
    }

    /// Gives the rows that each entry leads to, the text of its key and a line of all its values;
    /// says whether all entries came.
    fn each_entry(&self, index: &UniqueIndex<'_>, each: &mut EachEntry<'_>) -> bool {
        let files = self.files.of(self.catalog, index.relation);
        let limits = Limits {
            major: self.cluster.layout.major,
            ..Limits::default()
        };
        let charset = charset_of(self.cluster, self.catalog.database, self.options);
        let text = &self.options.text;
        let style = text.of_columns(self.cluster, self.catalog, index.columns.iter());
        let mut texts = Texts::new(&index.columns, limits, charset, &style);
        let (mut key, mut line) = (Vec::new(), Vec::new());
        let mut all_came = true;
        let seen = each_leaf(self.cluster, &files, Leaves::All, &mut |_, leaf| {
            for (item, tuple) in leaf.data() {
                key.clear();
                line.clear();
                // A killed entry leads to a row that nobody needs.
                let pointer = leaf.page().line_pointer(item);
                let is_killed = pointer.is_some_and(|pointer| pointer.flags() == LpFlags::Dead);
                let printed = print(tuple, index, &mut texts, &mut key, &mut line);
                all_came &= is_killed || printed.is_some();
                if is_killed || printed.is_none() {
                    continue;
                }
                for tid in tuple.rows() {
                    each(tid, &key, &line);
                }
            }
            !self.progress.is_interrupted()
        });
        seen.is_whole() && all_came
    }

    fn is_live(&self, pieces: &Pieces, tid: Tid) -> bool {
        let page_bytes = usize::try_from(self.cluster.build.block_size).unwrap_or(8192);
        let Some((path, offset)) = pieces.place_of(tid.block) else {
            return false;
        };
        let mut bytes = vec![0; page_bytes];
        let read = self.cluster.source().read_at(&path, offset, &mut bytes);
        let page = Page::parse(&bytes).filter(|_| read == Ok(page_bytes));
        let Some((page, pointer)) =
            page.and_then(|page| Some((page, page.line_pointer(tid.offset)?)))
        else {
            return false;
        };
        match pointer.flags() {
            LpFlags::Redirect => true,
            LpFlags::Normal => {
                let tuple = page.item(pointer).and_then(HeapTuple::parse);
                let visibility = Visibility::new(self.cluster);
                // The first of a chain of versions may be dead while a later one lives on the same
                // page.
                tuple.is_some_and(|tuple| {
                    VersionFate::of(&visibility, tuple, tid).counts()
                        || tuple.t_infomask2() & HEAP_HOT_UPDATED != 0
                })
            }
            _ => false,
        }
    }

    /// Takes away the keys of rows that were found on the damaged pages.
    fn leave_out_found(
        &self,
        table: &Table,
        index: &UniqueIndex<'_>,
        damaged: &Damaged<'_>,
        options: &SalvageOptions,
        relation: &Relation,
        keys: &mut Keys,
    ) {
        let places: Option<Vec<usize>> = index
            .columns
            .iter()
            .take(index.key_count)
            .map(|key| {
                table
                    .columns
                    .iter()
                    .position(|column| column.origin == key.origin)
            })
            .collect();
        let Some(places) = places else { return };
        let mut take = |printed: &Piece| {
            for row in printed.rows.split_inclusive(|byte| *byte == b'\n') {
                let row = row.strip_suffix(b"\n").unwrap_or(row);
                let fields: Vec<&[u8]> = row.split(|byte| *byte == b'\t').collect();
                let key = places
                    .iter()
                    .map(|at| fields.get(*at).copied().unwrap_or_default());
                let key = key.collect::<Vec<&[u8]>>().join(&b'\t');
                keys.lines.remove(&key);
            }
            if keys.lines.is_empty() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let taker = TakeRows {
            parts_suspects: false,
            take: &mut take,
        };
        // Pages that cannot be read leave all keys on the list.
        let _left = blocks_of_table(
            self.cluster,
            self.catalog,
            relation,
            damaged.blocks,
            options,
            &Silent(self.progress),
            taker,
        );
    }

    fn write(
        &self,
        folder: &Folder,
        name: &str,
        index: &UniqueIndex<'_>,
        keys: &Keys,
    ) -> Result<LostKeys, SalvageError> {
        let name = format!("{name}.csv");
        let mut out = folder.begin(&name)?;
        let names = index.columns.iter().map(|column| column.name.as_str());
        let mut text = Vec::new();
        csv_header(names.clone(), &mut text);
        for line in keys.lines.values() {
            text.extend_from_slice(line);
            if text.len() > WRITE_BYTES {
                out.write(&text)?;
                text.clear();
            }
        }
        out.write(&text)?;
        out.finish()?;
        Ok(LostKeys {
            index: index.relation.qualified_name(),
            columns: names.map(str::to_owned).collect(),
            keys: keys.lines.len() as u64,
            file: name,
        })
    }
}

/// The key as COPY text, and all values as a line of CSV; nothing where some value cannot be read.
fn print(
    tuple: BtreeTuple<'_>,
    index: &UniqueIndex<'_>,
    texts: &mut Texts,
    key: &mut Vec<u8>,
    line: &mut Vec<u8>,
) -> Option<()> {
    let layouts = index.relation.layouts.as_ref()?;
    let is_alone = index.columns.len() == 1;
    let mut attributes = tuple.0.attributes(layouts);
    for number in 0..index.columns.len() {
        if number > 0 {
            line.push(b',');
        }
        if (1..index.key_count).contains(&number) {
            key.push(b'\t');
        }
        let mut text = Vec::new();
        let is_null = match attributes.next()?.ok()? {
            Attribute::Null => true,
            Attribute::Missing => return None,
            Attribute::Value(range) => {
                let stored = tuple.0.bytes().get(range)?;
                let payload = payload(stored, layouts.get(number)?.attlen)?;
                if let Printed::Text(shown) = texts.print(number, &payload, &mut text)? {
                    text = shown.to_vec();
                }
                false
            }
        };
        if !is_null {
            csv_field(&text, is_alone, line);
        }
        if number < index.key_count {
            if is_null {
                key.extend_from_slice(b"\\N")
            } else {
                copy_escape(&text, key)
            }
        }
    }
    line.push(b'\n');
    Some(())
}

fn payload(stored: &[u8], attlen: i16) -> Option<std::borrow::Cow<'_, [u8]>> {
    match attlen {
        -1 => varlena::parse(stored).ok()?.0.unpacked(KEY_BYTES_MAX),
        -2 => Some(stored.strip_suffix(&[0])?.into()),
        _ => Some(stored.into()),
    }
}

/// Pages that are read again are no progress.
struct Silent<'a>(&'a dyn Progress);

impl Progress for Silent<'_> {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

/// Something of the table is lost: its indexes are worth a look.
pub(super) fn is_hurt(account: &TableAccount) -> bool {
    account.damaged_pages > 0 || account.rows.lost > 0 || !account.places.is_empty()
}
