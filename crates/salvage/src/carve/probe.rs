//! Whether some bytes are a row of a table.

use pgclinic_cluster::TransactionLog;
use pgclinic_format::attribute::Attribute;
use pgclinic_format::heap_tuple::{
    HEAP_HASEXTERNAL, HEAP_HASNULL, HEAP_HASOID_OLD, HEAP_HASVARWIDTH, HEAP_MOVED,
    HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, INFOMASK2_UNUSED, MOVED_PARTITIONS_OFFSET,
};
use pgclinic_format::{Attributes, BlockNo, ColumnLayout, HeapTuple, Varlena, Xid, varlena};

use super::page_state::is_row;

/// Items that the largest page holds.
const ITEM_MAX: u16 = 2048;

/// Judges bytes by what is known of a table.
pub(crate) struct Probe<'a> {
    layouts: &'a [ColumnLayout],
    /// Blocks of the table.
    blocks: u64,
    log: &'a TransactionLog,
    /// Whether a value, header included where it has one, can be one of this attribute.
    readable: Readable<'a>,
}

/// Says of an attribute by its index whether these bytes can be its value.
pub(crate) type Readable<'a> = &'a mut dyn FnMut(usize, &[u8]) -> bool;

impl<'a> Probe<'a> {
    pub(crate) fn new(
        layouts: &'a [ColumnLayout],
        blocks: u64,
        log: &'a TransactionLog,
        readable: Readable<'a>,
    ) -> Self {
        Probe {
            layouts,
            blocks,
            log,
            readable,
        }
    }

    /// What a line pointer names is taken for a row.
    pub(crate) fn is_row(&self, tuple: HeapTuple<'_>) -> bool {
        is_row(tuple, self.layouts)
    }

    /// A row's header stands here.
    pub(crate) fn is_header(&self, tuple: HeapTuple<'_>, block: BlockNo) -> bool {
        self.header_fits(tuple) && self.place_fits(tuple, block)
    }

    /// The length of the row that begins here, if one does.
    pub(crate) fn length(&mut self, bytes: &[u8], block: BlockNo) -> Option<usize> {
        let tuple = HeapTuple::parse(bytes)?;
        self.is_header(tuple, block).then_some(())?;
        self.values_fit(tuple)
    }

    fn header_fits(&self, tuple: HeapTuple<'_>) -> bool {
        let count = usize::from(tuple.attribute_count());
        let contradiction = tuple.has(HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID);
        count >= 1
            && count <= self.layouts.len()
            && usize::from(tuple.t_hoff()) == tuple.expected_hoff()
            && tuple.t_infomask2() & INFOMASK2_UNUSED == 0
            && tuple.t_infomask() & (HEAP_HASOID_OLD | HEAP_MOVED) == 0
            && !contradiction
            && self.xid_fits(tuple.t_xmin())
            && (tuple.t_xmax() == Xid::INVALID || self.xid_fits(tuple.t_xmax()) || is_multi(tuple))
    }

    fn xid_fits(&self, xid: Xid) -> bool {
        xid != Xid::INVALID && !self.log.is_future(xid)
    }

    fn place_fits(&self, tuple: HeapTuple<'_>, block: BlockNo) -> bool {
        let place = tuple.t_ctid();
        let item = (1..=ITEM_MAX).contains(&place.offset);
        let somewhere = place.block == block || u64::from(place.block) < self.blocks;
        (item && somewhere) || place.offset == MOVED_PARTITIONS_OFFSET
    }

    fn values_fit(&mut self, tuple: HeapTuple<'_>) -> Option<usize> {
        let mut walk = Attributes::new(tuple, self.layouts);
        let (mut has_null, mut has_wide, mut has_external) = (false, false, false);
        for index in 0.. {
            let Some(attribute) = walk.next() else { break };
            let range = match attribute.ok()? {
                Attribute::Missing => continue,
                Attribute::Null => {
                    has_null = true;
                    continue;
                }
                Attribute::Value(range) => range,
            };
            let value = tuple.bytes().get(range)?;
            let is_wide = self.layouts.get(index)?.attlen < 0;
            has_wide |= is_wide;
            has_external |=
                is_wide && matches!(varlena::parse(value), Ok((Varlena::External(_), _)));
            (self.readable)(index, value).then_some(())?;
        }
        let fits = |is: bool, flag: u16| is == tuple.has(flag);
        // The flag may stay when a value was moved back into the row.
        let external = !has_external || tuple.has(HEAP_HASEXTERNAL);
        (fits(has_null, HEAP_HASNULL) && fits(has_wide, HEAP_HASVARWIDTH) && external)
            .then_some(walk.end())
    }
}

fn is_multi(tuple: HeapTuple<'_>) -> bool {
    tuple.has(pgclinic_format::heap_tuple::HEAP_XMAX_IS_MULTI)
}
