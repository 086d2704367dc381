//! Injuries of pages of any index: what they say of their kind.

use pgclinic_cluster::RelKind;
use pgclinic_format::Page;
use pgclinic_format::build::put_u16;
use pgclinic_format::index_page::{AccessMethod, page_kind_fault};

use crate::advice;
use crate::followers::{INDEX_PAGES, INDEX_TREES, LINE_POINTERS};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget, InjuryTargetKind};

pub(super) const PAGE_OF_ANOTHER_INDEX: Injury = Injury {
    name: "page-of-another-index",
    summary: "a page of an index of another kind was written here",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: overwrite_by_page_of_another_kind,
};

fn overwrite_by_page_of_another_kind(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let method = target.method().filter(|_| target.block > 0)?;
    let alike =
        |other: AccessMethod| other != method && other.special_bytes() == method.special_bytes();
    let donors = target.donors(seed, |relation| {
        relation.kind == RelKind::Index && relation.page_method().is_some_and(alike)
    });
    let is_seen = |page: &[u8]| {
        let page = Page::parse(page);
        page.is_some_and(|page| page_kind_fault(method, page, target.block).is_some())
    };
    let (donor, block, page) = donors.into_iter().find(|(_, _, page)| is_seen(page))?;
    let words = format!(
        "overwritten with block {block} of {}",
        donor.qualified_name()
    );
    let damage = Damage::bytes(target, &page, words)?;
    let damage = damage.must(&["index-page-kind"]);
    Some(damage.may(&[INDEX_PAGES, LINE_POINTERS]))
}

pub(super) const INDEX_PAGE_ID: Injury = Injury {
    name: "index-page-id",
    summary: "the mark of its kind on an index page is another one",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: replace_page_id,
};

fn replace_page_id(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let mut after = target.bytes.clone();
    let at = after.len().checked_sub(2)?;
    put_u16(&mut after, at, 0xFFFF);
    page_kind_fault(target.method()?, Page::parse(&after)?, target.block)?;
    let words = "the last two bytes of the special space set to ffff";
    let damage = Damage::bytes(target, &after, words)?;
    Some(damage.must(&["index-page-kind"]))
}

pub(super) const FIRST_PAGE_ZEROED: Injury = Injury {
    name: "first-page-zeroed",
    summary: "the first page of an index or a sequence is all zeros",
    wants: Wants::once(&[InjuryTargetKind::IndexPage, InjuryTargetKind::SequencePage]),
    recovery_advice: advice::INDEX,
    damage: zero_first_page,
};

fn zero_first_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    (target.block == 0 && target.checkpoint().is_some()).then_some(())?;
    let index = target.relation.and_then(|relation| relation.index.as_ref());
    index.is_none_or(|index| index.ready).then_some(())?;
    let words = "the whole page set to zero";
    let damage = Damage::edit(target, words, |page| page.fill(0))?;
    Some(damage.must(&["first-page-zeroed"]).may(&[INDEX_TREES]))
}
