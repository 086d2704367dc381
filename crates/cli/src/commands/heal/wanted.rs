//! The pages that a heal wants back, and why.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::ForkFiles;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{
    CheckDocument, CureRequest, FileKind, OmittedFindings, RelationSummary,
};
use pgclinic_model::{Finding, Severity};
use pgclinic_surgery::checksums::PageOfFork;

use super::accused::Accusation;

/// All forks of a cluster by their first file.
pub(super) type ForksByPath = BTreeMap<String, ForkFiles>;

/// Why a page is to be given back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// A page of a table is damaged.
    Rows,
    /// The only damage is that page and visibility map contradict each other.
    Visibility,
    /// A sequence is damaged.
    Sequence,
    /// A page of an index is damaged, and somebody wants it back.
    Index,
    /// Nothing is wrong with it by itself: a value or an entry accuses it.
    Accused,
}

/// A page to be given back.
pub(super) struct Wanted<'a> {
    pub(super) files: &'a ForkFiles,
    pub(super) block: u32,
    pub(super) relation: String,
    /// The table that salvage takes its rows from.
    pub(super) table: String,
    /// Of an index: in which database it is made again.
    pub(super) database: Option<String>,
    pub(super) reason: Reason,
}

impl Wanted<'_> {
    pub(super) fn page(&self) -> PageOfFork {
        PageOfFork::new(&self.files.path(0), self.block.into())
    }
}

/// Our own redo knows the pages of tables, TOAST tables and sequences.
pub(super) fn is_of_rows(relation: &RelationSummary) -> bool {
    let kinds = [
        FileKind::Table,
        FileKind::Toast,
        FileKind::MaterializedView,
        FileKind::Sequence,
    ];
    relation.fork == Fork::Main && kinds.contains(&relation.kind)
}

/// An index: our own redo does not know its records, but images and copies hold its pages.
pub(super) fn is_index(relation: &RelationSummary) -> bool {
    relation.fork == Fork::Main && relation.kind == FileKind::Index
}

/// A map of anything that has one.
pub(super) fn is_map(relation: &RelationSummary) -> bool {
    matches!(relation.fork, Fork::Vm | Fork::Fsm)
}

pub(super) fn pages_of<'a>(
    relation: &'a RelationSummary,
    files: &'a ForkFiles,
) -> impl Iterator<Item = Wanted<'a>> {
    let blocks = relation
        .damaged
        .iter()
        .flat_map(|[start, end]| *start..*end);
    let blocks = blocks.filter(|block| *block < relation.blocks);
    blocks.filter_map(|block| {
        Some(Wanted {
            files,
            block: u32::try_from(block).ok()?,
            relation: relation.name(),
            table: relation.toast_of.clone().unwrap_or_else(|| relation.name()),
            database: relation.database.clone(),
            reason: match relation.kind {
                FileKind::Sequence => Reason::Sequence,
                FileKind::Index => Reason::Index,
                _ => Reason::Rows,
            },
        })
    })
}

/// Pages that are accused and not wanted anyway, each once.
pub(super) fn accused_pages<'f>(
    accused: &[Accusation<'_>],
    files: &'f ForksByPath,
    wanted: &[Wanted<'f>],
) -> Vec<Wanted<'f>> {
    let known: BTreeSet<PageOfFork> = wanted.iter().map(Wanted::page).collect();
    let pages: BTreeSet<&PageOfFork> = accused.iter().flat_map(|own| &own.pages).collect();
    let pages = pages.into_iter().filter(|page| !known.contains(page));
    let pages = pages.filter_map(|page| {
        Some(Wanted {
            files: files.get(&page.path)?,
            block: u32::try_from(page.block).ok()?,
            relation: String::new(),
            table: String::new(),
            database: None,
            reason: Reason::Accused,
        })
    });
    pages.collect()
}

/// Rules by which the visibility map says more of a page than the page itself, or the page more
/// than its rows.
pub(super) const VISIBILITY_RULES: [&str; 2] = ["visibility-map-wrong", "page-not-all-visible"];

/// Pages with which nothing else is wrong.
pub(super) fn mark_visibility_alone(document: &CheckDocument, wanted: &mut [Wanted<'_>]) {
    let mut alone: BTreeMap<PageOfFork, bool> = BTreeMap::new();
    let damage = document.findings.iter();
    for finding in damage.filter(|own| own.severity == Severity::Damage) {
        if let Some(page) = page_of(finding) {
            *alone.entry(page).or_insert(true) &= is_of_visibility(&finding.rule);
        }
    }
    for page in wanted {
        let relation = (page.files.home.database, page.files.filenode);
        let omitted = omitted_of(&document.omitted, document.findings_omitted, relation);
        // A page of which no finding was kept has some of those that were left out.
        let is_alone = match alone.get(&page.page()) {
            Some(is_alone) => *is_alone && omitted != Omitted::AlsoOthers,
            None => omitted == Omitted::OfVisibility,
        };
        if is_alone {
            page.reason = Reason::Visibility;
        }
    }
}

fn is_of_visibility(rule: &str) -> bool {
    VISIBILITY_RULES.contains(&rule)
}

/// Findings of a relation that were only counted: they may be of any of its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Omitted {
    Nothing,
    OfVisibility,
    /// Or of nobody knows what.
    AlsoOthers,
}

/// What was left out of a relation's findings: `omitted` of all, which are `total`.
fn omitted_of(
    omitted: &[OmittedFindings],
    total: u64,
    (database, filenode): (Oid, Oid),
) -> Omitted {
    let counted: u64 = omitted.iter().map(|own| own.findings).sum();
    if counted < total {
        return Omitted::AlsoOthers;
    }
    // What names no file may be of this one.
    let may_be_its = |own: &&OmittedFindings| {
        own.database_oid.is_none_or(|oid| oid == database)
            && own.filenode.is_none_or(|number| number == filenode)
    };
    let own: Vec<&OmittedFindings> = omitted.iter().filter(may_be_its).collect();
    if own.is_empty() {
        Omitted::Nothing
    } else if own.iter().all(|own| is_of_visibility(&own.rule)) {
        Omitted::OfVisibility
    } else {
        Omitted::AlsoOthers
    }
}

pub(super) fn request(page: &Wanted<'_>, cure: &str) -> CureRequest {
    CureRequest {
        cure: cure.into(),
        path: page.files.path(0),
        block: page.block,
        item: None,
        column: None,
    }
}

pub(super) fn page_of(finding: &Finding) -> Option<PageOfFork> {
    let block = finding.place.block?;
    Some(PageOfFork::new(&finding.place.path, block.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn omitted(rule: &str, filenode: Option<Oid>) -> OmittedFindings {
        OmittedFindings {
            rule: rule.into(),
            database_oid: filenode.map(|_| 5),
            relation_oid: filenode,
            filenode,
            path: "base/5/16384".into(),
            findings: 144,
        }
    }

    /// A wrong visibility map has more findings than are kept: its pages are still not rewritten.
    #[test]
    fn findings_left_out_of_a_relation_are_of_visibility_alone_where_all_are() {
        let (own, other) = ((5, 16384), (5, 16385));
        let of_map = omitted("visibility-map-wrong", Some(16384));
        let all = [of_map.clone()];
        assert_eq!(omitted_of(&all, 144, own), Omitted::OfVisibility);
        assert_eq!(omitted_of(&all, 144, other), Omitted::Nothing);
        assert_eq!(omitted_of(&all, 145, own), Omitted::AlsoOthers);
        let mixed = [of_map.clone(), omitted("xmin-out-of-range", Some(16384))];
        assert_eq!(omitted_of(&mixed, 288, own), Omitted::AlsoOthers);
        let of_nobody = [of_map, omitted("item-too-short", None)];
        assert_eq!(omitted_of(&of_nobody, 288, own), Omitted::AlsoOthers);
    }
}
