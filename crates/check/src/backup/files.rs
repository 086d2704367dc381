//! The files of a base backup against its manifest: which count, and how a path gets its names.

use std::cell::RefCell;

use pgclinic_cluster::{
    Catalog, Cluster, ForkFiles, MANIFEST, RelationFileName, file_place, fork_place,
};
use pgclinic_format::Oid;
use pgclinic_format::incremental::PREFIX;
use pgclinic_model::document::{FileKind, NotChecked, Place};
use pgclinic_source::{EntryKind, Source};

/// Folders below folders that are entered: `pg_tblspc/16385/PG_18_202506291/5` has four.
const DEPTH_MAX: usize = 8;

/// Names below a backup that are looked at.
const NAMES_MAX: usize = 10_000_000;

/// What `pg_verifybackup` passes over: written after the manifest, or checked by other means.
const PASSED_OVER: [&str; 5] = [
    MANIFEST,
    "pg_wal",
    "postgresql.auto.conf",
    "recovery.signal",
    "standby.signal",
];

/// What the names of a server's sockets and of their locks begin with: they mean nothing where that
/// server does not run, and whoever moves a backup sweeps them out.
const SOCKET: &str = ".s.PGSQL.";

/// The manifest answers for the file.
pub(crate) fn counts(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    !PASSED_OVER.contains(&first) && !first.starts_with(SOCKET)
}

/// Every regular file of a backup that counts, in the order of folders; what was not looked at
/// comes back.
pub(crate) fn for_each_file(source: &dyn Source, tell: &mut dyn FnMut(&str)) -> Vec<NotChecked> {
    walk(source, (DEPTH_MAX, NAMES_MAX), tell)
}

fn walk(
    source: &dyn Source,
    (depth_max, names_max): (usize, usize),
    tell: &mut dyn FnMut(&str),
) -> Vec<NotChecked> {
    let mut gaps = Vec::new();
    let mut left = vec![(String::new(), 0usize)];
    let mut names = 0usize;
    while let Some((folder, depth)) = left.pop() {
        let entries = match source.list(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                let what = "files that the manifest does not name".into();
                first_gap(&mut gaps, what, error.to_string());
                continue;
            }
        };
        for entry in entries {
            let path = if folder.is_empty() {
                entry.name
            } else {
                format!("{folder}/{}", entry.name)
            };
            if !counts(&path) {
                continue;
            }
            names += 1;
            if names > names_max {
                let what = format!("files of the backup after the first {names_max}");
                first_gap(&mut gaps, what, format!("the first of them is {path}"));
                return gaps;
            }
            match entry.kind {
                EntryKind::File => tell(&path),
                EntryKind::Folder if depth < depth_max => left.push((path, depth + 1)),
                EntryKind::Folder => {
                    let what =
                        format!("files of the backup more than {depth_max} directories deep");
                    first_gap(&mut gaps, what, format!("the first directory is {path}"));
                }
                EntryKind::Other => {}
            }
        }
    }
    gaps
}

/// One gap of a kind is told, the first.
fn first_gap(gaps: &mut Vec<NotChecked>, what: String, why: String) {
    if gaps.iter().all(|gap| gap.what != what) {
        gaps.push(NotChecked {
            what,
            why,
            inherent: false,
        });
    }
}

/// Gives paths the names of their relations. Catalogs are read when they are asked for, and one
/// database's are kept.
pub(crate) struct BackupPlaces<'a> {
    cluster: &'a Cluster,
    catalog: RefCell<Option<(Oid, Catalog)>>,
}

impl<'a> BackupPlaces<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        BackupPlaces {
            cluster,
            catalog: RefCell::new(None),
        }
    }

    /// The place of a whole file.
    pub(crate) fn of(&self, path: &str) -> Place {
        self.relation_place(path)
            .unwrap_or_else(|| file_place(path, kind_of_path(path)))
    }

    fn relation_place(&self, path: &str) -> Option<Place> {
        let (folder, name) = path.rsplit_once('/')?;
        // Blocks of a relation in an incremental backup belong to it as its file does.
        let own = name.strip_prefix(PREFIX).unwrap_or(name);
        let name = RelationFileName::parse(own).filter(|name| !name.temporary)?;
        let mut homes = self.cluster.homes.iter();
        let home = homes.find(|home| home.folder == folder)?.clone();
        let mut kept = self.catalog.borrow_mut();
        let database = home.database;
        if kept.as_ref().is_none_or(|(own, _)| *own != database) {
            *kept = Some((database, self.cluster.catalog_names(database)));
        }
        let (_, catalog) = kept.as_ref()?;
        let relation = catalog.by_file(home.tablespace, name.filenode);
        let files = ForkFiles {
            home,
            filenode: name.filenode,
            fork: name.fork,
            temporary: None,
            segments: Vec::new(),
        };
        let database = catalog.database_name.as_deref();
        let mut place = fork_place(database, relation, &files, name.segment);
        place.path = path.to_owned();
        Some(place)
    }
}

fn kind_of_path(path: &str) -> FileKind {
    match path.rsplit_once('/') {
        Some(("global", "pg_control")) => FileKind::ControlFile,
        Some((_, "pg_filenode.map")) => FileKind::RelationMap,
        Some((folder, _)) if is_status(folder) => FileKind::Slru,
        _ => FileKind::File,
    }
}

fn is_status(folder: &str) -> bool {
    pgclinic_format::StatusLog::ALL
        .into_iter()
        .any(|log| log.folder() == folder)
}

#[cfg(test)]
mod tests {
    use pgclinic_source::Memory;

    use super::*;

    #[test]
    fn what_lies_too_deep_or_behind_too_many_is_told() {
        let tree = Memory::new("backup").with("a/b/c/file", []);
        let tree = tree.with("base/5/1", []).with("pg_wal/x/y/z/w", []);
        let seen = |limits| {
            let mut paths = Vec::new();
            let gaps = walk(&tree, limits, &mut |path| paths.push(path.to_owned()));
            let gaps = gaps
                .into_iter()
                .map(|gap| format!("{}: {}", gap.what, gap.why));
            (paths, gaps.collect::<Vec<_>>())
        };
        assert_eq!(
            seen((3, 7)),
            (vec!["base/5/1".into(), "a/b/c/file".into()], vec![])
        );
        let deep = "files of the backup more than 2 directories deep: the first directory is a/b/c";
        assert_eq!(seen((2, 7)), (vec!["base/5/1".into()], vec![deep.into()]));
        let many = "files of the backup after the first 3: the first of them is base/5/1";
        assert_eq!(seen((3, 3)), (vec![], vec![many.into()]));
    }

    #[test]
    fn what_is_written_after_the_manifest_does_not_count() {
        assert!(!counts("pg_wal/000000010000000000000002"));
        assert!(!counts("backup_manifest") && !counts("standby.signal"));
        assert!(!counts(".s.PGSQL.5432.lock") && counts("base/5/.s.PGSQL.5432.lock"));
        assert!(counts("backup_label") && counts("pg_wal2") && counts("base/5/pg_wal"));
    }

    #[test]
    fn kinds_follow_from_paths() {
        assert_eq!(kind_of_path("global/pg_control"), FileKind::ControlFile);
        assert_eq!(
            kind_of_path("base/5/pg_filenode.map"),
            FileKind::RelationMap
        );
        assert_eq!(kind_of_path("pg_xact/0000"), FileKind::Slru);
        assert_eq!(kind_of_path("postgresql.conf"), FileKind::File);
    }
}
