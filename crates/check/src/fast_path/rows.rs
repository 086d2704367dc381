//! The rows of a page of the heap.

use std::cell::Cell;

use pgclinic_cluster::XactStatus;
use pgclinic_format::front_bits::FixedFront;
use pgclinic_format::heap_tuple::{
    HEAP_HASEXTERNAL, HEAP_HASNULL, HEAP_HASOID_OLD, HEAP_HASVARWIDTH, HEAP_HOT_UPDATED,
    HEAP_MOVED, HEAP_ONLY_TUPLE, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMAX_LOCK_ONLY, HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN, INFOMASK2_UNUSED,
};
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::toast::MAX_VALUE_BYTES;
use pgclinic_format::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use pgclinic_format::{
    BlockNo, ColumnLayout, HeapTuple, LinePointer, LpFlags, MultiXactId, Page, Varlena, Xid,
    varlena,
};
use pgclinic_model::document::FileKind;

use crate::check::{ForkCx, Limits};
use crate::fast_path::FastPathVerdict;
use crate::fast_path::items::{Bounds, Taken};
use crate::heap::visibility_bits::VisibilityReader;
use crate::heap::xact_lookup::XactLookup;

/// A heap tuple without columns.
const HEAP_ITEM_BYTES: usize = 24;
/// Flags that make somebody ask for more than the header.
const ODD_FLAGS: u16 = HEAP_HASOID_OLD | HEAP_XMAX_COMMITTED | HEAP_XMAX_IS_MULTI | HEAP_MOVED;
const ODD_FLAGS2: u16 = INFOMASK2_UNUSED | HEAP_HOT_UPDATED | HEAP_ONLY_TUPLE;

pub(super) struct Rows<'a> {
    columns: &'a [ColumnLayout],
    front: FixedFront,
    limits: Option<Limits>,
    relfrozenxid: Xid,
    relminmxid: MultiXactId,
    toast: u32,
    method_max: u8,
    chunks: Option<Chunks>,
    fates: Option<XactLookup<'a>>,
    /// The last transaction that the log called committed: rows come in runs.
    committed: Cell<Xid>,
    map: Option<VisibilityReader<'a>>,
}

/// What plain rows may be on one page.
#[derive(Clone, Copy)]
struct Plainness {
    /// So far they are.
    holds: bool,
    /// The page says that everybody sees all of them.
    all_visible: bool,
    /// The visibility map says that they are frozen.
    all_frozen: bool,
}

/// Bounds of the rows of a TOAST relation.
#[derive(Clone, Copy)]
struct Chunks {
    bytes_max: usize,
    number_max: u32,
}

impl<'a> Rows<'a> {
    pub(super) fn new(fork: &'a ForkCx<'a>, columns: &'a [ColumnLayout]) -> Self {
        let relation = fork.relation;
        Rows {
            columns,
            front: FixedFront::of(columns),
            limits: fork.reach(),
            relfrozenxid: relation.map_or(Xid::INVALID, |relation| relation.relfrozenxid),
            relminmxid: relation.map_or(MultiXactId(0), |relation| relation.relminmxid),
            toast: relation.map_or(0, |relation| relation.toast),
            method_max: if fork.major() >= 14 { 1 } else { 0 },
            chunks: (fork.kind == FileKind::Toast).then(|| Chunks {
                bytes_max: usize::try_from(fork.build.toast_chunk).unwrap_or(0),
                number_max: MAX_VALUE_BYTES / fork.build.toast_chunk.max(1),
            }),
            fates: XactLookup::of(fork).or_else(|| XactLookup::of_checkpoint(fork)),
            committed: Cell::new(Xid::INVALID),
            map: fork.heap.visibility().map(|map| map.reader()),
        }
    }

    pub(super) fn glance(&self, page: Page<'_>, block: BlockNo) -> FastPathVerdict {
        let mut taken = Taken::new();
        let bounds = Bounds::of(page, HEAP_ITEM_BYTES);
        let count = page.line_pointer_count();
        let mut plain = self.plainness(page, block);
        let right = page
            .line_pointers()
            .all(|(_, pointer)| match pointer.flags() {
                LpFlags::Normal => {
                    let holds = bounds.hold(pointer);
                    if holds {
                        taken.take(pointer);
                    }
                    holds && self.tuple_is_right(page, pointer, (block, count), &mut plain)
                }
                LpFlags::Unused => pointer.lp_len() == 0,
                LpFlags::Dead => {
                    plain.holds &= !plain.all_visible;
                    pointer.lp_len() == 0
                }
                LpFlags::Redirect => {
                    plain.holds = false;
                    pointer.lp_len() == 0 && leads_to_heap_only(page, pointer)
                }
            });
        match (right && taken.is_disjoint(), plain.holds) {
            (false, _) => FastPathVerdict::Odd,
            (true, false) => FastPathVerdict::Right,
            (true, true) => FastPathVerdict::Plain,
        }
    }

    fn plainness(&self, page: Page<'_>, block: BlockNo) -> Plainness {
        let bits = self.map.as_ref().map_or(0, |map| map.of(block));
        let all_visible = page.pd_flags() & PD_ALL_VISIBLE != 0;
        let all_frozen = bits & ALL_FROZEN != 0;
        let mapped = bits & ALL_VISIBLE != 0;
        Plainness {
            holds: (all_visible || !mapped) && (mapped || !all_frozen),
            all_visible,
            all_frozen,
        }
    }

    #[inline]
    fn tuple_is_right(
        &self,
        page: Page<'_>,
        pointer: LinePointer,
        (block, count): (BlockNo, u16),
        plain: &mut Plainness,
    ) -> bool {
        let Some(tuple) = page.item(pointer).and_then(HeapTuple::parse) else {
            return false;
        };
        if self.is_usual(tuple, count, plain) {
            return self.attributes_are_right(tuple);
        }
        if plain.holds {
            plain.holds = self.is_plain(tuple, plain.all_frozen);
        }
        // A plain row's xmin is frozen or was looked up.
        let settled = plain.holds && tuple.t_xmax() == Xid::INVALID;
        self.header_is_right(tuple, block, count)
            && (settled || self.transactions_are_right(tuple))
            && self.attributes_are_right(tuple)
    }

    /// The short way for what nearly every row is: plain, with nothing in its header to ask about.
    #[inline]
    fn is_usual(&self, tuple: HeapTuple<'_>, count: u16, plain: &Plainness) -> bool {
        let (mask, mask2) = (tuple.t_infomask(), tuple.t_infomask2());
        let hoff = usize::from(tuple.t_hoff());
        let settled = match mask & HEAP_XMIN_FROZEN {
            HEAP_XMIN_FROZEN => true,
            HEAP_XMIN_COMMITTED => !plain.all_frozen && self.committed(tuple.t_xmin()),
            _ => false,
        };
        settled
            && mask & ODD_FLAGS == 0
            && mask2 & ODD_FLAGS2 == 0
            && tuple.t_xmax() == Xid::INVALID
            && (1..=count).contains(&tuple.t_ctid().offset)
            && usize::from(tuple.attribute_count()) <= self.columns.len()
            && hoff == tuple.expected_hoff()
            && hoff <= tuple.bytes().len()
    }

    /// Nothing about the row has to be looked up or followed.
    #[inline]
    fn is_plain(&self, tuple: HeapTuple<'_>, frozen: bool) -> bool {
        let (mask, mask2) = (tuple.t_infomask(), tuple.t_infomask2());
        let locked = mask & HEAP_XMAX_LOCK_ONLY != 0 && !frozen;
        mask2 & (HEAP_HOT_UPDATED | HEAP_ONLY_TUPLE) == 0
            && mask & (HEAP_XMAX_IS_MULTI | HEAP_XMAX_COMMITTED | HEAP_MOVED) == 0
            && (tuple.t_xmax() == Xid::INVALID || locked)
            && match mask & HEAP_XMIN_FROZEN {
                HEAP_XMIN_FROZEN => true,
                HEAP_XMIN_COMMITTED if !frozen => self.committed(tuple.t_xmin()),
                _ => false,
            }
    }

    /// The log says so, where it may be asked, and the limits allow it.
    #[inline]
    fn committed(&self, xid: Xid) -> bool {
        if self.committed.get() == xid {
            return xid.is_normal();
        }
        let fates = self.fates.as_ref();
        let allowed = |limits: &Limits| self.xid_is_right(xid, limits);
        let committed = self.limits.as_ref().is_none_or(allowed)
            && fates.is_none_or(|fates| fates.status(xid) == Some(XactStatus::Committed));
        if committed {
            self.committed.set(xid);
        }
        committed
    }

    #[inline]
    fn header_is_right(&self, tuple: HeapTuple<'_>, block: BlockNo, count: u16) -> bool {
        let (mask, mask2) = (tuple.t_infomask(), tuple.t_infomask2());
        let hoff = usize::from(tuple.t_hoff());
        let ctid = tuple.t_ctid();
        let committed_multi = HEAP_XMAX_COMMITTED | HEAP_XMAX_IS_MULTI;
        let committed_invalid = HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
        usize::from(tuple.attribute_count()) <= self.columns.len()
            && hoff == tuple.expected_hoff()
            && hoff <= tuple.bytes().len()
            && mask2 & INFOMASK2_UNUSED == 0
            && mask & HEAP_HASOID_OLD == 0
            && mask & committed_multi != committed_multi
            && mask & committed_invalid != committed_invalid
            && (1..=count).contains(&ctid.offset)
            && (mask2 & HEAP_HOT_UPDATED == 0 || ctid.block == block)
    }

    #[inline]
    fn transactions_are_right(&self, tuple: HeapTuple<'_>) -> bool {
        let Some(limits) = &self.limits else {
            return true;
        };
        let mask = tuple.t_infomask();
        let xmin_is_right = mask & HEAP_XMIN_FROZEN == HEAP_XMIN_FROZEN
            || self.xid_is_right(tuple.t_xmin(), limits);
        let xmax = tuple.t_xmax();
        let xmax_is_right = mask & HEAP_XMAX_INVALID != 0
            || xmax == Xid::INVALID
            || if mask & HEAP_XMAX_IS_MULTI != 0 {
                let multi = MultiXactId(xmax.0);
                multi.precedes(limits.next_multi) && !multi.precedes(self.relminmxid)
            } else {
                self.xid_is_right(xmax, limits)
            };
        xmin_is_right && xmax_is_right
    }

    #[inline]
    fn xid_is_right(&self, xid: Xid, limits: &Limits) -> bool {
        xid.is_normal() && xid.precedes(limits.next_xid) && !xid.precedes(self.relfrozenxid)
    }

    #[inline]
    fn attributes_are_right(&self, tuple: HeapTuple<'_>) -> bool {
        let stored = usize::from(tuple.attribute_count());
        let bytes = tuple.bytes();
        let external = tuple.t_infomask() & HEAP_HASEXTERNAL != 0;
        let hoff = usize::from(tuple.t_hoff());
        let nulls = if tuple.t_infomask() & HEAP_HASNULL != 0 {
            tuple.null_bitmap()
        } else {
            None
        };
        let (skip, offset) = self.front.skip(nulls, stored);
        let mut at = hoff + offset;
        let columns = self.columns.get(skip..stored).unwrap_or_default();
        let (mut wide, mut null) = (false, nulls.is_none());
        for (column, index) in columns.iter().zip(skip..) {
            if nulls.is_some_and(|nulls| {
                nulls
                    .get(index / 8)
                    .is_none_or(|byte| byte & (1 << (index % 8)) == 0)
            }) {
                null = true;
                continue;
            }
            wide |= column.attlen < 0;
            match self.value_end(*column, bytes, at, external) {
                Some(end) => at = end,
                None => return false,
            }
        }
        at == bytes.len()
            && wide == (tuple.t_infomask() & HEAP_HASVARWIDTH != 0)
            && null
            && self.chunk_is_right(bytes, hoff, stored)
    }

    /// Offset after the value that begins at `at`, or nothing where somebody should look.
    #[inline]
    fn value_end(
        &self,
        column: ColumnLayout,
        bytes: &[u8],
        at: usize,
        external: bool,
    ) -> Option<usize> {
        let align = usize::from(column.attalign.max(1));
        let aligned = (at + align - 1) & !(align - 1);
        if column.attlen >= 0 {
            return Some(aligned + usize::from(column.attlen.unsigned_abs()));
        }
        if column.attlen != -1 {
            let rest = bytes.get(aligned..)?;
            return Some(aligned + rest.iter().position(|byte| *byte == 0)? + 1);
        }
        let first = *bytes.get(at)?;
        if first & 1 == 1 && first != 1 {
            let end = at + usize::from(first >> 1);
            return (end <= bytes.len()).then_some(end);
        }
        let start = if first == 0 { aligned } else { at };
        let (value, len) = varlena::parse(bytes.get(start..)?).ok()?;
        self.long_value_is_right(value, len, external)
            .then_some(start + len)
    }

    fn long_value_is_right(&self, value: Varlena<'_>, len: usize, external: bool) -> bool {
        match value {
            Varlena::Short(_) | Varlena::Plain(_) => true,
            Varlena::Compressed(compressed) => {
                let raw_size = usize::try_from(compressed.raw_size).unwrap_or(usize::MAX);
                self.chunks.is_none()
                    && compressed.method <= self.method_max
                    && raw_size >= len
                    && compressed.raw_size < MAX_VALUE_BYTES - 4
            }
            Varlena::External(pointer) => {
                external
                    && self.chunks.is_none()
                    && self.toast != 0
                    && pointer.va_toastrelid == self.toast
                    && (5..=MAX_VALUE_BYTES).contains(&pointer.va_rawsize)
                    && pointer.va_extsize > 0
                    && pointer.va_extsize <= pointer.va_rawsize - 4
                    && pointer.method
                        <= if pointer.is_compressed() {
                            self.method_max
                        } else {
                            0
                        }
            }
        }
    }

    /// In a TOAST relation: the chunk's number and size.
    #[inline]
    fn chunk_is_right(&self, bytes: &[u8], hoff: usize, stored: usize) -> bool {
        let Some(bounds) = self.chunks else {
            return true;
        };
        let number = bytes
            .get(hoff + 4..)
            .and_then(|rest| rest.first_chunk())
            .map(|raw| u32::from_le_bytes(*raw));
        let data = bytes
            .get(hoff + 8..)
            .and_then(|rest| varlena::parse(rest).ok());
        let sized = match data {
            Some((Varlena::Short(data) | Varlena::Plain(data), _)) => {
                (1..=bounds.bytes_max).contains(&data.len())
            }
            _ => false,
        };
        stored == 3 && sized && number.is_some_and(|number| number <= bounds.number_max)
    }
}

fn leads_to_heap_only(page: Page<'_>, pointer: LinePointer) -> bool {
    let target = page.line_pointer(pointer.lp_off());
    let normal = target.filter(|target| target.flags() == LpFlags::Normal);
    let tuple = normal.and_then(|target| HeapTuple::parse(page.item(target)?));
    tuple.is_some_and(|tuple| tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0)
}
