//! Which rows the entries of an index page name, whatever its access method.

use crate::btree::BtreePage;
use crate::index_page::AccessMethod;
use crate::types::Tid;
use crate::{Page, gin, gist, hash, spgist};

/// Every row that an entry of the page names which is not marked dead, with the entry's item where
/// it has one.
#[inline]
pub fn for_each_entry(
    method: AccessMethod,
    page: Page<'_>,
    mut each: impl FnMut(Option<u16>, Tid),
) {
    match method {
        AccessMethod::Btree => {
            let leaf = BtreePage::parse(page).filter(|leaf| leaf.is_leaf() && !leaf.is_ignored());
            let Some(leaf) = leaf else { return };
            for (item, tuple) in leaf.data_not_dead() {
                if tuple.names_one_row() {
                    each(Some(item), tuple.0.t_tid());
                } else {
                    tuple.rows().for_each(|tid| each(Some(item), tid));
                }
            }
        }
        AccessMethod::Gin => gin::for_each_row(page, &mut |row| each(row.item, row.tid)),
        AccessMethod::Gist => gist::for_each_row(page, &mut |tid, item, dead| {
            if !dead {
                each(Some(item), tid);
            }
        }),
        AccessMethod::Spgist => {
            spgist::for_each_row(page, &mut |tid, item| each(Some(item), tid));
        }
        AccessMethod::Hash => hash::for_each_row(page, &mut |entry| {
            if !entry.dead {
                let (block, offset) = (entry.block, entry.offset);
                each(Some(entry.item), Tid { block, offset });
            }
        }),
        AccessMethod::Brin | AccessMethod::Heap | AccessMethod::Sequence => {}
    }
}

/// The access methods whose entries name rows one by one, and are read here.
pub fn names_rows(method: AccessMethod) -> bool {
    use AccessMethod::{Btree, Gin, Gist, Hash, Spgist};
    matches!(method, Btree | Gin | Gist | Hash | Spgist)
}
