//! Whether an index and a table belong together: a few entries and the rows that they lead to have
//! the same keys. Where they do not, a file of one of them is another relation's, and nobody's rows
//! are missing because of it.

use pgclinic_cluster::{Cluster, Pieces, Relation};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::btree::BtreeTuple;
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;
use pgclinic_format::types::Tid;
use pgclinic_format::{Attributes, BlockNo, ColumnLayout, HeapTuple, LpFlags, Page, varlena};

use super::roots::RootPages;

/// Entries that are kept: half of them go when there are more.
const SAMPLES_MAX: usize = 64;
/// Fewer entries that were compared tell nothing.
const COMPARED_MIN: u64 = 8;
/// The longest value that is unpacked.
const VALUE_BYTES_MAX: u32 = 1 << 20;

/// Entries of an index, evenly from its whole length.
pub(super) struct KeySamples<'a> {
    index: &'a Relation,
    table: &'a Relation,
    stride: u64,
    met: u64,
    kept: Vec<(Tid, Keys)>,
}

/// The values of a key's columns; nothing where one is null or cannot be read.
type Keys = Vec<Option<Vec<u8>>>;

/// How many of the entries have the key of their row, and how many another one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct KeyAgreement {
    same: u64,
    other: u64,
}

impl KeyAgreement {
    /// Most entries have other keys than the rows that they lead to.
    pub(super) fn is_broken(self) -> bool {
        let compared = self.other + self.same;
        compared >= COMPARED_MIN && self.other * 4 >= compared * 3
    }

    /// Most have the key of their row.
    pub(super) fn holds(self) -> bool {
        self.same > self.other
    }
}

impl<'a> KeySamples<'a> {
    pub(super) fn new(index: &'a Relation, table: &'a Relation) -> Self {
        KeySamples {
            index,
            table,
            stride: 1,
            met: 0,
            kept: Vec::new(),
        }
    }

    /// Meets an entry that nobody killed.
    #[inline]
    pub(super) fn meet(&mut self, tid: Tid, tuple: BtreeTuple<'_>) {
        self.met += 1;
        // The stride is a power of two.
        if self.met & (self.stride - 1) == 0 {
            self.keep(tid, tuple);
        }
    }

    fn keep(&mut self, tid: Tid, tuple: BtreeTuple<'_>) {
        let Some(layouts) = self.index.layouts.as_ref() else {
            return;
        };
        let bytes = tuple.0.bytes();
        let values = tuple.0.attributes(layouts).zip(layouts);
        let keys = values.map(|(value, layout)| value_of(bytes, &value.ok()?, *layout));
        self.kept.push((tid, keys.collect()));
        if self.kept.len() > SAMPLES_MAX {
            let mut number = 0u64;
            self.kept.retain(|_| {
                number += 1;
                number.is_multiple_of(2)
            });
            self.stride *= 2;
        }
    }

    /// Compares them with the rows of the table, as far as both can be read and are of one moment.
    pub(super) fn compare(&self, pages: &RootPages<'_>) -> KeyAgreement {
        let mut found = KeyAgreement::default();
        let mut kept: Vec<&(Tid, Keys)> = self.kept.iter().collect();
        kept.sort_by_key(|(tid, _)| *tid);
        // Each page is read once: over a network that is what it costs.
        let mut last: Option<(BlockNo, Option<Vec<u8>>)> = None;
        for (tid, keys) in kept {
            if last.as_ref().is_none_or(|(block, _)| *block != tid.block) {
                let bytes = read_page(tid.block, pages.cluster, pages.pieces);
                last = Some((tid.block, bytes));
            }
            let bytes = last.as_ref().and_then(|(_, bytes)| bytes.as_deref());
            match bytes.and_then(|bytes| self.is_same(*tid, keys, bytes, pages)) {
                Some(true) => found.same += 1,
                Some(false) => found.other += 1,
                None => {}
            }
        }
        found
    }

    fn is_same(&self, tid: Tid, keys: &Keys, bytes: &[u8], pages: &RootPages<'_>) -> Option<bool> {
        let page = Page::parse(bytes).filter(|page| pages.tell(*page, tid.block))?;
        let tuple = row_of(page, tid)?;
        let layouts = self.table.layouts.as_ref()?;
        let row: Vec<_> = Attributes::new(tuple, layouts)
            .map_while(Result::ok)
            .collect();
        let own = self.index.index.as_ref()?;
        let own_layouts = self.index.layouts.as_ref()?;
        let mut is_same = None;
        for ((number, key), own_layout) in own.keys.iter().zip(keys).zip(own_layouts) {
            // An expression has no column, and an operator class may store another type.
            let at = usize::try_from(*number)
                .ok()
                .and_then(|at| at.checked_sub(1));
            let Some(at) = at else { continue };
            let layout = layouts
                .get(at)
                .filter(|layout| layout.attlen == own_layout.attlen);
            let value = layout.zip(row.get(at));
            let value = value.and_then(|(layout, value)| value_of(tuple.bytes(), value, *layout));
            if let (Some(key), Some(value)) = (key, value) {
                is_same = Some(is_same.unwrap_or(true) && *key == value);
            }
        }
        is_same
    }
}

fn value_of(bytes: &[u8], value: &Attribute, layout: ColumnLayout) -> Option<Vec<u8>> {
    let Attribute::Value(range) = value else {
        return None;
    };
    let stored = bytes.get(range.clone())?;
    let payload = varlena::payload(layout.attlen, stored, VALUE_BYTES_MAX)?;
    Some(payload.into_owned())
}

/// A page of a table; nothing where it cannot be read.
pub(super) fn read_page(block: BlockNo, cluster: &Cluster, pieces: &Pieces) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(cluster.build.block_size).ok()?];
    let (path, offset) = pieces.place_of(block)?;
    let read = cluster.source().read_at(&path, offset, &mut bytes);
    (read == Ok(bytes.len())).then_some(bytes)
}

/// The row that an entry leads to, where it is the last of its chain. An index that was made later
/// has the key of the last version under the line pointer of the first (a broken HOT chain).
fn row_of(page: Page<'_>, tid: Tid) -> Option<HeapTuple<'_>> {
    let pointer = page.line_pointer(tid.offset)?;
    let pointer = match pointer.flags() {
        LpFlags::Redirect => page.line_pointer(pointer.lp_off())?,
        _ => pointer,
    };
    let is_row = pointer.flags() == LpFlags::Normal;
    let row = is_row.then(|| page.item(pointer).and_then(HeapTuple::parse))?;
    row.filter(|row| row.t_infomask2() & HEAP_HOT_UPDATED == 0)
}
