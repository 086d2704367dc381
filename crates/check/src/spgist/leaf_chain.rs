//! A chain of leaf tuples of an SP-GiST page is broken.
//!
//! Truth: `SpGistLeafTupleData` in `src/include/access/spgist_private.h`, `vacuumLeafPage` in
//! `src/backend/access/spgist/spgvacuum.c`.

use pgclinic_format::Page;
use pgclinic_format::spgist::{NULL_ROOT, ROOT, SpgistPage};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::spgist::chains::{ChainFault, Chains};

/// The rule.
pub static SPGIST_LEAF_CHAIN: Rule =
    Rule::from_page(include_str!("../../rules/spgist-leaf-chain.md"));

/// See [`SPGIST_LEAF_CHAIN`].
pub struct SpgistLeafChain;

impl PageCheck for SpgistLeafChain {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SPGIST_LEAF_CHAIN] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let spgist = SpgistPage::parse(page).filter(|_| !page.is_new());
        let Some(spgist) = spgist.filter(|page| page.is_leaf() && !page.is_meta()) else {
            return;
        };
        let is_root = matches!(cx.block, ROOT | NULL_ROOT);
        for (item, fault) in Chains::of(spgist).faults(is_root) {
            out.add(Draft::new(&SPGIST_LEAF_CHAIN, words(fault)).item(item));
        }
    }
}

fn words(fault: ChainFault) -> String {
    match fault {
        ChainFault::NotThere { next } => {
            format!("the next tuple {next} is not on the page")
        }
        ChainFault::NotLive { next, state } => {
            format!("the next tuple {next} is a {} tuple", state.name())
        }
        ChainFault::Shared { next, other } => {
            format!("tuple {other} names tuple {next} as the next one too")
        }
        ChainFault::Circle => "the chain leads back to itself".into(),
        ChainFault::OnRoot { next } => {
            format!("a tuple of the root names tuple {next} as the next one")
        }
    }
}
