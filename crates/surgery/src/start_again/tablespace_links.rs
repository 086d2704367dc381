//! Links in pg_tblspc that a start from a backup would make by `tablespace_map`. Where the label of
//! the backup is set aside, the server makes none.
//!
//! Truth: `read_tablespace_map` in `src/backend/access/transam/xlogrecovery.c`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_format::Oid;
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::{DataDirectory, Presence, read_all};

use super::Draft;
use super::mounted::Mounted;

pub(super) const NAME: &str = "link-tablespaces";

const MAP: &str = "tablespace_map";
/// More than any has.
const MAP_BYTES: u64 = 1 << 20;

/// A tablespace of the map.
struct Mapped {
    oid: Oid,
    target: PathBuf,
}

/// The tablespaces of the map that have no link.
fn unlinked(cluster: &Cluster) -> Vec<Mapped> {
    let source = cluster.source().as_ref();
    let text = read_all(source, MAP, MAP_BYTES).unwrap_or_default();
    let is_missing = |own: &Mapped| source.list(&link(own.oid)).is_err();
    mapped(&text).into_iter().filter(is_missing).collect()
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
        Some(Mapped { oid, target })
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
            "tablespace_map names tablespaces whose links in pg_tblspc are not there ({}): their tables are lost to a server until each link leads to where its files are",
            missing.join(", ")
        )
    })
}

/// Links that can be made, and the cluster as it is with them.
pub(super) struct Links {
    pub(super) draft: Draft,
    pub(super) linked: Cluster,
}

/// For directories of the map that hold this cluster's files, and that no server uses.
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
        "links to tablespaces are made, to where tablespace_map says that they are",
    );
    let mut mounts = Vec::new();
    for (own, why) in &proven {
        mounts.push((own.oid.to_string(), DataDirectory::open(&own.target).ok()?));
        let target = own.target.display().to_string();
        draft = draft.because(why.clone()).change(
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
        draft: draft.warn("the server then writes to these directories: where they are those of the server that was backed up, or of another one, both would destroy them. Copy them elsewhere first, and write that into tablespace_map"),
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
