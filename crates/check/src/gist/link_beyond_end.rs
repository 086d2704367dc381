//! A GiST page leads to a block behind the end of the index.
//!
//! Truth: `src/backend/access/gist/README`; VACUUM never shortens a GiST index.

use pgclinic_format::gist::{F_FOLLOW_RIGHT, GistPage};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static GIST_LINK_BEYOND_END: Rule =
    Rule::from_page(include_str!("../../rules/gist-link-beyond-end.md"));

/// See [`GIST_LINK_BEYOND_END`].
pub struct GistLinkBeyondEnd;

impl PageCheck for GistLinkBeyondEnd {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIST_LINK_BEYOND_END] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let may_disagree = !cx.fork.may_compare_pages();
        let Some(gist) = GistPage::parse(page).filter(|_| !page.is_new() && !may_disagree) else {
            return;
        };
        right_link(gist, cx, out);
        if gist.is_leaf() {
            return;
        }
        for item in gist.items() {
            let child = item.tuple.t_tid().block;
            if u64::from(child) >= cx.fork.blocks {
                out.add(beyond("the child", child, cx).item(item.number));
            }
        }
    }
}

fn right_link(page: GistPage<'_>, cx: &PageCx<'_>, out: &mut Findings) {
    let right = page.rightlink();
    let at = usize::from(page.page().pd_special()) + 8;
    if page.has(F_FOLLOW_RIGHT) && (right == INVALID_BLOCK || right == cx.block) {
        let message = format!("an unfinished split leads to block {right}");
        out.add(Draft::new(&GIST_LINK_BEYOND_END, message).bytes(at, at + 4));
    } else if right != INVALID_BLOCK && u64::from(right) >= cx.fork.blocks {
        out.add(beyond("the right neighbour", right, cx).bytes(at, at + 4));
    }
}

fn beyond(what: &str, block: BlockNo, cx: &PageCx<'_>) -> Draft {
    let blocks = cx.fork.blocks;
    let message = format!(
        "{what} {block} is past the end of an index of {}",
        plural(blocks, "block")
    );
    Draft::new(&GIST_LINK_BEYOND_END, message)
        .fact("link", block)
        .fact("blocks", blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::gist::{F_LEAF, PAGE_ID};
    use pgclinic_format::index_page::AccessMethod;

    fn said(flags: u16, right: u32, child: u8) -> Vec<String> {
        let mut special = [0; 16];
        put_u32(&mut special, 8, right);
        put_u16(&mut special, 12, flags);
        put_u16(&mut special, 14, PAGE_ID);
        let tuple = [0, 0, child, 0, 0xFF, 0xFF, 8, 0];
        let page = PageBuilder::new(8192, &special).item(&tuple).finish(1);
        let pages = [vec![0; 8192], page];
        ForkTrial::new(AccessMethod::Gist, &pages).messages(&GistLinkBeyondEnd, 1)
    }

    #[test]
    fn links_end_with_the_index() {
        assert!(said(0, INVALID_BLOCK, 1).is_empty());
        assert!(
            said(F_LEAF, 0, 200).is_empty(),
            "a leaf names rows, not children"
        );
        assert_eq!(
            said(0, 0, 2),
            ["the child 2 is past the end of an index of 2 blocks"]
        );
        assert_eq!(
            said(F_LEAF, 9, 1),
            ["the right neighbour 9 is past the end of an index of 2 blocks"]
        );
    }

    #[test]
    fn an_unfinished_split_leads_elsewhere() {
        assert!(said(F_LEAF | F_FOLLOW_RIGHT, 0, 1).is_empty());
        assert_eq!(
            said(F_LEAF | F_FOLLOW_RIGHT, 1, 1),
            ["an unfinished split leads to block 1"]
        );
        assert!(
            said(F_LEAF, 1, 1).is_empty(),
            "an old link may lead to its own page by now"
        );
    }
}
