//! Which table an index is of, where its pages need not be of the same moment as the table's:
//! nearly every entry names a row that has its key, and those of another index do not.

use std::collections::BTreeMap;

use pgclinic_cluster::{Cluster, ForkFiles, HeapScan, Leaves, RawRow, each_leaf};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::btree::BtreeTuple;
use pgclinic_format::{BlockNo, ColumnLayout};

/// `NAMEDATALEN`. An index has a name up to its first zero.
const NAME_BYTES: i16 = 64;
/// Of so many entries that agree one may be of before a row was moved.
const AGREE_FOR_ONE: u64 = 20;

/// The keys of a table's rows, by block and line pointer.
pub(super) struct RowKeys {
    by_row: BTreeMap<(BlockNo, u16), Vec<Option<Vec<u8>>>>,
}

/// What entries of an index say of the rows that they name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Entries {
    agree: u64,
    differ: u64,
    all: u64,
}

impl RowKeys {
    /// Those of the columns `keys`, counted from 1.
    pub(super) fn read(
        cluster: &Cluster,
        table: &ForkFiles,
        columns: &[ColumnLayout],
        keys: &[i16],
    ) -> Self {
        let mut by_row = BTreeMap::new();
        HeapScan::new(cluster, table, columns).each_row(|row| {
            let own = keys.iter().map(|key| key_of(&row, columns, *key));
            by_row.insert((row.block, row.item), own.collect());
        });
        RowKeys { by_row }
    }

    /// The index in these files can be one of these keys; an index without entries is that of a
    /// table without rows.
    pub(super) fn fit(
        &self,
        cluster: &Cluster,
        index: &ForkFiles,
        columns: &[ColumnLayout],
    ) -> bool {
        let mut seen = Entries::default();
        let walk = each_leaf(cluster, index, Leaves::Sound, &mut |_, leaf| {
            let pointers = leaf.page().line_pointers();
            let own = pointers.filter(|(item, _)| *item >= leaf.first_data());
            for tuple in own.filter_map(|(_, pointer)| leaf.tuple_of(pointer)) {
                self.compare(tuple, columns, &mut seen);
            }
            true
        });
        let is_empty = self.by_row.is_empty() && seen.all == 0;
        let agrees = seen.agree > 0 && seen.differ.saturating_mul(AGREE_FOR_ONE) <= seen.agree;
        walk.is_whole() && (is_empty || agrees)
    }

    fn compare(&self, tuple: BtreeTuple<'_>, columns: &[ColumnLayout], seen: &mut Entries) {
        let attributes = tuple.0.attributes(columns).zip(columns);
        let keys: Vec<Option<&[u8]>> = attributes
            .map(|(attribute, column)| match attribute {
                Ok(Attribute::Value(range)) => plain(tuple.0.bytes().get(range)?, column.attlen),
                _ => None,
            })
            .collect();
        for row in tuple.rows() {
            seen.all += 1;
            let Some(own) = self.by_row.get(&(row.block, row.offset)) else {
                continue;
            };
            if own.iter().all(Option::is_none) {
                continue;
            }
            let pairs = own.iter().zip(&keys);
            let mut known = pairs.filter(|(own, _)| own.is_some());
            if known.all(|(own, key)| own.as_deref() == *key) {
                seen.agree += 1;
            } else {
                seen.differ += 1;
            }
        }
    }
}

fn key_of(row: &RawRow<'_>, columns: &[ColumnLayout], key: i16) -> Option<Vec<u8>> {
    let at = usize::try_from(key).ok()?.checked_sub(1)?;
    let column = columns.get(at)?;
    plain(row.bytes(at)?, column.attlen).map(<[u8]>::to_vec)
}

/// The bytes that are alike in a row and in an entry; a varlena may have another header there.
fn plain(bytes: &[u8], attlen: i16) -> Option<&[u8]> {
    match attlen {
        NAME_BYTES | -2 => {
            let end = bytes.iter().position(|byte| *byte == 0);
            bytes.get(..end.unwrap_or(bytes.len()))
        }
        1.. => Some(bytes),
        _ => None,
    }
}
