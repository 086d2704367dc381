//! What a run asked for, is there or may be there, and could not reach: no verdict is whole before
//! it is told.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{Coverage, NotChecked};
use pgclinic_model::plural;
use pgclinic_source::{FAILURES_MAX, Presence};

use crate::catalog::Catalog;
use crate::cluster::Cluster;
use crate::error::ReadGap;
use crate::files::ForkFiles;
use crate::inventory::directory_of;
use crate::relation::Persistence;

/// Tells every path that was out of reach, each once, at the end of a run of any verb.
pub fn tell(cluster: &Cluster, coverage: &mut Coverage) {
    for trouble in cluster.unreadable() {
        coverage.directories_unreadable += u64::from(holds_relations(&trouble.what));
        let mut told = coverage.not_checked.iter();
        if !told.any(|entry| entry.what == trouble.what && !entry.inherent) {
            coverage.not_checked.push(entry(trouble));
        }
    }
}

/// The paths that a run could not reach so far.
pub struct OutOfReach(BTreeSet<String>);

impl OutOfReach {
    /// What is out of reach by now.
    pub fn of(cluster: &Cluster) -> Self {
        let troubles = cluster.unreadable().into_iter();
        OutOfReach(troubles.map(|trouble| trouble.what).collect())
    }

    /// Some page of the fork could not be read: what is compared with it would take that for a
    /// loss.
    pub fn holds(&self, files: &ForkFiles) -> bool {
        let mut segments = files.segments.iter();
        self.0.len() >= FAILURES_MAX
            || !self.0.is_empty()
                && segments.any(|segment| self.0.contains(&files.path(segment.number)))
    }
}

/// How many relations the catalogs name in directories that cannot be listed. Their pages count as
/// unreadable, as many as `relpages` estimates.
pub fn tell_relations(
    cluster: &Cluster,
    catalog: &Catalog,
    unlisted: &[ReadGap],
    coverage: &mut Coverage,
) {
    let mut by_directory: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let relations = catalog.relations.values();
    let lasting = relations.filter(|relation| {
        relation.kind.has_storage()
            && relation.filenode != 0
            && relation.persistence != Persistence::Temporary
    });
    for relation in lasting {
        let directory = directory_of(cluster, catalog.database, relation.tablespace);
        let (relations, pages) = by_directory.entry(directory).or_default();
        *relations += 1;
        *pages += u64::try_from(relation.relpages).unwrap_or(0);
    }
    for (directory, (relations, pages)) in by_directory {
        let Some(why) = why_unlisted(cluster, unlisted, &directory) else {
            continue;
        };
        let bytes = pages.saturating_mul(u64::from(cluster.build.block_size));
        coverage.bytes_seen = coverage.bytes_seen.saturating_add(bytes);
        coverage.bytes_unreadable = coverage.bytes_unreadable.saturating_add(bytes);
        coverage.not_checked.push(entry(ReadGap {
            what: format!(
                "{relations} in {directory}",
                relations = plural(relations, "relation")
            ),
            why,
        }));
    }
}

/// Relations whose file is there and out of reach: a loop of links, a directory, a pipe. No listing
/// tells how long it is, so that as many of its pages count as unreadable as `relpages` estimates.
pub fn tell_files(
    cluster: &Cluster,
    catalog: &Catalog,
    listed: &[ForkFiles],
    coverage: &mut Coverage,
) {
    let main = listed.iter().filter(|files| files.fork == Fork::Main);
    let begins = |files: &&ForkFiles| files.segments.first().is_some_and(|own| own.number == 0);
    let listed: BTreeSet<(Oid, Oid)> = main
        .filter(begins)
        .map(|files| (files.home.tablespace, files.filenode))
        .collect();
    let unlisted = catalog.relations.values().filter(|relation| {
        relation.kind.has_storage()
            && relation.filenode != 0
            && relation.persistence != Persistence::Temporary
            && relation.shared == (catalog.database == 0)
            && !listed.contains(&(relation.tablespace, relation.filenode))
    });
    for relation in unlisted {
        let directory = directory_of(cluster, catalog.database, relation.tablespace);
        if !cluster.homes.iter().any(|home| home.folder == directory) {
            continue;
        }
        let path = format!("{directory}/{}", relation.filenode);
        let Presence::Unreadable(error) = Presence::of_file(cluster.source().as_ref(), &path)
        else {
            continue;
        };
        let pages = u64::try_from(relation.relpages).unwrap_or(0).max(1);
        let bytes = pages.saturating_mul(u64::from(cluster.build.block_size));
        coverage.bytes_seen = coverage.bytes_seen.saturating_add(bytes);
        coverage.bytes_unreadable = coverage.bytes_unreadable.saturating_add(bytes);
        let rows = relation.reltuples.map_or_else(String::new, |rows| {
            format!(" with about {}", plural(rows, "row"))
        });
        coverage.not_checked.push(entry(ReadGap {
            what: path,
            why: format!(
                "{}; by pg_class {} has {}{rows}",
                error.why,
                relation.qualified_name(),
                plural(pages, "page")
            ),
        }));
    }
}

fn why_unlisted(cluster: &Cluster, unlisted: &[ReadGap], directory: &str) -> Option<String> {
    let known = unlisted.iter().find(|trouble| trouble.what == directory);
    if let Some(trouble) = known {
        return Some(trouble.why.clone());
    }
    let mut homes = cluster.homes.iter();
    if homes.any(|home| home.folder == directory) {
        return None;
    }
    let presence = Presence::of_directory(cluster.source().as_ref(), directory);
    presence.trouble().map(ToString::to_string)
}

/// `base`, `base/5`, `global`, `pg_tblspc` and what lies below it down to the directory of a
/// database.
fn holds_relations(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["base" | "global"] => true,
        ["base", number] => is_number(number),
        ["pg_tblspc", ..] => parts.len() <= 4,
        _ => false,
    }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn entry(trouble: ReadGap) -> NotChecked {
    NotChecked {
        what: trouble.what,
        why: trouble.why,
        inherent: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_told_from_files() {
        for directory in [
            "base",
            "base/5",
            "global",
            "pg_tblspc/16385/PG_15_202209061/5",
        ] {
            assert!(holds_relations(directory), "{directory}");
        }
        for file in [
            "base/5/1259",
            "global/1260",
            "pg_wal",
            "pg_tblspc/1/2/3/1259",
        ] {
            assert!(!holds_relations(file), "{file}");
        }
    }
}
