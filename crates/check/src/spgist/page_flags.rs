//! An SP-GiST page whose flags contradict each other or its place.
//!
//! Truth: `src/include/access/spgist_private.h`, `spgbuild` in
//! `src/backend/access/spgist/spginsert.c`.

use pgclinic_format::spgist::{NULL_ROOT, ROOT, SPGIST_META, SpgistPage};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static SPGIST_PAGE_FLAGS: Rule =
    Rule::from_page(include_str!("../../rules/spgist-page-flags.md"));

/// See [`SPGIST_PAGE_FLAGS`].
pub struct SpgistPageFlags;

impl PageCheck for SpgistPageFlags {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SPGIST_PAGE_FLAGS] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(spgist) = SpgistPage::parse(page).filter(|_| !page.is_new()) else {
            return;
        };
        let Some(what) = contradiction(spgist, cx.block) else {
            return;
        };
        let message = format!("flags {:#06x}: {what}", spgist.flags());
        let special = usize::from(page.pd_special());
        let draft = Draft::new(&SPGIST_PAGE_FLAGS, message).bytes(special, special + 2);
        out.add(draft.fact("flags", spgist.flags()));
    }
}

fn contradiction(page: SpgistPage<'_>, block: BlockNo) -> Option<&'static str> {
    if page.is_meta() && page.flags() != SPGIST_META {
        return Some("the meta page is marked as something else too");
    }
    match (block, page.holds_nulls()) {
        (ROOT, true) => Some("the root of the values is marked as one of nulls"),
        (NULL_ROOT, false) => Some("the root of the nulls is not marked so"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;
    use pgclinic_format::build::{PageBuilder, put_u16};
    use pgclinic_format::index_page::AccessMethod;
    use pgclinic_format::spgist::{PAGE_ID, SPGIST_LEAF, SPGIST_NULLS};

    #[test]
    fn the_two_roots_are_marked() {
        let said = |flags: u16, block| {
            let mut special = [0; 8];
            put_u16(&mut special, 0, flags);
            put_u16(&mut special, 6, PAGE_ID);
            let mut trial = Trial::index(AccessMethod::Spgist);
            trial.block = block;
            let page = PageBuilder::new(8192, &special).finish(block);
            trial.told(&SpgistPageFlags, &page).len()
        };
        assert_eq!(said(SPGIST_META, 0), 0);
        assert_eq!(said(SPGIST_LEAF, 1), 0);
        assert_eq!(said(SPGIST_LEAF | SPGIST_NULLS, 2), 0);
        assert_eq!(said(SPGIST_LEAF | SPGIST_NULLS, 7), 0);
        assert_eq!(said(SPGIST_META | SPGIST_LEAF, 0), 1);
        assert_eq!(said(SPGIST_NULLS, 1), 1);
        assert_eq!(said(SPGIST_LEAF, 2), 1);
    }
}
