//! What a btree page says of itself contradicts itself.
//!
//! Truth: `src/include/access/nbtree.h`, `src/backend/access/nbtree/nbtpage.c`.

use pgclinic_format::btree::{
    BTP_DELETED, BTP_HALF_DEAD, BTP_HAS_FULLXID, BTP_INCOMPLETE_SPLIT, BTP_ROOT, BtreePage, NO_PAGE,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const BTREE_PAGE_FLAGS: Rule = Rule::from_page(include_str!("../../rules/btree-page-flags.md"));

/// See [`BTREE_PAGE_FLAGS`].
pub struct BtreePageFlags;

impl PageCheck for BtreePageFlags {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BTREE_PAGE_FLAGS] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.method != Some(AccessMethod::Btree) || cx.block == 0 {
            return;
        }
        let Some(tree) = BtreePage::parse(page) else {
            return;
        };
        if let Some(words) = contradiction(tree, cx.block) {
            let special = usize::from(page.pd_special());
            let draft = Draft::new(&BTREE_PAGE_FLAGS, words).bytes(special, special + 16);
            out.add(draft.fact("flags", tree.flags).fact("level", tree.level));
        }
    }
}

fn contradiction(tree: BtreePage<'_>, block: BlockNo) -> Option<String> {
    let (prev, next) = (tree.prev, tree.next);
    if tree.has(BTP_DELETED) {
        let both = tree.has(BTP_HALF_DEAD);
        return both.then(|| "the page is marked both half dead and deleted".into());
    }
    if tree.has(BTP_HAS_FULLXID) {
        return Some("the page keeps a deletion's transaction and is not deleted".into());
    }
    if tree.is_leaf() != (tree.level == 0) {
        let kind = if tree.is_leaf() { "a leaf" } else { "no leaf" };
        return Some(format!("the page is {kind} on level {}", tree.level));
    }
    if tree.has(BTP_ROOT) && (prev, next) != (NO_PAGE, NO_PAGE) {
        return Some(format!("the root has neighbours {prev} and {next}"));
    }
    if tree.has(BTP_INCOMPLETE_SPLIT) && next == NO_PAGE {
        return Some("the page waits for the end of a split and has no right neighbour".into());
    }
    if [prev, next].contains(&block) {
        return Some("the page is its own neighbour".into());
    }
    (prev == next && prev != NO_PAGE).then(|| format!("block {prev} is both its neighbours"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};

    fn said(links: (u32, u32), level: u32, flags: u16) -> Vec<String> {
        let mut special = [0; 16];
        put_u32(&mut special, 0, links.0);
        put_u32(&mut special, 4, links.1);
        put_u32(&mut special, 8, level);
        put_u16(&mut special, 12, flags);
        let page = PageBuilder::new(8192, &special).finish(1);
        ForkTrial::new(AccessMethod::Btree, &[vec![0; 8192], page]).messages(&BtreePageFlags, 1)
    }

    #[test]
    fn what_a_server_writes_is_silent_and_what_it_never_writes_is_told() {
        for (links, level, flags) in [
            ((0, 0), 0, 0x0003),
            ((3, 4), 0, 0x0001),
            ((3, 4), 0, 0x0011),
            ((3, 4), 700, 0x0005),
            ((3, 4), 1, 0x0080),
        ] {
            assert!(
                said(links, level, flags).is_empty(),
                "{links:?} {level} {flags}"
            );
        }
        assert_eq!(said((0, 0), 1, 1), ["the page is a leaf on level 1"]);
        assert_eq!(said((0, 0), 0, 2), ["the page is no leaf on level 0"]);
        assert_eq!(said((0, 4), 0, 3), ["the root has neighbours 0 and 4"]);
        assert_eq!(said((1, 4), 0, 1), ["the page is its own neighbour"]);
        assert_eq!(said((4, 4), 0, 1), ["block 4 is both its neighbours"]);
    }
}
