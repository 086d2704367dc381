//! A GiST page whose flags contradict each other or its place.
//!
//! Truth: `src/include/access/gist.h`, `gistplacetopage` in `src/backend/access/gist/gist.c`,
//! `gistdeletepage` in `gistvacuum.c`.

use pgclinic_format::gist::{self, F_DELETED, F_FOLLOW_RIGHT, F_HAS_GARBAGE, F_LEAF, GistPage};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static GIST_PAGE_FLAGS: Rule = Rule::from_page(include_str!("../../rules/gist-page-flags.md"));

/// See [`GIST_PAGE_FLAGS`].
pub struct GistPageFlags;

impl PageCheck for GistPageFlags {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIST_PAGE_FLAGS] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(gist) = GistPage::parse(page).filter(|_| !page.is_new()) else {
            return;
        };
        let Some(message) = contradiction(gist, cx.block) else {
            return;
        };
        let special = usize::from(page.pd_special());
        let draft = Draft::new(&GIST_PAGE_FLAGS, message).bytes(special + 8, special + 14);
        out.add(draft.fact("flags", gist.flags()));
    }
}

fn contradiction(page: GistPage<'_>, block: BlockNo) -> Option<String> {
    let root = block == gist::ROOT;
    let flags = page.flags();
    if root && page.has(F_DELETED) {
        return Some("F_DELETED is set on the root".into());
    }
    if root && page.has(F_FOLLOW_RIGHT) {
        return Some("F_FOLLOW_RIGHT is set on the root, which has no neighbour".into());
    }
    if root && page.rightlink() != INVALID_BLOCK {
        let link = page.rightlink();
        return Some(format!("the root has a right neighbour in block {link}"));
    }
    if page.has(F_DELETED | F_FOLLOW_RIGHT) {
        return Some(format!(
            "flags {flags:#06x}: a deleted page has an unfinished split"
        ));
    }
    if page.has(F_HAS_GARBAGE) && flags & (F_LEAF | F_DELETED) == 0 {
        return Some(format!(
            "flags {flags:#06x}: an inner page has entries marked dead"
        ));
    }
    let empty = page.item_count() == 0;
    (empty && flags & (F_LEAF | F_DELETED) == 0).then(|| "an inner page without children".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::index_page::AccessMethod;

    fn said(flags: u16, right: u32, block: usize) -> Vec<String> {
        let mut special = [0; 16];
        put_u32(&mut special, 8, right);
        put_u16(&mut special, 12, flags);
        put_u16(&mut special, 14, gist::PAGE_ID);
        let mut pages = vec![vec![0; 8192]; 2];
        pages[block] = PageBuilder::new(8192, &special).finish(0);
        let block = u32::try_from(block).expect("small");
        ForkTrial::new(AccessMethod::Gist, &pages).messages(&GistPageFlags, block)
    }

    #[test]
    fn the_root_stands_alone() {
        assert!(said(F_LEAF, INVALID_BLOCK, 0).is_empty());
        assert_eq!(
            said(F_LEAF, 1, 0),
            ["the root has a right neighbour in block 1"]
        );
        assert_eq!(
            said(F_LEAF | F_DELETED, INVALID_BLOCK, 0),
            ["F_DELETED is set on the root"]
        );
    }

    #[test]
    fn flags_that_exclude_each_other() {
        assert!(said(F_LEAF | F_FOLLOW_RIGHT, 0, 1).is_empty());
        assert!(said(F_LEAF | F_DELETED, 0, 1).is_empty());
        assert_eq!(
            said(F_LEAF | F_DELETED | F_FOLLOW_RIGHT, 0, 1),
            ["flags 0x000b: a deleted page has an unfinished split"]
        );
        assert_eq!(
            said(F_HAS_GARBAGE, 0, 1),
            ["flags 0x0010: an inner page has entries marked dead"]
        );
        assert_eq!(said(0, 0, 1), ["an inner page without children"]);
    }
}
