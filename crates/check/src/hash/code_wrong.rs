//! An entry of a hash index has another hash code than the value of its row.
//!
//! Entries are sorted by row, so that the table is read once from its beginning to its end. Memory:
//! a share of the budget; what does not fit is sorted on disk.
//!
//! Truth: `src/backend/access/hash/hashfunc.c`; a row's chain:
//! `src/backend/access/heap/README.HOT`.

use std::io;

use pgclinic_cluster::Index;
use pgclinic_format::attribute::{Attribute, Attributes};
use pgclinic_format::hash::{self, Entry};
use pgclinic_format::hash_value::{Hasher, hash_value, hasher_of};
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{BlockNo, ColumnLayout, HeapTuple, LpFlags, Page, Varlena, varlena};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::{plural, verb_of};
use pgclinic_spill::SortedRuns;

use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static HASH_CODE_WRONG: Rule = Rule::from_page(include_str!("../../rules/hash-code-wrong.md"));

/// See [`HASH_CODE_WRONG`].
pub struct HashCodeWrong;

/// Members of a row's chain of versions on one page.
const CHAIN_MAX: usize = 300;
/// Bytes that a compressed value may unpack to.
const UNPACKED_MAX: u32 = 64 << 20;
/// Memory for sorting entries.
const SORT_BYTES: u64 = 32 << 20;
/// Where others hold the rest.
const SORT_BYTES_MIN: u64 = 1 << 20;

impl RelationCheck for HashCodeWrong {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HASH_CODE_WRONG] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Hash
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let index = relation.fork.relation.and_then(|own| own.index.as_ref());
        let Some(index) = index.filter(|index| relation.settled() && index.valid) else {
            return;
        };
        let Some(key) = key_of(relation, index) else {
            let why = "its operator class, collation or key is none that is hashed here";
            return relation.not_checked(out, "hash codes", why, true);
        };
        if let Err(error) = compare(relation, index, key, out) {
            relation.not_checked(out, "hash codes", &error.to_string(), false);
        }
    }
}

/// The column of the table, from 0, and how it is hashed.
#[derive(Clone, Copy)]
struct Key<'a> {
    column: usize,
    hasher: Hasher,
    /// What rows from before the column have, with its header.
    added: Option<&'a [u8]>,
}

fn key_of<'a>(relation: &RelationCx<'a>, index: &Index) -> Option<Key<'a>> {
    let class = index.classes.first()?;
    let column = usize::try_from(*index.keys.first()?).ok()?.checked_sub(1)?;
    let collation = index.collations.first().copied().unwrap_or(0);
    // Other collations hash a sort key that only their library knows.
    let own = relation.catalog.collation(collation);
    let deterministic = collation == 0 || own.is_some_and(|own| own.deterministic);
    (class.oid < FIRST_NORMAL_OID && deterministic).then_some(())?;
    let table = relation.catalog.relations.get(&index.table);
    let columns = table.and_then(|table| table.columns.as_ref());
    let own = columns.and_then(|columns| columns.get(column));
    Some(Key {
        column,
        hasher: hasher_of(class.input_type)?,
        added: own.and_then(|own| own.missing.as_deref()),
    })
}

fn compare(
    relation: &RelationCx<'_>,
    index: &Index,
    key: Key<'_>,
    out: &mut Findings,
) -> io::Result<()> {
    let Some(table) = relation.main_fork_of(index.table) else {
        let why = "the table is not part of this run";
        relation.not_checked(out, "hash codes", why, false);
        return Ok(());
    };
    let Some(columns) = table.columns.and_then(|columns| columns.get(..=key.column)) else {
        let why = "the columns of its table are unknown";
        relation.not_checked(out, "hash codes", why, false);
        return Ok(());
    };
    let wanted = SORT_BYTES.min(relation.budget.limit() / 4);
    let lease = relation.budget.take_some(wanted, SORT_BYTES_MIN);
    let entries = sorted_entries(relation, usize::try_from(lease.bytes()).unwrap_or(0))?;
    let mut pages = relation.pages_of(table);
    let mut elsewhere = 0u64;
    for record in entries.finish()? {
        let (row, entry) = record?;
        let Some(found) = Found::read(&row, &entry) else {
            continue;
        };
        if relation.is_interrupted() {
            return Ok(());
        }
        let Some(page) = pages.page(found.block) else {
            continue;
        };
        let verdict = verdict(page, found, columns, key);
        elsewhere += u64::from(matches!(verdict, CodeMatch::Elsewhere));
        if let CodeMatch::Other(code) = verdict {
            let words = format!(
                "hash code {:#010x} is not {code:#010x}, that of row ({},{})",
                found.code, found.block, found.offset
            );
            let draft = relation.draft(&HASH_CODE_WRONG, found.index_block, words);
            let draft = draft.item(found.item).follows(table, found.block);
            out.add(draft.fact("row", format!("({},{})", found.block, found.offset)));
        }
    }
    if elsewhere > 0 {
        let why = format!(
            "{elsewhere} {stand} in TOAST",
            elsewhere = plural(elsewhere, "value"),
            stand = verb_of(elsewhere, "stand")
        );
        relation.not_checked(out, "hash codes of TOASTed values", &why, true);
    }
    Ok(())
}

fn sorted_entries(relation: &RelationCx<'_>, bytes: usize) -> io::Result<SortedRuns> {
    let mut runs = SortedRuns::new(bytes, relation.spill_folder)?;
    let mut pages = relation.pages();
    for block in 1..relation.fork.blocks {
        let Ok(block) = BlockNo::try_from(block) else {
            break;
        };
        if relation.is_interrupted() {
            break;
        }
        let Some(page) = pages.page(block) else {
            continue;
        };
        let mut pushed = Ok(());
        hash::for_each_row(page, &mut |entry| {
            if pushed.is_ok() && !entry.dead {
                let (row, value) = record_of(entry, block);
                pushed = runs.push(&row, &value);
            }
        });
        pushed?;
    }
    Ok(runs)
}

fn record_of(entry: Entry, index_block: BlockNo) -> ([u8; 6], [u8; 10]) {
    let (mut row, mut value) = ([0; 6], [0; 10]);
    row[..4].copy_from_slice(&entry.block.to_be_bytes());
    row[4..].copy_from_slice(&entry.offset.to_be_bytes());
    value[..4].copy_from_slice(&entry.code.to_le_bytes());
    value[4..8].copy_from_slice(&index_block.to_le_bytes());
    value[8..].copy_from_slice(&entry.item.to_le_bytes());
    (row, value)
}

/// An entry with where it stands.
#[derive(Clone, Copy)]
struct Found {
    block: BlockNo,
    offset: u16,
    code: u32,
    index_block: BlockNo,
    item: u16,
}

impl Found {
    fn read(row: &[u8], value: &[u8]) -> Option<Self> {
        Some(Found {
            block: u32::from_be_bytes(*row.first_chunk()?),
            offset: u16::from_be_bytes(*row.get(4..)?.first_chunk()?),
            code: u32::from_le_bytes(*value.first_chunk()?),
            index_block: u32::from_le_bytes(*value.get(4..)?.first_chunk()?),
            item: u16::from_le_bytes(*value.get(8..)?.first_chunk()?),
        })
    }
}

enum CodeMatch {
    /// Some version of the row has this code, or nobody can tell.
    Fits,
    /// The value is in TOAST, where it is not fetched from.
    Elsewhere,
    /// All versions have another one; that of the last.
    Other(u32),
}

/// All versions of a row on its page: an index made later than an update holds only what came after
/// it.
fn verdict(page: Page<'_>, found: Found, columns: &[ColumnLayout], key: Key<'_>) -> CodeMatch {
    let mut offset = found.offset;
    let mut other = None;
    for _ in 0..CHAIN_MAX {
        let Some(pointer) = page.line_pointer(offset) else {
            break;
        };
        if pointer.flags() == LpFlags::Redirect && offset == found.offset {
            offset = pointer.lp_off();
            continue;
        }
        let tuple = (pointer.flags() == LpFlags::Normal).then(|| page.item(pointer));
        let Some(tuple) = tuple.flatten().and_then(HeapTuple::parse) else {
            break;
        };
        match code_of(tuple, columns, key) {
            Code::Known(code) if code != found.code => other = Some(code),
            Code::Elsewhere => return CodeMatch::Elsewhere,
            Code::Known(_) | Code::Unknown => return CodeMatch::Fits,
        }
        let next = tuple.t_ctid();
        if tuple.t_infomask2() & HEAP_HOT_UPDATED == 0 || next.block != found.block {
            break;
        }
        offset = next.offset;
    }
    other.map_or(CodeMatch::Fits, CodeMatch::Other)
}

/// The hash code of a row's value.
enum Code {
    Known(u32),
    /// The value stands in TOAST.
    Elsewhere,
    /// It is null, or cannot be read: other rules tell of those.
    Unknown,
}

fn code_of(tuple: HeapTuple<'_>, columns: &[ColumnLayout], key: Key<'_>) -> Code {
    let Some(bytes) = value_of(tuple, columns, key) else {
        return Code::Unknown;
    };
    let long = columns.get(key.column).map(|column| column.attlen) == Some(-1);
    let code = match long.then(|| varlena::parse(bytes)) {
        None => hash_value(key.hasher, bytes),
        Some(Ok((Varlena::External(_), _))) => return Code::Elsewhere,
        Some(Ok((value, _))) => value
            .unpacked(UNPACKED_MAX)
            .and_then(|payload| hash_value(key.hasher, &payload)),
        Some(Err(_)) => None,
    };
    code.map_or(Code::Unknown, Code::Known)
}

fn value_of<'a>(tuple: HeapTuple<'a>, columns: &[ColumnLayout], key: Key<'a>) -> Option<&'a [u8]> {
    match Attributes::new(tuple, columns).nth(key.column)?.ok()? {
        Attribute::Value(range) => tuple.bytes().get(range),
        Attribute::Missing => key.added,
        Attribute::Null => None,
    }
}
