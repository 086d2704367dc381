//! The node sequence number of a GiST page is beyond the end of the WAL.
//!
//! Truth: `src/include/access/gist.h`, `gistScanPage` in `src/backend/access/gist/gistget.c`.

use pgclinic_cluster::Persistence;
use pgclinic_format::Page;
use pgclinic_format::gist::GistPage;
use pgclinic_model::Rule;

use crate::check::{ForkCx, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static GIST_NSN: Rule = Rule::from_page(include_str!("../../rules/gist-nsn.md"));

/// See [`GIST_NSN`].
pub struct GistNsn;

impl PageCheck for GistNsn {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIST_NSN] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(limits) = cx.fork.limits.filter(|_| is_logged(cx.fork)) else {
            return;
        };
        let Some(gist) = GistPage::parse(page).filter(|_| !page.is_new()) else {
            return;
        };
        if gist.nsn() <= limits.wal_end {
            return;
        }
        let at = usize::from(page.pd_special());
        let message = format!(
            "NSN {} is beyond the end of the WAL at {}",
            gist.nsn(),
            limits.wal_end
        );
        let draft = Draft::new(&GIST_NSN, message).bytes(at, at + 8);
        out.add(draft.fact("nsn", gist.nsn().to_string()));
    }
}

/// Unlogged and temporary relations count in other ways.
pub(crate) fn is_logged(fork: &ForkCx<'_>) -> bool {
    let persistence = fork.relation.map(|relation| relation.persistence);
    fork.files.temporary.is_none() && persistence.is_none_or(|own| own == Persistence::Permanent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::gist::{F_LEAF, PAGE_ID};
    use pgclinic_format::index_page::AccessMethod;

    #[test]
    fn a_split_lies_in_the_past() {
        let said = |high: u32, low: u32| {
            let mut special = [0; 16];
            put_u32(&mut special, 0, high);
            put_u32(&mut special, 4, low);
            put_u16(&mut special, 12, F_LEAF);
            put_u16(&mut special, 14, PAGE_ID);
            let page = PageBuilder::new(8192, &special).finish(0);
            ForkTrial::new(AccessMethod::Gist, &[page]).messages(&GistNsn, 0)
        };
        assert!(said(1, 0).is_empty());
        assert_eq!(said(1, 1), ["NSN 1/1 is beyond the end of the WAL at 1/0"]);
    }
}
