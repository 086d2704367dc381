//! Links in pg_tblspc that are not there. A start from a backup makes them by `tablespace_map`;
//! where there is no label of a backup, or it is set aside, the server makes none.
//!
//! Truth: `read_tablespace_map` in `src/backend/access/transam/xlogrecovery.c`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::{Cluster, ForkFiles, HeapScan, OpenOptions};
use pgclinic_format::oid::PG_TABLESPACE;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::{DataDirectory, Presence, read_all};

use super::Draft;
use super::mounted::Mounted;

pub(super) const NAME: &str = "link-tablespaces";

const MAP: &str = "tablespace_map";
/// More than any has.
const MAP_BYTES: u64 = 1 << 20;

/// A tablespace, and who says where it is.
struct Mapped {
    oid: Oid,
    target: PathBuf,
    by: String,
}

/// The tablespaces that have no link, as far as anything says where they are.
fn unlinked(cluster: &Cluster) -> Vec<Mapped> {
    let source = cluster.source().as_ref();
    let text = read_all(source, MAP, MAP_BYTES).unwrap_or_default();
    let is_missing = |oid: Oid| source.list(&link(oid)).is_err();
    let mut unlinked = mapped(&text);
    unlinked.retain(|own| is_missing(own.oid));
    let mut lost = named(cluster);
    lost.retain(|oid| is_missing(*oid) && unlinked.iter().all(|own| own.oid != *oid));
    if lost.is_empty() {
        return unlinked;
    }
    let logged = cluster.logged_tablespaces().into_iter();
    let logged = logged.filter(|(oid, _)| lost.contains(oid));
    unlinked.extend(logged.map(|(oid, own)| Mapped {
        oid,
        target: own.path.into(),
        by: format!("the record of CREATE TABLESPACE at {} in WAL", own.at),
    }));
    unlinked
}

/// Those that pg_tablespace has besides the two that need no link.
fn named(cluster: &Cluster) -> BTreeSet<Oid> {
    let mut named = BTreeSet::new();
    let shared = cluster.homes.iter().find(|home| home.database == 0);
    let catalog = cluster.catalog(0);
    let relation = catalog.relations.get(&PG_TABLESPACE);
    let layouts = relation.and_then(|own| own.layouts.as_deref());
    let (Some(home), Some(relation), Some(layouts)) = (shared, relation, layouts) else {
        return named;
    };
    let forks = cluster.files(home).unwrap_or_default();
    let is_own = |own: &&ForkFiles| own.filenode == relation.filenode && own.fork == Fork::Main;
    if let Some(files) = forks.iter().find(is_own) {
        let mut scan = HeapScan::new(cluster, files, layouts);
        scan.each_that_may_count(|row| named.extend(row.u32(0)));
    }
    named.retain(|oid| *oid >= FIRST_NORMAL_OID);
    named
}

/// Lines of OID and path; before a line break or backslash of a path stands a backslash.
fn mapped(text: &[u8]) -> Vec<Mapped> {
    let (mut lines, mut line, mut is_escaped) = (Vec::new(), String::new(), false);
    for letter in String::from_utf8_lossy(text).chars() {
        match letter {
            '\\' if !is_escaped => is_escaped = true,
            '\n' | '\r' if !is_escaped => lines.push(std::mem::take(&mut line)),
            letter => {
                is_escaped = false;
                line.push(letter);
            }
        }
    }
    lines.push(line);
    let parsed = lines.iter().filter_map(|line| {
        let (oid, target) = line.split_once(' ')?;
        let (oid, target) = (oid.parse().ok()?, PathBuf::from(target));
        let by = MAP.to_owned();
        Some(Mapped { oid, target, by })
    });
    parsed.collect()
}

fn link(oid: Oid) -> String {
    format!("pg_tblspc/{oid}")
}

/// Links that are missing, in words.
pub(super) fn missing_links(cluster: &Cluster) -> Option<String> {
    let missing: Vec<String> = unlinked(cluster)
        .iter()
        .map(|own| own.oid.to_string())
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "there are tablespaces whose links in pg_tblspc are not there ({}): their tables are lost to a server until each link leads to where its files are",
            missing.join(", ")
        )
    })
}

/// Links that can be made, and the cluster as it is with them.
pub(super) struct Links {
    pub(super) draft: Draft,
    pub(super) linked: Cluster,
}

/// The server that starts makes links by itself.
pub(super) fn are_made_by_server(cluster: &Cluster) -> bool {
    let source = cluster.source().as_ref();
    let is_there = |path: &str| !Presence::of_file(source, path).is_missing();
    is_there("backup_label") && is_there(MAP)
}

/// For directories that are known and hold this cluster's files, and that no server uses.
pub(super) fn found(cluster: &Cluster) -> Option<Links> {
    let layout = cluster.layout;
    let version = format!("PG_{}_{}", layout.major, layout.catalog_version);
    let mut proven = Vec::new();
    for own in unlinked(cluster) {
        let why = proof(cluster, &own, &version);
        proven.extend(why.map(|why| (own, why)));
    }
    let (first, _) = proven.first()?;
    let mut draft = Draft::new(
        NAME,
        Safety::Lossy,
        &link(first.oid),
        "links to tablespaces are made, to where their files are",
    );
    let mut mounts = Vec::new();
    for (own, why) in &proven {
        mounts.push((own.oid.to_string(), DataDirectory::open(&own.target).ok()?));
        let target = own.target.display().to_string();
        let by = format!("{} says that tablespace {} is in {target}", own.by, own.oid);
        draft = draft.because(by).because(why.clone()).change(
            format!("leads to {target}"),
            Change::Link {
                path: link(own.oid),
                target,
            },
        );
    }
    let source = Mounted::new(Arc::clone(cluster.source()), mounts);
    let linked = Cluster::open(OpenOptions::of(Arc::new(source))).ok()?;
    Some(Links {
        draft: draft.warn("the server then writes to these directories: where they are those of the server that was backed up, or of another one, both would destroy them. Copy them elsewhere first, and make the links yourself"),
        linked,
    })
}

/// What shows that the directory holds files of this cluster; nothing where something is amiss.
fn proof(cluster: &Cluster, own: &Mapped, version: &str) -> Option<String> {
    let source = cluster.source().as_ref();
    let folder = own.target.join(version);
    // A link that leads nowhere has the name.
    let is_free = Presence::of_directory(source, &link(own.oid)).is_missing();
    if !own.target.is_absolute() || !is_free || is_used(&own.target) {
        return None;
    }
    let databases = numbers(&folder)?;
    let is_known = |database: &Oid| {
        let known = cluster.databases.get(database);
        known.is_some_and(|own| own.name.is_some())
    };
    if databases.is_empty() || !databases.iter().all(is_known) {
        return None;
    }
    let (mut there, mut named) = (0usize, 0usize);
    for database in cluster.databases.keys() {
        let files = numbers(&folder.join(database.to_string())).unwrap_or_default();
        let catalog = cluster.catalog(*database);
        let relations = catalog.relations.values();
        let here = relations.filter(|one| one.tablespace == own.oid && one.filenode != 0);
        let here: Vec<Oid> = here.map(|one| one.filenode).collect();
        there += here.iter().filter(|file| files.contains(file)).count();
        named += here.len();
    }
    (there > 0 && there == named).then(|| {
        format!(
            "{} holds the files of all {named} relations of {} databases that pg_class has in tablespace {}",
            folder.display(),
            databases.len(),
            own.oid
        )
    })
}

/// Names in a directory that are numbers.
fn numbers(folder: &Path) -> Option<BTreeSet<Oid>> {
    let entries = fs::read_dir(folder).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.filter_map(|name| name.parse().ok()).collect())
}

/// A server of this host has a link to it. Those of other hosts, and of other users, are not seen.
fn is_used(target: &Path) -> bool {
    let Ok(target) = fs::canonicalize(target) else {
        return true;
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let homes = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    let homes: BTreeSet<PathBuf> = homes.collect();
    let mut links = homes.iter().flat_map(|home| {
        let links = fs::read_dir(home.join("pg_tblspc")).into_iter().flatten();
        links.flatten().map(|link| link.path())
    });
    links.any(|link| fs::canonicalize(link).is_ok_and(|path| path == target))
}

#[cfg(test)]
mod tests {
    use super::mapped;

    #[test]
    fn a_map_has_a_line_for_each_tablespace_and_escapes_in_its_paths() {
        let found = mapped(b"16385 /space/one two\n16386 /sp\\\nace\\\\x\n\nnothing\n");
        let found: Vec<(u32, String)> = found
            .iter()
            .map(|own| (own.oid, own.target.display().to_string()))
            .collect();
        let expected = [(16385, "/space/one two"), (16386, "/sp\nace\\x")];
        assert_eq!(found, expected.map(|(oid, path)| (oid, path.to_owned())));
    }
}
