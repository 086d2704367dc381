//! Long values fetched one by one, down the index of their TOAST table.
//!
//! Truth: `toast_fetch_datum` in `src/backend/access/common/detoast.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::btree::{BtreePage, BtreeTuple, Meta};
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::types::Tid;
use pgclinic_format::{
    Attribute, Attributes, BlockNo, HeapTuple, LpFlags, Varlena, datum, varlena,
};
use pgclinic_scan::PageReader;

/// Larger values are left out.
const VALUE_MAX: u32 = 4 << 20;
/// No tree is as high.
const LEVELS_MAX: usize = 32;

/// Reads values of one TOAST table.
pub(super) struct Toasted<'a> {
    heap: PageReader<'a>,
    fork: &'a ForkContext<'a>,
    index: PageReader<'a>,
}

impl<'a> Toasted<'a> {
    pub(super) fn new(heap: &'a ForkContext<'a>, index: &'a ForkContext<'a>) -> Option<Self> {
        Some(Toasted {
            heap: PageReader::new(heap.source?, heap),
            fork: heap,
            index: PageReader::new(index.source?, index),
        })
    }

    /// The value, unpacked; nothing where a chunk is missing or the value is too large to be tried.
    pub(super) fn value(&mut self, pointer: ToastPointer) -> Option<Vec<u8>> {
        (pointer.va_rawsize <= VALUE_MAX).then_some(())?;
        let size = usize::try_from(pointer.va_extsize).ok()?;
        let mut stored = Vec::with_capacity(size);
        for tid in self.chunks(pointer.va_valueid, size)? {
            self.append(tid, pointer.va_valueid, &mut stored)?;
        }
        (stored.len() == size).then_some(())?;
        if !pointer.is_compressed() {
            return Some(stored);
        }
        let raw_size = usize::try_from(pointer.va_rawsize.checked_sub(4)?).ok()?;
        // What is packed begins with its size and method, which the pointer says too.
        datum::decompress(pointer.method, stored.get(4..)?, raw_size).ok()
    }

    /// Where the chunks stand, in order.
    fn chunks(&mut self, value: u32, size: usize) -> Option<Vec<Tid>> {
        let mut at = self.leaf(value)?;
        let mut tids = Vec::new();
        // A leaf that holds none of them is passed at most once on either side.
        for _ in 0..size / 512 + 3 {
            let page = self.index.page(at)?;
            let tree = BtreePage::parse(page)?;
            for (_, tuple) in tree.data() {
                match key(tuple).0.cmp(&value) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => tids.extend(tuple.rows()),
                    std::cmp::Ordering::Greater => return Some(tids),
                }
            }
            if tree.is_rightmost() {
                return Some(tids);
            }
            at = tree.next;
        }
        None
    }

    fn leaf(&mut self, value: u32) -> Option<BlockNo> {
        let mut at = Meta::parse(self.index.page(0)?)?.root;
        for _ in 0..LEVELS_MAX {
            let tree = BtreePage::parse(self.index.page(at)?)?;
            if tree.is_leaf() {
                return Some(at);
            }
            let below = tree.data().take_while(|(item, tuple)| {
                *item == tree.first_data() || key(*tuple) <= (value, 0)
            });
            at = below.last()?.1.child();
        }
        None
    }

    fn append(&mut self, tid: Tid, value: u32, stored: &mut Vec<u8>) -> Option<()> {
        let columns = self.fork.columns?;
        let page = self.heap.page(tid.block)?;
        let pointer = page.line_pointer(tid.offset)?;
        if pointer.flags() != LpFlags::Normal {
            return Some(());
        }
        let tuple = HeapTuple::parse(page.item(pointer)?)?;
        let mut walk = Attributes::new(tuple, columns);
        let mut next = || match walk.next()?.ok()? {
            Attribute::Value(range) => tuple.bytes().get(range),
            Attribute::Null | Attribute::Missing => None,
        };
        let (id, _, data) = (next()?, next()?, next()?);
        (id == value.to_le_bytes()).then_some(())?;
        match varlena::parse(data).ok()?.0 {
            Varlena::Short(data) | Varlena::Plain(data) => stored.extend_from_slice(data),
            Varlena::Compressed(_) | Varlena::External(_) => return None,
        }
        Some(())
    }
}

/// Number of the value and of its chunk; of a pivot without the second, the lowest.
fn key(tuple: BtreeTuple<'_>) -> (u32, i32) {
    let key = tuple.key_bytes().get(8..).unwrap_or_default();
    let word = |at: usize| key.get(at..).and_then(|rest| rest.first_chunk()).copied();
    let value = word(0).map_or(0, u32::from_le_bytes);
    let chunk = word(4).filter(|_| tuple.stored_columns(2) > 1);
    (value, chunk.map_or(i32::MIN, i32::from_le_bytes))
}
