//! The page belongs to another block: its own contents name that block, and at that block its
//! checksum is right. A matching number alone proves nothing, as one block in 65,535 fits.

use pgclinic_format::checksum::{checksum_at, page_hash};
use pgclinic_format::index_page::{AccessMethod, btree_links};
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page};
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::{Checksum, PageCx};

/// The cause of a page whose contents belong to another block.
pub struct WrittenToWrongPlace;

impl CauseOf for WrittenToWrongPlace {
    fn name(&self) -> &'static str {
        "stray-write"
    }

    fn evidence(&self, page: Page<'_>, cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let Checksum::Wrong { .. } = cx.checksum else {
            return None;
        };
        let named = match cx.fork.method? {
            AccessMethod::Heap => named_by_ctids(page),
            AccessMethod::Btree => named_by_siblings(page, cx),
            _ => None,
        };
        let block = named.filter(|block| *block != cx.block)?;
        let fits = checksum_at(page_hash(page.bytes()), block) == page.pd_checksum();
        fits.then(|| (0.99, facts([("belongs_to_block", block.into())])))
    }
}

/// The block that most tuples name as their own place.
fn named_by_ctids(page: Page<'_>) -> Option<BlockNo> {
    let mut blocks: Vec<BlockNo> = Vec::new();
    for (item, pointer) in page.line_pointers() {
        let tuple = (pointer.flags() == LpFlags::Normal)
            .then(|| page.item(pointer).and_then(HeapTuple::parse))
            .flatten();
        blocks.extend(
            tuple
                .map(|tuple| tuple.t_ctid())
                .filter(|ctid| ctid.offset == item)
                .map(|ctid| ctid.block),
        );
    }
    blocks.sort_unstable();
    blocks
        .chunk_by(|a, b| a == b)
        .max_by_key(|run| run.len())
        .and_then(|run| run.first().copied())
}

/// The block that the neighbours of this btree page call its place.
fn named_by_siblings(page: Page<'_>, cx: &PageCx<'_>) -> Option<BlockNo> {
    let (prev, next, _) = btree_links(page)?;
    let links_of = |block: BlockNo| {
        let bytes = (block != 0).then(|| cx.read_block(block)).flatten()?;
        btree_links(Page::parse(&bytes)?)
    };
    let by_left = links_of(prev).map(|(_, next, _)| next);
    by_left
        .or_else(|| links_of(next).map(|(prev, _, _)| prev))
        .filter(|block| *block != 0)
}
