//! An index page whose special space or meta page is not that of its access method.
//!
//! Truth: `src/include/access/{nbtree,hash,gist_private,spgist_private,ginblock,brin_page}.h`.

use pgclinic_format::Page;
use pgclinic_format::index_page::{
    AccessMethod, PageKindFault, method_of_page_id, page_kind_fault,
};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static INDEX_PAGE_KIND: Rule = Rule::from_page(include_str!("../../rules/index-page-kind.md"));

/// See [`INDEX_PAGE_KIND`].
pub struct IndexPageKind;

impl PageCheck for IndexPageKind {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&INDEX_PAGE_KIND] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(method) = cx.fork.method else { return };
        if page.is_new() {
            return;
        }
        let Some(fault) = page_kind_fault(method, page, cx.block) else {
            return;
        };
        out.add(draft(method, fault, page, cx));
    }
}

fn draft(method: AccessMethod, fault: PageKindFault, page: Page<'_>, cx: &PageCx<'_>) -> Draft {
    let mut message = format!("this is no page of a {} index: {fault}", method.name());
    if let PageKindFault::PageId { found, .. } = fault
        && let Some(other) = method_of_page_id(found).filter(|other| *other != method)
    {
        message.push_str(&format!("; {} writes this id", other.name()));
    }
    let (start, end) = match fault {
        PageKindFault::Magic { .. } => (24, 28),
        PageKindFault::Version { .. } if method == AccessMethod::Gin => (72, 76),
        PageKindFault::Version { .. } => (28, 32),
        _ => (usize::from(page.pd_special()), page.len()),
    };
    let draft = Draft::new(&INDEX_PAGE_KIND, message)
        .bytes(start, end)
        .fact("access_method", method.name());
    match server_words(method, fault, cx) {
        Some(words) => draft.server_says(words),
        None => draft,
    }
}

/// Only what the meta page of a btree or hash index brings about is certain: planning or a scan
/// reads it first.
fn server_words(method: AccessMethod, fault: PageKindFault, cx: &PageCx<'_>) -> Option<String> {
    let name = &cx.fork.relation?.name;
    let not_a_btree = cx.block == 0
        && matches!(
            fault,
            PageKindFault::Magic { .. } | PageKindFault::NoMetaFlag
        );
    match (method, fault) {
        (AccessMethod::Btree, PageKindFault::Version { found }) => Some(format!(
            "ERROR:  version mismatch in index \"{name}\": file version {found}, current version 4, minimal supported version 2"
        )),
        (AccessMethod::Btree, _) if not_a_btree => {
            Some(format!("ERROR:  index \"{name}\" is not a btree"))
        }
        (AccessMethod::Hash, PageKindFault::Magic { .. }) => {
            Some(format!("ERROR:  index \"{name}\" is not a hash index"))
        }
        (AccessMethod::Hash, PageKindFault::Version { .. }) => {
            Some(format!("ERROR:  index \"{name}\" has wrong hash version"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::PageBuilder;

    #[test]
    fn a_hash_page_in_a_btree_is_named() {
        let special = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x80, 0xFF];
        let pages = [vec![0; 8192], PageBuilder::new(8192, &special).finish(1)];
        let trial = ForkTrial::new(AccessMethod::Btree, &pages);
        assert_eq!(
            trial.messages(&IndexPageKind, 1),
            [
                "this is no page of a btree index: cycle id 0xff80 is above 0xff7f; hash writes this id"
            ]
        );
    }

    #[test]
    fn a_page_never_written_is_no_page_of_another_kind() {
        let trial = ForkTrial::new(AccessMethod::Gist, &[vec![0; 8192]]);
        assert!(trial.messages(&IndexPageKind, 0).is_empty());
    }
}
