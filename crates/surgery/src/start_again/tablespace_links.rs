//! Links in pg_tblspc that are not there. A start from a backup makes them by `tablespace_map`;
//! where there is no label of a backup, or it is set aside, the server makes none.
//!
//! Truth: `read_tablespace_map` in `src/backend/access/transam/xlogrecovery.c`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::{Cluster, ForkFiles, HeapScan, OpenOptions};
use pgclinic_format::oid::PG_TABLESPACE;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_model::plural;
use pgclinic_source::{DataDirectory, Presence, Source, SourceError, SourceErrorKind, read_all};

use super::mounted::Mounted;
use super::{Draft, StartOptions, lost_links};

pub(super) const NAME: &str = "link-tablespaces";

pub(super) const MAP: &str = "tablespace_map";
const LINKS: &str = "pg_tblspc";
/// More than any has.
const MAP_BYTES: u64 = 1 << 20;

/// What a backup says of where tablespaces were when it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TablespaceMap {
    /// Name of the backup.
    pub backup: String,
    /// Bytes of its `tablespace_map`.
    pub text: Vec<u8>,
}

/// A tablespace, and who says where it is.
pub(super) struct Mapped {
    pub(super) oid: Oid,
    pub(super) target: PathBuf,
    pub(super) by: String,
}

/// Where the tablespaces are that have no link, as far as anything says it. Who says it last, says
/// it for those that nobody else knows.
fn unlinked(cluster: &Cluster, maps: &[TablespaceMap]) -> Vec<Mapped> {
    let source = cluster.source().as_ref();
    let text = read_all(source, MAP, MAP_BYTES).unwrap_or_default();
    let mut unlinked = mapped(&text, MAP);
    unlinked.retain(|own| is_unlinked(source, own.oid));
    let lost = lost(cluster);
    if lost.is_empty() {
        return unlinked;
    }
    let mut further = logged(cluster);
    for map in maps {
        let by = format!("{MAP} of {}", map.backup);
        further.extend(mapped(&map.text, &by));
    }
    further.retain(|own| lost.contains_key(&own.oid));
    unlinked.extend(further);
    unlinked
}

fn logged(cluster: &Cluster) -> Vec<Mapped> {
    let logged = cluster.logged_tablespaces().made.into_iter();
    let logged = logged.map(|(oid, own)| Mapped {
        oid,
        target: own.path.into(),
        by: format!("the record of CREATE TABLESPACE at {} in WAL", own.at),
    });
    logged.collect()
}

/// No link, or one that leads nowhere.
fn is_unlinked(source: &dyn Source, oid: Oid) -> bool {
    let is_dangling = |error: &SourceError| error.kind == SourceErrorKind::Dangling;
    match Presence::of_directory(source, &link(oid)) {
        Presence::There(_) => false,
        Presence::Missing => true,
        Presence::Unreadable(error) => is_dangling(&error),
    }
}

/// Those that pg_tablespace names and that no link leads to.
pub(super) fn lost(cluster: &Cluster) -> BTreeMap<Oid, String> {
    let source = cluster.source().as_ref();
    let mut lost = named(cluster);
    lost.retain(|oid, _| is_unlinked(source, *oid));
    lost
}

/// Those that pg_tablespace has besides the two that need no link.
fn named(cluster: &Cluster) -> BTreeMap<Oid, String> {
    let mut named = BTreeMap::new();
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
        scan.each_that_may_count(|row| {
            let name = row.name(1).unwrap_or_default();
            named.extend(row.u32(0).map(|oid| (oid, name)));
        });
    }
    named.retain(|oid, _| *oid >= FIRST_NORMAL_OID);
    named
}

/// Lines of OID and path; before a line break or backslash of a path stands a backslash.
fn mapped(text: &[u8], by: &str) -> Vec<Mapped> {
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
        let by = by.to_owned();
        Some(Mapped { oid, target, by })
    });
    parsed.collect()
}

pub(super) fn link(oid: Oid) -> String {
    format!("{LINKS}/{oid}")
}

/// Links that are missing, in words.
pub(super) fn missing_links(cluster: &Cluster) -> Option<String> {
    let missing: BTreeSet<Oid> = unlinked(cluster, &[]).iter().map(|own| own.oid).collect();
    let missing: Vec<String> = missing.iter().map(Oid::to_string).collect();
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

/// What becomes of tablespaces that have no link.
pub(super) struct Found {
    pub(super) links: Option<Links>,
    pub(super) open: super::Found,
}

/// Links are made to directories that are known and hold this cluster's files, and that no server
/// uses; of the others the reason is given.
pub(super) fn found(cluster: &Cluster, options: &StartOptions<'_>) -> Found {
    let (mut proven, mut refused) = (BTreeMap::new(), Vec::new());
    for own in unlinked(cluster, options.tablespace_maps) {
        if proven.contains_key(&own.oid) {
            continue;
        }
        match proof(cluster, &own) {
            Ok(why) => drop(proven.insert(own.oid, (own, why))),
            Err(why) => refused.push((own, why)),
        }
    }
    let proven: Vec<(Mapped, String)> = proven.into_values().collect();
    let links = links(cluster, &proven);
    let made = links
        .iter()
        .flat_map(|_| proven.iter().map(|(own, _)| own.oid));
    let open = lost_links::open(cluster, options, (&refused, &made.collect()));
    Found { links, open }
}

fn links(cluster: &Cluster, proven: &[(Mapped, String)]) -> Option<Links> {
    let (first, _) = proven.first()?;
    let mut draft = Draft::new(
        NAME,
        Safety::Lossy,
        &link(first.oid),
        "links to tablespaces are made, to where their files are",
    );
    let mut mounts = Vec::new();
    for (own, why) in proven {
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

/// What shows that the directory holds files of this cluster and the link can be made; why not,
/// where something is amiss.
fn proof(cluster: &Cluster, own: &Mapped) -> Result<String, String> {
    let source = cluster.source().as_ref();
    // A link that leads nowhere has the name.
    let name = own.oid.to_string();
    let entries = source.list(LINKS).unwrap_or_default();
    if entries.iter().any(|entry| entry.name == name) {
        let holds = files_of(cluster, own.oid, &own.target)?;
        return Err(format!(
            "{holds}, but something else has the name of the link"
        ));
    }
    if is_used(&own.target) {
        return Err("it is not there, or a running server of this host has a link to it".into());
    }
    files_of(cluster, own.oid, &own.target)
}

/// In words, that a directory holds the files of a tablespace; why it does not.
pub(super) fn files_of(cluster: &Cluster, oid: Oid, target: &Path) -> Result<String, String> {
    if !target.is_absolute() {
        return Err("that is no full path".into());
    }
    let layout = cluster.layout;
    let version = format!("PG_{}_{}", layout.major, layout.catalog_version);
    let folder = target.join(version);
    let databases = numbers(&folder);
    let databases = databases.ok_or_else(|| format!("{} is not there", folder.display()))?;
    let is_known = |database: &Oid| {
        let known = cluster.databases.get(database);
        known.is_some_and(|own| own.name.is_some())
    };
    if databases.is_empty() || !databases.iter().all(is_known) {
        let why = "holds no directories of databases, or those of databases that are not known";
        return Err(format!("{} {why}", folder.display()));
    }
    let (mut there, mut named) = (0usize, 0usize);
    for database in cluster.databases.keys() {
        let files = numbers(&folder.join(database.to_string())).unwrap_or_default();
        let catalog = cluster.catalog(*database);
        let relations = catalog.relations.values();
        let here = relations.filter(|one| one.tablespace == oid && one.filenode != 0);
        let here: Vec<Oid> = here.map(|one| one.filenode).collect();
        there += here.iter().filter(|file| files.contains(file)).count();
        named += here.len();
    }
    if there == 0 || there != named {
        return Err(format!(
            "{} holds the files of {there} of {} that pg_class has in tablespace {oid}",
            folder.display(),
            plural(named, "relation"),
        ));
    }
    Ok(format!(
        "{} holds the files of all {} that pg_class has in tablespace {oid}, of {}",
        folder.display(),
        plural(named, "relation"),
        plural(databases.len(), "database"),
    ))
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
        let text = b"16385 /space/one two\n16386 /sp\\\nace\\\\x\n\nnothing\n";
        let found = mapped(text, super::MAP);
        let found: Vec<(u32, String)> = found
            .iter()
            .map(|own| (own.oid, own.target.display().to_string()))
            .collect();
        let expected = [(16385, "/space/one two"), (16386, "/sp\nace\\x")];
        assert_eq!(found, expected.map(|(oid, path)| (oid, path.to_owned())));
    }
}
