//! A btree page names a sibling, or the meta page a root, that lies behind the end of the index.
//!
//! Truth: `src/include/access/nbtree.h`, `src/backend/access/nbtree/README`.

use pgclinic_format::btree::{BTP_DELETED, BTP_HALF_DEAD, BTP_LEAF, BTP_META};
use pgclinic_format::index_page::{AccessMethod, btree_flags, btree_links, btree_roots};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::index::words;

/// The rule.
pub static BTREE_LINK_BEYOND_END: Rule =
    Rule::from_page(include_str!("../../rules/btree-link-beyond-end.md"));

/// See [`BTREE_LINK_BEYOND_END`].
pub struct BtreeLinkBeyondEnd;

impl PageCheck for BtreeLinkBeyondEnd {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BTREE_LINK_BEYOND_END] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let may_disagree = !cx.fork.may_compare_pages();
        if cx.fork.method != Some(AccessMethod::Btree) || page.is_new() || may_disagree {
            return;
        }
        if page
            .special()
            .is_none_or(|special| special.len() != AccessMethod::Btree.special_bytes())
        {
            return;
        }
        let Some(flags) = btree_flags(page) else {
            return;
        };
        let special = usize::from(page.pd_special());
        if flags & BTP_META != 0 {
            if let Some((root, fast_root)) = btree_roots(page).filter(|_| cx.block == 0) {
                tell(("btm_root", root), 32, false, cx, out);
                tell(("btm_fastroot", fast_root), 40, true, cx, out);
            }
            return;
        }
        let Some((previous, next, _)) = btree_links(page) else {
            return;
        };
        // Nobody follows the left link of a page that was taken out of the tree.
        let is_leaf = flags & BTP_LEAF != 0 && flags & (BTP_DELETED | BTP_HALF_DEAD) == 0;
        if flags & BTP_DELETED == 0 {
            tell(("btpo_prev", previous), special, is_leaf, cx, out);
        }
        tell(("btpo_next", next), special + 4, is_leaf, cx, out);
    }
}

/// `followed`: every scan of the whole index comes by, in one direction or the other.
fn tell(
    (field, block): (&str, BlockNo),
    at: usize,
    followed: bool,
    cx: &PageCx<'_>,
    out: &mut Findings,
) {
    if u64::from(block) < cx.fork.blocks {
        return;
    }
    let message = format!(
        "{field} {block} is past the end of an index of {}",
        plural(cx.fork.blocks, "block")
    );
    let draft = Draft::new(&BTREE_LINK_BEYOND_END, message).bytes(at, at + 4);
    let draft = draft.fact("link", block).fact("blocks", cx.fork.blocks);
    let words = words::no_block(cx.fork, block).filter(|_| followed);
    out.add(words.into_iter().fold(draft, Draft::server_says));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};

    fn leaf(previous: u32, next: u32, flags: u16) -> Vec<u8> {
        let mut special = [0; 16];
        put_u32(&mut special, 0, previous);
        put_u32(&mut special, 4, next);
        put_u16(&mut special, 12, flags);
        PageBuilder::new(8192, &special).finish(1)
    }

    fn said(page: Vec<u8>) -> Vec<String> {
        ForkTrial::new(AccessMethod::Btree, &[vec![0; 8192], page]).messages(&BtreeLinkBeyondEnd, 1)
    }

    #[test]
    fn links_end_with_the_index() {
        assert!(said(leaf(0, 0, 1)).is_empty());
        assert_eq!(
            said(leaf(0, 2, 1)),
            ["btpo_next 2 is past the end of an index of 2 blocks"]
        );
        assert_eq!(
            said(leaf(9, 0, 1)),
            ["btpo_prev 9 is past the end of an index of 2 blocks"]
        );
        assert!(said(leaf(9, 0, 1 | BTP_DELETED)).is_empty());
    }
}
