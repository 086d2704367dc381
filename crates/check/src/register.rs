//! The register of checks: each check is one file in the directory of its subject and one line in
//! that directory's `mod.rs`.
//!
//! The order of the directories here, and of the lines there, is the order in which a page is
//! looked at, and of findings of one page that follow from each other: the first one is the root.

use std::sync::LazyLock;

use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{ClusterCheck, DatabaseCheck, PageCheck};
use crate::relation_check::RelationCheck;
use crate::{
    backup, brin, btree, catalogs, control_file, entries, files, gin, gist, hash, heap, index,
    maps, page, sequence, slru, spgist, toast, wal,
};

/// Checks of one page.
pub static PAGE_CHECKS: LazyLock<Vec<&'static dyn PageCheck>> = LazyLock::new(|| {
    [
        page::PAGE_CHECKS,
        heap::PAGE_CHECKS,
        maps::PAGE_CHECKS,
        toast::PAGE_CHECKS,
        heap::SHAPE_CHECKS,
        sequence::PAGE_CHECKS,
        index::PAGE_CHECKS,
        btree::PAGE_CHECKS,
        gin::PAGE_CHECKS,
        brin::PAGE_CHECKS,
        gist::PAGE_CHECKS,
        spgist::PAGE_CHECKS,
        hash::PAGE_CHECKS,
    ]
    .concat()
});

/// Checks of the cluster as a whole.
pub static CLUSTER_CHECKS: LazyLock<Vec<&'static dyn ClusterCheck>> = LazyLock::new(|| {
    [
        control_file::CLUSTER_CHECKS,
        catalogs::CLUSTER_CHECKS,
        slru::CLUSTER_CHECKS,
        files::CLUSTER_CHECKS,
        wal::CLUSTER_CHECKS,
        backup::CLUSTER_CHECKS,
    ]
    .concat()
});

/// Checks of a database's files against its catalogs.
pub static DATABASE_CHECKS: LazyLock<Vec<&'static dyn DatabaseCheck>> =
    LazyLock::new(|| [files::DATABASE_CHECKS, catalogs::DATABASE_CHECKS].concat());

/// Checks of one relation as a whole.
pub static RELATION_CHECKS: LazyLock<Vec<&'static dyn RelationCheck>> = LazyLock::new(|| {
    [
        files::RELATION_CHECKS,
        page::RELATION_CHECKS,
        entries::RELATION_CHECKS,
        toast::RELATION_CHECKS,
        btree::RELATION_CHECKS,
        gin::RELATION_CHECKS,
        brin::RELATION_CHECKS,
        gist::RELATION_CHECKS,
        spgist::RELATION_CHECKS,
        sequence::RELATION_CHECKS,
        hash::RELATION_CHECKS,
    ]
    .concat()
});

/// Every rule of every check, in the order of the registers.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let page = PAGE_CHECKS.iter().flat_map(|check| check.rules());
    let cluster = CLUSTER_CHECKS.iter().flat_map(|check| check.rules());
    let database = DATABASE_CHECKS.iter().flat_map(|check| check.rules());
    let relation = RELATION_CHECKS.iter().flat_map(|check| check.rules());
    page.chain(cluster).chain(database).chain(relation).copied()
}

/// The rule is one of single pages.
pub fn is_of_a_page(rule: &str) -> bool {
    let mut rules = PAGE_CHECKS.iter().flat_map(|check| check.rules());
    rules.any(|own| own.is_named(rule))
}

/// The rule is one of comparisons: what it finds may stand on another page than the damage.
pub fn is_comparison(rule: &str) -> bool {
    let mut rules = RELATION_CHECKS.iter().flat_map(|check| check.rules());
    rules.any(|own| own.is_named(rule))
}

/// The lowest level at which every check that can tell the rule runs.
pub fn level_of(rule: &str) -> Option<Level> {
    let page = PAGE_CHECKS
        .iter()
        .map(|check| (check.rules(), check.wants().level));
    let cluster = CLUSTER_CHECKS.iter().flat_map(|check| {
        let level = check.level();
        [(check.rules(), level), (check.borrows(), level)]
    });
    let database = DATABASE_CHECKS
        .iter()
        .map(|check| (check.rules(), check.level()));
    let relation = RELATION_CHECKS
        .iter()
        .map(|check| (check.rules(), check.level()));
    let all = page.chain(cluster).chain(database).chain(relation);
    all.filter(|(rules, _)| rules.iter().any(|own| own.is_named(rule)))
        .map(|(_, level)| level)
        .max()
}

/// The rule of this name, or the one that had it once.
pub fn rule_named(name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.is_named(name))
}

#[cfg(test)]
mod tests;
