//! A GIN page names a block that lies behind the end of the index.
//!
//! Truth: `src/include/access/ginblock.h`.

use pgclinic_format::gin::{DATA_AT, Meta, PageKind, Posting, PostingItem, posting_items};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::gin::{entries, gin_page};

/// The rule.
pub static GIN_LINK_BEYOND_END: Rule =
    Rule::from_page(include_str!("../../rules/gin-link-beyond-end.md"));

/// See [`GIN_LINK_BEYOND_END`].
pub struct GinLinkBeyondEnd;

impl PageCheck for GinLinkBeyondEnd {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_LINK_BEYOND_END] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some((opaque, kind)) = gin_page(page, cx) else {
            return;
        };
        if kind == PageKind::Deleted || !cx.fork.may_compare_pages() {
            return;
        }
        let special = usize::from(page.pd_special());
        if let Some(right) = opaque.right() {
            out_of_range("rightlink", right, special, cx)
                .into_iter()
                .for_each(|draft| out.add(draft));
        }
        for (what, block, at, item) in links(page, kind) {
            if let Some(draft) = out_of_range(what, block, at, cx) {
                out.add(match item {
                    Some(item) => draft.item(item),
                    None => draft,
                });
            }
        }
    }
}

/// What a page links to but its right neighbour: what it is, the block, where that stands, of which
/// entry.
fn links(page: Page<'_>, kind: PageKind) -> Vec<(&'static str, BlockNo, usize, Option<u16>)> {
    let at_item = |item| {
        let pointer = page.line_pointer(item);
        pointer.map_or(0, |pointer| usize::from(pointer.lp_off()))
    };
    match kind {
        PageKind::Meta => Meta::of(page).map_or_else(Vec::new, |meta| {
            let of =
                |(what, block, at)| (block != INVALID_BLOCK).then_some((what, block, at, None));
            let head = of(("head", meta.head, Meta::HEAD_AT));
            head.into_iter()
                .chain(of(("tail", meta.tail, Meta::TAIL_AT)))
                .collect()
        }),
        PageKind::EntryInner => entries(page)
            .map(|(item, entry)| ("page below", entry.downlink(), at_item(item), Some(item)))
            .collect(),
        PageKind::EntryLeaf => entries(page)
            .filter_map(|(item, entry)| match entry.posting()? {
                Posting::Tree(root) => Some(("posting tree", root, at_item(item), Some(item))),
                Posting::List { .. } => None,
            })
            .collect(),
        PageKind::PostingInner => posting_items(page)
            .enumerate()
            .map(|(index, item)| {
                (
                    "page below",
                    item.child,
                    DATA_AT + index * PostingItem::BYTES,
                    None,
                )
            })
            .collect(),
        PageKind::PostingLeaf | PageKind::Pending | PageKind::Deleted => Vec::new(),
    }
}

fn out_of_range(what: &str, block: BlockNo, at: usize, cx: &PageCx<'_>) -> Option<Draft> {
    let blocks = cx.fork.blocks;
    (u64::from(block) >= blocks).then(|| {
        let message = format!(
            "{what} {block} is past the end of an index of {}",
            plural(blocks, "block")
        );
        let draft = Draft::new(&GIN_LINK_BEYOND_END, message).bytes(at, at + 4);
        draft.fact("link", block).fact("blocks", blocks)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::PageBuilder;
    use pgclinic_format::index_page::AccessMethod;

    fn said(special: [u8; 8], item: &[u8]) -> Vec<String> {
        let page = PageBuilder::new(8192, &special).item(item).finish(0);
        ForkTrial::new(AccessMethod::Gin, &[page]).messages(&GinLinkBeyondEnd, 0)
    }

    #[test]
    fn links_end_with_the_index() {
        let entry = [0, 0, 9, 0, 0xFF, 0xFF, 16, 0, 5, b'a', 0, 0, 0, 0, 0, 0];
        assert_eq!(
            said([0, 0, 0, 0, 0, 0, 2, 0], &entry),
            ["posting tree 9 is past the end of an index of 1 block"]
        );
        assert_eq!(
            said([7, 0, 0, 0, 0, 0, 0, 0], &entry),
            [
                "rightlink 7 is past the end of an index of 1 block",
                "page below 9 is past the end of an index of 1 block"
            ]
        );
        assert!(said([7, 0, 0, 0, 0, 0, 4, 0], &[0; 8]).is_empty());
    }
}
