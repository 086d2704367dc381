//! Block 0 of an index or a sequence is all zero.

use pgclinic_cluster::{Comparison, RelKind, Relation};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Fork, Page};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const FIRST_PAGE_ZEROED: Rule =
    Rule::from_page(include_str!("../../rules/first-page-zeroed.md"));

/// See [`FIRST_PAGE_ZEROED`].
pub struct FirstPageZeroed;

impl PageCheck for FirstPageZeroed {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&FIRST_PAGE_ZEROED]
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::Any,
            // Pages of zeros never come before the screen.
            screened: false,
        }
    }

    fn check(&self, _page: Page<'_>, _cx: &PageCx<'_>, _out: &mut Findings) {}

    fn check_zeroed(&self, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(relation) = cx.fork.relation.filter(|_| cx.block == 0) else {
            return;
        };
        // What replay or the server's memory still writes may be this page.
        let is_stopped = cx.fork.may_compare(Comparison::PagesOfFork) && !cx.fork.is_running();
        let is_settled = is_stopped || cx.fork.block_rests(0);
        let has_pages = matches!(cx.fork.fork(), Fork::Main | Fork::Init);
        if !is_settled || !has_pages || !must_begin_with_a_page(relation) {
            return;
        }
        let message = format!(
            "block 0 of {} is all zero: {} stands there",
            relation.qualified_name(),
            first_page(relation)
        );
        let draft = Draft::new(&FIRST_PAGE_ZEROED, message);
        out.add(match server_words(relation, cx.fork.fork()) {
            Some(words) => draft.server_says(words),
            None => draft,
        });
    }
}

/// An index that is still being built has no pages that count, and those of extensions may begin as
/// they like.
fn must_begin_with_a_page(relation: &Relation) -> bool {
    let is_ready = relation.index.as_ref().is_none_or(|index| index.ready);
    match relation.kind {
        RelKind::Sequence => true,
        RelKind::Index => is_ready && relation.page_method().is_some(),
        _ => false,
    }
}

fn first_page(relation: &Relation) -> &'static str {
    match (relation.kind, relation.access_method) {
        (RelKind::Sequence, _) => "its only row",
        (_, Some(AccessMethod::Gist)) => "the root",
        _ => "the meta page",
    }
}

/// The planner reads the meta page of a btree, so that every statement on its table fails; others
/// fail in a scan.
fn server_words(relation: &Relation, fork: Fork) -> Option<String> {
    let name = &relation.name;
    match (relation.kind, relation.access_method) {
        _ if fork != Fork::Main => None,
        (RelKind::Sequence, _) => Some(format!(
            "ERROR:  bad magic number in sequence \"{name}\": 00000000"
        )),
        (_, Some(AccessMethod::Btree)) => Some(format!(
            "ERROR:  index \"{name}\" contains unexpected zero page at block 0\nHINT:  Please REINDEX it."
        )),
        _ => None,
    }
}
