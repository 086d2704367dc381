//! Entries of a btree page that stand in the wrong order.
//!
//! Truth: `bt_target_page_check` in `contrib/amcheck/verify_nbtree.c`.

use std::cmp::Ordering;

use pgclinic_format::Page;
use pgclinic_format::btree::{BtreePage, BtreeTuple, HEAP_KEY_SPACE_VERSION, Meta};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::btree::{KeyOrder, Tie};
use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const BTREE_ITEM_ORDER: Rule = Rule::from_page(include_str!("../../rules/btree-item-order.md"));

/// See [`BTREE_ITEM_ORDER`].
pub struct BtreeItemOrder;

impl PageCheck for BtreeItemOrder {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BTREE_ITEM_ORDER] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::Index,
            screened: true,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.method != Some(AccessMethod::Btree) || cx.block == 0 {
            return;
        }
        let tree = BtreePage::parse(page).filter(|tree| !tree.is_ignored());
        let (Some(tree), Some(keys)) = (tree, cx.fork.key_order.as_ref()) else {
            return;
        };
        let mut before: Option<(u16, BtreeTuple<'_>)> = None;
        let first_key = tree.first_key();
        for (item, tuple) in tree.data().filter(|(item, _)| *item >= first_key) {
            if let Some((number, lower)) = before
                && is_wrong(keys, lower, tuple, false, cx)
            {
                let words = format!("the entry is not greater than entry {number}");
                out.add(Draft::new(&BTREE_ITEM_ORDER, words).item(item));
            }
            before = Some((item, tuple));
        }
        if let (Some((item, last)), Some(high_key)) = (before, tree.high_key())
            && is_wrong(keys, last, high_key, tree.is_leaf(), cx)
        {
            let words = "the entry is beyond the page's high key";
            out.add(Draft::new(&BTREE_ITEM_ORDER, words).item(item));
        }
    }
}

/// `upper` does not come after `lower`. Row numbers decide only in indexes made by 12 or later,
/// which the meta page tells; it is asked only when everything hangs on it.
#[inline]
fn is_wrong(
    keys: &KeyOrder,
    lower: BtreeTuple<'_>,
    upper: BtreeTuple<'_>,
    may_be_equal: bool,
    cx: &PageCx<'_>,
) -> bool {
    match keys.compare(lower, upper, Tie::HighestFirst) {
        Some(Ordering::Less) | None => false,
        Some(Ordering::Equal) if may_be_equal => false,
        Some(_) => {
            keys.compare(lower, upper, Tie::Keys) == Some(Ordering::Greater) || rows_decide(cx)
        }
    }
}

fn rows_decide(cx: &PageCx<'_>) -> bool {
    let meta = cx.read_block(0);
    let meta = meta.as_deref().and_then(Page::parse).and_then(Meta::parse);
    meta.is_some_and(|meta| meta.version >= HEAP_KEY_SPACE_VERSION)
}
