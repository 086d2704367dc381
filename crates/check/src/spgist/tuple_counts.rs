//! An SP-GiST page counts its redirects or placeholders wrong.
//!
//! Truth: `SpGistPageAddNewItem` in `src/backend/access/spgist/spgutils.c`,
//! `vacuumRedirectAndPlaceholder` in `spgvacuum.c`.

use pgclinic_format::Page;
use pgclinic_format::spgist::{SpgistPage, State};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static SPGIST_TUPLE_COUNTS: Rule =
    Rule::from_page(include_str!("../../rules/spgist-tuple-counts.md"));

/// See [`SPGIST_TUPLE_COUNTS`].
pub struct SpgistTupleCounts;

impl PageCheck for SpgistTupleCounts {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SPGIST_TUPLE_COUNTS] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let Some(spgist) = SpgistPage::parse(page).filter(|_| !page.is_new()) else {
            return;
        };
        let count = |state| {
            spgist
                .tuples()
                .filter(|(_, tuple)| tuple.state() == state)
                .count()
        };
        let special = usize::from(page.pd_special());
        let sides = [
            (State::Redirect, spgist.redirect_count(), special + 2),
            (State::Placeholder, spgist.placeholder_count(), special + 4),
        ];
        for (state, said, at) in sides {
            let there = count(state);
            if there == usize::from(said) {
                continue;
            }
            let name = state.name();
            let message = format!(
                "the page says {} and has {there}",
                plural(said, &format!("{name} tuple"))
            );
            let draft = Draft::new(&SPGIST_TUPLE_COUNTS, message).bytes(at, at + 2);
            out.add(draft.fact("said", said).fact("there", there));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;
    use pgclinic_format::build::{PageBuilder, put_u16};
    use pgclinic_format::index_page::AccessMethod;
    use pgclinic_format::spgist::{PAGE_ID, SPGIST_LEAF};

    #[test]
    fn counts_are_those_of_the_page() {
        let said = |redirects: u16, placeholders: u16| {
            let mut special = [0; 8];
            put_u16(&mut special, 0, SPGIST_LEAF);
            put_u16(&mut special, 2, redirects);
            put_u16(&mut special, 4, placeholders);
            put_u16(&mut special, 6, PAGE_ID);
            let page = PageBuilder::new(8192, &special)
                .item(&[16 << 2 | 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
                .item(&[16 << 2 | 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
                .item(&[16 << 2 | 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
                .finish(0);
            Trial::index(AccessMethod::Spgist).told(&SpgistTupleCounts, &page)
        };
        assert!(said(1, 2).is_empty());
        assert_eq!(
            said(0, 2),
            ["spgist-tuple-counts: the page says 0 redirect tuples and has 1"]
        );
        assert_eq!(
            said(1, 9),
            ["spgist-tuple-counts: the page says 9 placeholder tuples and has 2"]
        );
    }
}
