//! The tuples of a heap page, as far as checks of rows can look at them.

use std::ops::Range;

use pgclinic_cluster::{Column, Visibility};
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED};
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::{Attribute, Attributes, HeapTuple, LpFlags, Page, Varlena, Xid, varlena};
use pgclinic_model::Rule;
use pgclinic_source::SourceErrorKind;

use crate::check::{ForkCx, PageCx};
use crate::findings::Draft;

/// `t_xmin`, as offsets in the tuple.
pub(crate) const XMIN: Range<usize> = 0..4;
/// `t_xmax`.
pub(crate) const XMAX: Range<usize> = 4..8;
/// `t_ctid`.
pub(crate) const CTID: Range<usize> = 12..18;
/// `t_infomask2`.
pub(crate) const INFOMASK2: Range<usize> = 18..20;
/// `t_infomask`.
pub(crate) const INFOMASK: Range<usize> = 20..22;
/// `t_hoff`.
pub(crate) const HOFF: Range<usize> = 22..23;

/// A tuple and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredTuple<'a> {
    /// Its line pointer, from 1.
    pub(crate) number: u16,
    /// Offset of its first byte on the page.
    pub(crate) start: usize,
    /// The tuple.
    pub(crate) tuple: HeapTuple<'a>,
}

/// Tuples whose line pointer is `LP_NORMAL` and whose item lies aligned on the page and has room
/// for a header. What is wrong with the others is told by the checks of line pointers.
#[inline]
pub(crate) fn tuples(page: Page<'_>) -> impl Iterator<Item = StoredTuple<'_>> {
    page.line_pointers().filter_map(move |(number, pointer)| {
        let start = usize::from(pointer.lp_off());
        let sound = pointer.flags() == LpFlags::Normal && start.is_multiple_of(8);
        let bytes = sound.then(|| page.item(pointer))??;
        let tuple = HeapTuple::parse(bytes)?;
        Some(StoredTuple {
            number,
            start,
            tuple,
        })
    })
}

impl<'a> StoredTuple<'a> {
    /// A draft about these bytes of the tuple, with one row at risk.
    pub(crate) fn draft(&self, rule: &'static Rule, message: String, bytes: Range<usize>) -> Draft {
        let (start, end) = (self.start + bytes.start, self.start + bytes.end);
        Draft::new(rule, message)
            .item(self.number)
            .bytes(start, end)
            .rows(1)
    }

    /// The walk over its attributes, if columns are known and the header agrees with them.
    #[inline]
    pub(crate) fn attributes(self, cx: &PageCx<'a>) -> Option<Attributes<'a>> {
        let columns = cx.fork.columns?;
        let header_is_right = usize::from(self.tuple.t_hoff()) == self.tuple.expected_hoff()
            && usize::from(self.tuple.attribute_count()) <= columns.len();
        header_is_right.then(|| Attributes::new(self.tuple, columns))
    }

    /// Its compressed values and its pointers to TOAST, up to the first fault.
    #[inline]
    pub(crate) fn long_values(self, cx: &PageCx<'a>) -> impl Iterator<Item = LongValue<'a>> {
        let columns = cx.fork.columns.unwrap_or_default().iter();
        let walk = self.attributes(cx).into_iter().flatten();
        let bytes = self.tuple.bytes();
        let walk = walk.zip(columns).zip(1..);
        walk.filter_map(move |((attribute, column), number)| {
            let Ok(Attribute::Value(range)) = attribute else {
                return None;
            };
            let value = bytes.get(range.clone())?;
            let first = *value.first()?;
            let is_long = column.attlen == -1 && (first & 3 == 2 || first == 1);
            let value = is_long.then(|| varlena::parse(value).ok())??.0;
            Some(LongValue {
                number,
                range,
                value,
            })
        })
    }
}

/// A value that is not stored as it is.
pub(crate) struct LongValue<'a> {
    /// The column, from 1.
    pub(crate) number: u16,
    /// Where it stands in the tuple.
    pub(crate) range: Range<usize>,
    /// The value.
    pub(crate) value: Varlena<'a>,
}

/// The columns of today describe this tuple. A transaction that added a column, wrote rows and
/// rolled back has left tuples with attributes that the relation never had.
pub(crate) fn columns_apply(tuple: HeapTuple<'_>, fork: &ForkCx<'_>) -> bool {
    let visibility = fork
        .cluster
        .map_or_else(Visibility::by_hint_bits, Visibility::new);
    // A server at work may have the status in its memory only.
    let unknown = !fork.is_running();
    visibility.was_inserted(tuple).unwrap_or(unknown)
}

/// The server takes the row for inserted without looking anything up.
pub(crate) fn is_surely_inserted(tuple: HeapTuple<'_>, fork: &ForkCx<'_>) -> bool {
    let is_past = |xmin: Xid| {
        fork.limits
            .is_some_and(|limits| xmin.precedes(limits.next_xid))
    };
    tuple.xmin_is_frozen() || (tuple.has(HEAP_XMIN_COMMITTED) && is_past(tuple.t_xmin()))
}

/// Every new query sees the row, without looking anything up.
pub(crate) fn is_surely_live(tuple: HeapTuple<'_>, fork: &ForkCx<'_>) -> bool {
    is_surely_inserted(tuple, fork) && tuple.has(HEAP_XMAX_INVALID)
}

/// Whoever reads the whole table reads this column, from 1: it was not dropped.
pub(crate) fn is_read(number: u16, fork: &ForkCx<'_>) -> bool {
    let columns = fork.relation.and_then(|relation| relation.columns.as_ref());
    let column = |column: &&Column| column.attnum == number;
    columns
        .and_then(|columns| columns.iter().find(column))
        .is_some_and(|column| !column.dropped)
}

/// A scan asks for each row of the page whether it is visible.
pub(crate) fn scan_asks(page: Page<'_>) -> bool {
    page.pd_flags() & PD_ALL_VISIBLE == 0
}

/// What the server says when it looks up a transaction whose file of the commit log is not there.
pub(crate) fn cannot_look_up(xid: Xid, fork: &ForkCx<'_>) -> Option<String> {
    let file = fork.cluster?.transactions.file_of(xid);
    let error = fork.source?.len(&file).err()?;
    (error.kind == SourceErrorKind::NotFound)
        .then(|| format!("ERROR:  could not access status of transaction {xid}"))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::LinePointer;
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;

    #[test]
    fn only_items_that_can_be_tuples_are_handed_out() {
        let bytes = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(0).finish())
            .item(&[1; 22])
            .line_pointer(LinePointer::new(8001, LpFlags::Normal, 40))
            .line_pointer(LinePointer::new(8184, LpFlags::Normal, 40))
            .line_pointer(LinePointer::new(1, LpFlags::Redirect, 0))
            .item(&TupleBuilder::new(0).finish())
            .finish(0);
        let page = Page::parse(&bytes).expect("a block size");
        let numbers: Vec<u16> = tuples(page).map(|stored| stored.number).collect();
        assert_eq!(numbers, [1, 6]);
    }
}
