//! What the injuries of btree pages ask of a site.

use pgclinic_cluster::Visibility;
use pgclinic_format::btree::BtreePage;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, HeapTuple, Page};

use crate::site::Site;

/// Any page of the tree.
pub(crate) fn page<'a>(site: &'a Site<'_>) -> Option<BtreePage<'a>> {
    let is_tree = site.method() == Some(AccessMethod::Btree) && site.block > 0;
    BtreePage::parse(site.page().filter(|page| is_tree && !page.is_new())?)
}

/// A leaf with three entries or more.
pub(crate) fn leaf<'a>(site: &'a Site<'_>) -> Option<BtreePage<'a>> {
    page(site).filter(|page| {
        page.is_leaf() && !page.is_ignored() && page.tuple(page.first_data() + 2).is_some()
    })
}

/// An inner page with four entries or more.
pub(crate) fn inner<'a>(site: &'a Site<'_>) -> Option<BtreePage<'a>> {
    page(site).filter(|page| {
        !page.is_leaf() && !page.is_ignored() && page.tuple(page.first_data() + 3).is_some()
    })
}

/// Offset of `btpo_flags` on the page.
pub(crate) fn flags_at(site: &Site<'_>) -> Option<usize> {
    Some(usize::from(site.page()?.pd_special()) + 12)
}

/// Offset of an entry on the page.
pub(crate) fn entry_at(site: &Site<'_>, item: u16) -> Option<usize> {
    Some(usize::from(site.page()?.line_pointer(item)?.lp_off()))
}

/// The order of the index is known here, and the keys of an entry and the next one differ.
pub(crate) fn keys_differ(site: &Site<'_>, item: u16) -> Option<()> {
    let relation = site.relation?;
    let columns = relation.columns.as_ref()?;
    let is_number = |oid: u32| [20, 21, 23, 26].contains(&oid);
    let index = relation
        .index
        .as_ref()
        .filter(|index| index.key_count == 1)?;
    let known = columns
        .first()
        .is_some_and(|column| is_number(column.type_oid));
    let leaf = page(site)?;
    let (low, high) = (leaf.tuple(item)?, leaf.tuple(item + 1)?);
    let differ = low.key_bytes().get(8..) != high.key_bytes().get(8..);
    (known && differ && index.valid && !index.has_predicate).then_some(())
}

/// The entry names one row that is live by itself, in an index that is complete.
pub(crate) fn names_live_row(site: &Site<'_>, item: u16) -> Option<()> {
    let index = site.relation?.index.as_ref()?;
    (index.valid && !index.has_predicate).then_some(())?;
    let tuple = page(site)?
        .tuple(item)
        .filter(|tuple| !tuple.is_posting())?;
    let table = site.catalog?.relations.get(&index.table)?;
    let home = site.cluster.homes.iter().find(|home| {
        home.tablespace == table.tablespace
            && (home.database == site.files.map_or(0, |files| files.home.database))
    })?;
    let files = site.cluster.files(home).ok()?;
    let own = files
        .iter()
        .find(|files| files.filenode == table.filenode && files.fork == Fork::Main)?;
    let tid = tuple.0.t_tid();
    let bytes = pgclinic_diagnose::check::read_block(
        site.cluster.source().as_ref(),
        own,
        site.cluster.build,
        tid.block,
    )?;
    let page = Page::parse(&bytes)?;
    let row = page
        .item(page.line_pointer(tid.offset)?)
        .and_then(HeapTuple::parse)?;
    let is_visible = Visibility::new(site.cluster).is_visible(row);
    (is_visible && row.t_infomask2() & HEAP_HOT_UPDATED == 0).then_some(())
}

/// Writes a block number as a row number's two halves.
pub(crate) fn put_block(page: &mut [u8], at: usize, block: BlockNo) {
    put_u16(page, at, (block >> 16) as u16);
    put_u16(page, at + 2, (block & 0xFFFF) as u16);
}
