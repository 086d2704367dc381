//! An SP-GiST page leads to a block where nothing of its kind can be.
//!
//! Truth: `src/backend/access/spgist/README`; VACUUM never shortens an SP-GiST index.

use pgclinic_format::Page;
use pgclinic_format::spgist::{NULL_ROOT, SpgistPage, State};
use pgclinic_format::types::{INVALID_BLOCK, Tid};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::index::words;

/// Links.
pub static SPGIST_LINK: Rule = Rule::from_page(include_str!("../../rules/spgist-link.md"));

/// Hints on the meta page.
pub static SPGIST_CACHED_PAGE: Rule =
    Rule::from_page(include_str!("../../rules/spgist-cached-page.md"));

/// See [`SPGIST_LINK`] and [`SPGIST_CACHED_PAGE`].
pub struct SpgistLink;

impl PageCheck for SpgistLink {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SPGIST_LINK, &SPGIST_CACHED_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let may_disagree = !cx.fork.may_compare_pages();
        let Some(spgist) = SpgistPage::parse(page).filter(|_| !page.is_new() && !may_disagree)
        else {
            return;
        };
        if spgist.is_meta() {
            cached(spgist, cx, out);
            return;
        }
        for (number, tuple) in spgist.tuples() {
            match tuple.state() {
                State::Live if !spgist.is_leaf() => {
                    for (node, link) in (1..).zip(tuple.inner().nodes()) {
                        let wrong = link.downlink().and_then(|to| Some((to, fault(to, cx)?)));
                        let Some((to, why)) = wrong else { continue };
                        let message = format!("node {node} leads to {why}");
                        let draft = Draft::new(&SPGIST_LINK, message).item(number);
                        let says = words::no_block(cx.fork, to.block);
                        out.add(says.into_iter().fold(draft, Draft::server_says));
                    }
                }
                State::Redirect => {
                    let wrong = fault(tuple.pointer(), cx);
                    let message = wrong.map(|why| format!("the redirect leads to {why}"));
                    let draft = |message| Draft::new(&SPGIST_LINK, message).item(number);
                    message
                        .map(draft)
                        .into_iter()
                        .for_each(|draft| out.add(draft));
                }
                State::Live | State::Dead | State::Placeholder => {}
            }
        }
    }
}

fn fault(to: Tid, cx: &PageCx<'_>) -> Option<String> {
    if u64::from(to.block) >= cx.fork.blocks {
        return Some(format!(
            "{to}, past the end of an index of {}",
            plural(cx.fork.blocks, "block")
        ));
    }
    (to.block <= NULL_ROOT || to.offset == 0).then(|| format!("{to}, where no tuple can be"))
}

fn cached(meta: SpgistPage<'_>, cx: &PageCx<'_>, out: &mut Findings) {
    for (slot, (block, _)) in (0_usize..).zip(meta.last_used()) {
        let beyond = u64::from(block) >= cx.fork.blocks;
        if block == INVALID_BLOCK || !beyond && block > NULL_ROOT {
            continue;
        }
        let why = if beyond {
            format!(
                "past the end of an index of {}",
                plural(cx.fork.blocks, "block")
            )
        } else {
            "one of the fixed pages".into()
        };
        let message = format!("last-used page {slot} is block {block}, {why}");
        let at = 28 + slot * 8;
        out.add(Draft::new(&SPGIST_CACHED_PAGE, message).bytes(at, at + 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::index_page::AccessMethod;
    use pgclinic_format::spgist::{PAGE_ID, SPGIST_LEAF, SPGIST_META};

    fn said(flags: u16, tuple: &[u8], block: usize) -> Vec<String> {
        let mut special = [0; 8];
        put_u16(&mut special, 0, flags);
        put_u16(&mut special, 6, PAGE_ID);
        let page = PageBuilder::new(8192, &special).item(tuple).finish(0);
        let mut pages = vec![vec![0; 8192]; 5];
        pages[block] = page;
        let block = u32::try_from(block).expect("small");
        ForkTrial::new(AccessMethod::Spgist, &pages).messages(&SpgistLink, block)
    }

    #[test]
    fn nodes_lead_to_blocks_of_the_index() {
        let inner = |block: u16, offset: u16| {
            let mut tuple = [0; 24];
            put_u16(&mut tuple, 0, 1 << 3);
            put_u16(&mut tuple, 4, 16);
            put_u16(&mut tuple, 10, block);
            put_u16(&mut tuple, 12, offset);
            put_u16(&mut tuple, 14, 0x8008);
            tuple
        };
        assert!(said(0, &inner(4, 1), 3).is_empty());
        assert!(
            said(0, &inner(9, 0), 3).is_empty(),
            "a node that leads nowhere yet"
        );
        assert_eq!(
            said(0, &inner(5, 1), 3),
            ["node 1 leads to (5,1), past the end of an index of 5 blocks"]
        );
        assert_eq!(
            said(0, &inner(1, 1), 3),
            ["node 1 leads to (1,1), where no tuple can be"]
        );
    }

    #[test]
    fn redirects_lead_to_blocks_of_the_index() {
        let redirect = |block: u8| [16 << 2 | 1, 0, 0, 0, 0, 0, 0, 0, block, 0, 1, 0, 0, 0, 0, 0];
        assert!(said(SPGIST_LEAF, &redirect(4), 3).is_empty());
        assert_eq!(
            said(SPGIST_LEAF, &redirect(0), 3),
            ["the redirect leads to (0,1), where no tuple can be"]
        );
    }

    #[test]
    fn hints_name_pages_that_can_be_used() {
        let mut special = [0; 8];
        put_u16(&mut special, 0, SPGIST_META);
        put_u16(&mut special, 6, PAGE_ID);
        let mut meta = PageBuilder::new(8192, &special).finish(0);
        for (slot, block) in (0..8).zip([u32::MAX, 3, 1, 4000, 4, 4, 4, 4]) {
            put_u32(&mut meta, 28 + slot * 8, block);
        }
        let pages = [vec![meta], vec![vec![0; 8192]; 4]].concat();
        let trial = ForkTrial::new(AccessMethod::Spgist, &pages);
        assert_eq!(
            trial.messages(&SpgistLink, 0),
            [
                "last-used page 2 is block 1, one of the fixed pages",
                "last-used page 3 is block 4000, past the end of an index of 5 blocks"
            ]
        );
    }
}
