//! After writing: the check of level structure on every page that was healed.

use std::collections::BTreeSet;
use std::ops::Range;

use pgclinic_check::{check_page, check_status_files, check_wal_files, fork_cx};
use pgclinic_cluster::{Cluster, ForkFiles, read_block};
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::Severity;
use pgclinic_model::document::{
    Cure, CureOutcome, FieldChange, FileKind, Finding, Level, PageChange,
};

use super::databases::Databases;
use super::restore_segment::RESTORE_SEGMENT;
use super::restore_status::RESTORE_STATUS;

/// Looks at the pages of cures that were written, and says what became of each. Damage at a line
/// pointer that a cure changed, or of its page as a whole, is the cure's; what else is found on the
/// page is given back.
pub fn check_again(cluster: &Cluster, cures: &mut [Cure]) -> Vec<Finding> {
    let mut databases = Databases::new(cluster);
    let mut others: Vec<Finding> = Vec::new();
    for index in 0..cures.len() {
        let Some(cure) = cures.get_mut(index) else {
            break;
        };
        if cure.outcome == CureOutcome::LeftOut {
            continue;
        }
        match findings_of(cluster, &mut databases, cure) {
            Some(found) => {
                let (own, rest) = found.into_iter().partition(|finding| is_own(cure, finding));
                cure.findings = own;
                let is_new = |finding: &Finding| others.iter().all(|own| own.id != finding.id);
                let rest: Vec<Finding> = rest;
                others.extend(rest.into_iter().filter(is_new).collect::<Vec<_>>());
                cure.outcome = outcome_of(&cure.findings);
            }
            None => cure.outcome = CureOutcome::NotChecked,
        }
    }
    let healed: BTreeSet<String> = cures
        .iter()
        .flat_map(|cure| &cure.findings)
        .map(|finding| finding.id.clone())
        .collect();
    others.retain(|finding| !healed.contains(&finding.id));
    others
}

fn outcome_of(findings: &[Finding]) -> CureOutcome {
    if findings
        .iter()
        .any(|finding| finding.severity == Severity::Damage)
    {
        CureOutcome::DamageRemains
    } else {
        CureOutcome::Healed
    }
}

/// The findings of all pages of a cure; nothing where one cannot be looked at.
fn findings_of(
    cluster: &Cluster,
    databases: &mut Databases<'_>,
    cure: &Cure,
) -> Option<Vec<Finding>> {
    if cure.name == RESTORE_STATUS {
        let found = check_status_files(cluster).into_iter();
        return Some(
            found
                .filter(|own| own.place.path == cure.place.path)
                .collect(),
        );
    }
    if cure.name == RESTORE_SEGMENT {
        let found = check_wal_files(cluster).into_iter();
        return Some(
            found
                .filter(|own| own.place.kind == FileKind::Wal)
                .collect(),
        );
    }
    let database = cure.place.database_oid?;
    databases.open(database).ok()?;
    let view = databases.get(database);
    let identifier = cluster
        .control
        .trusted()
        .map_or(0, |control| control.system_identifier);
    let mut found = Vec::new();
    for page in &cure.pages {
        let has = |files: &&ForkFiles| {
            Some(files.filenode) == cure.place.filenode
                && files.fork == page.fork
                && page.path.starts_with(&format!("{}/", files.home.folder))
        };
        let files = view.forks.iter().find(has)?;
        let fork = fork_cx(&view, files, Level::Structure);
        let has_rows = page.fork == Fork::Main && fork.kind != FileKind::Index;
        let is_known = fork.method.is_some() && (!has_rows || fork.columns.is_some());
        is_known.then_some(())?;
        for block in blocks_of(page, cluster.build.block_size) {
            let bytes = read_block(cluster.source().as_ref(), files, cluster.build, block)?;
            found.extend(check_page(&bytes, block, &fork, identifier));
        }
    }
    Some(found)
}

/// One page, or all with which a file was made longer.
fn blocks_of(page: &PageChange, block_size: u32) -> Range<BlockNo> {
    // A block that was there in part is completed.
    let pages = page
        .change
        .growth()
        .map_or(1, |(_, len)| len.div_ceil(u64::from(block_size).max(1)));
    let pages = BlockNo::try_from(pages).unwrap_or(BlockNo::MAX);
    page.block..page.block.saturating_add(pages)
}

fn is_own(cure: &Cure, finding: &Finding) -> bool {
    // What is found was asked of these files alone.
    if [RESTORE_STATUS, RESTORE_SEGMENT].contains(&cure.name.as_str()) {
        return true;
    }
    let is_here = |block: Option<BlockNo>| {
        let mut pages = cure.pages.iter();
        pages.any(|page| {
            let is_longer = page.change.growth().is_some();
            Some(page.block) == block || (is_longer && block >= Some(page.block))
        })
    };
    match finding.place.item {
        None => is_here(finding.place.block),
        Some(item) => {
            cure.place.item.is_none_or(|own| own == item)
                || cure.fields.iter().any(|field| names_item(field, item))
        }
    }
}

fn names_item(field: &FieldChange, item: u16) -> bool {
    let number = field
        .of
        .rsplit_once(' ')
        .and_then(|(_, number)| number.parse().ok());
    number == Some(item)
}
