//! Where a file may go that a run writes: never into what is looked at, and only where it can be
//! written. Both are asked before the work begins, so that no verdict of hours is lost for want of
//! a folder.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Refuses a file, such as the report or the state, that would lie in a cluster or in one of the
/// targets, or that cannot be written. Links are followed, those of the targets to tablespaces and
/// WAL too.
pub(crate) fn refuse_early(path: &Path, what: &str, targets: &[&Path]) -> Result<(), Failure> {
    let refused = |why: &dyn fmt::Display| not_written(path, what, why);
    if path.is_dir() {
        return Err(refused(&"it is a directory"));
    }
    if is_special(path) {
        return Ok(());
    }
    let folder = folder_of(path)
        .canonicalize()
        .map_err(|error| refused(&error))?;
    refuse_inside(&folder, targets, "file").map_err(|why| refused(&why))?;
    let probe = tempfile::NamedTempFile::new_in(&folder);
    probe.map(drop).map_err(|error| refused(&error))
}

/// Refuses a directory of our own that would lie in a cluster or in one of the targets, whether it
/// is there already or not.
pub(crate) fn refuse_directory_early(
    path: &Path,
    what: &str,
    targets: &[&Path],
) -> Result<(), Failure> {
    let path_from_here = Path::new(".").join(path);
    let mut above = path_from_here.ancestors();
    let existing = above.find_map(|own| own.canonicalize().ok());
    let folder = existing.unwrap_or_else(|| path.to_owned());
    refuse_inside(&folder, targets, "directory").map_err(|why| not_written(path, what, &why))
}

fn refuse_inside(folder: &Path, targets: &[&Path], what: &str) -> Result<(), String> {
    let mut roots = targets.iter().flat_map(|target| roots_of(target));
    let inside = roots.find(|root| folder.starts_with(root));
    inside.or_else(|| cluster_above(folder)).map_or(Ok(()), |root| {
        let root = root.display();
        Err(format!(
            "it would lie inside {root}, to which nothing is written; name a {what} outside of it"
        ))
    })
}

/// The same in a run that makes the folder `made` itself: what is to lie in it waits until then.
pub(crate) fn refuse_early_beside(
    made: &Path,
    path: &Path,
    what: &str,
    targets: &[&Path],
) -> Result<(), Failure> {
    if path.starts_with(made) && !made.exists() {
        Ok(())
    } else {
        refuse_early(path, what, targets)
    }
}

/// Why a file could not be written.
pub(crate) fn not_written(path: &Path, what: &str, why: &dyn fmt::Display) -> Failure {
    let path = path.display();
    Failure::new(format!("cannot write the {what} {path}: {why}"))
}

/// A device or a pipe, which takes bytes and is not replaced.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file())
}

/// The folder that the file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let named = path.parent();
    let named = named.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// The folders that hold the target, or the cluster of a file; none for the URL of a server.
fn roots_of(target: &Path) -> Vec<PathBuf> {
    let Ok(target) = target.canonicalize() else {
        return Vec::new();
    };
    let root = if target.is_dir() {
        Some(target)
    } else {
        cluster_above(&target)
    };
    let Some(root) = root else {
        return Vec::new();
    };
    let tablespaces = std::fs::read_dir(root.join("pg_tblspc"));
    let tablespaces = tablespaces.into_iter().flatten().flatten();
    let links = tablespaces.map(|entry| entry.path());
    let links = links.chain([root.join("pg_wal")]);
    let elsewhere: Vec<PathBuf> = links.filter_map(|link| link.canonicalize().ok()).collect();
    std::iter::once(root).chain(elsewhere).collect()
}

/// The outermost cluster that holds the path.
fn cluster_above(path: &Path) -> Option<PathBuf> {
    let is_cluster = |folder: &&Path| {
        folder.join("global/pg_control").exists() || folder.join("PG_VERSION").exists()
    };
    let outermost = path.ancestors().filter(is_cluster).last();
    outermost.map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn why(path: &Path, targets: &[&Path]) -> String {
        let refused = refuse_early(path, "report", targets);
        refused.map_or_else(|failure| failure.0, |()| "it may".into())
    }

    #[test]
    fn a_file_lies_outside_of_every_cluster_and_target() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |path: &str| home.path().join(path);
        for folder in [
            "data/base/5",
            "data/pg_tblspc",
            "space",
            "beside",
            "torn/base",
        ] {
            fs::create_dir_all(at(folder)).expect("a directory");
        }
        for file in [
            "data/PG_VERSION",
            "data/base/5/PG_VERSION",
            "data/base/5/1259",
            "beside/16384",
        ] {
            fs::write(at(file), "15\n").expect("a file");
        }
        symlink(at("space"), at("data/pg_tblspc/16400")).expect("a link");
        symlink(at("data/base"), at("way_in")).expect("a link");
        let data = at("data");
        let real = data.canonicalize().expect("a path");
        let inside = format!("inside {}, to which nothing is written", real.display());
        for path in ["data/r.txt", "data/base/5/r.txt", "way_in/r.txt"] {
            assert!(why(&at(path), &[]).contains(&inside), "{path}");
        }
        assert!(why(&at("space/r.txt"), &[&data]).contains("space, to which"));
        assert!(why(&at("torn/base/r.txt"), &[&at("torn")]).contains("torn, to which"));
        let file = at("data/base/5/1259");
        assert!(why(&at("data/r.txt"), &[&file]).contains(&inside));
        // A file that was taken out of its cluster has neighbours that are nobody's.
        for (path, target) in [("beside/r.txt", at("beside/16384")), ("r.txt", data)] {
            assert_eq!(why(&at(path), &[&target]), "it may", "{path}");
        }
        assert_eq!(why(Path::new("/dev/null"), &[]), "it may");
        let of = |path: &Path, targets: &[&Path]| {
            let refused = refuse_directory_early(path, "state", targets);
            refused.map_or_else(|failure| failure.0, |()| "it may".into())
        };
        assert!(of(&at("data/state/watch"), &[]).contains("data, to which nothing"));
        assert!(of(&at("way_in/not/there"), &[]).contains("name a directory outside"));
        assert!(of(&at("space/state"), &[&at("data")]).contains("space, to which"));
        assert_eq!(of(&at("state/not/there"), &[&at("data")]), "it may");
    }

    #[test]
    fn where_nothing_can_be_written_is_known_before_the_work() {
        let home = tempfile::tempdir().expect("a directory");
        assert!(why(home.path(), &[]).contains("it is a directory"));
        let nowhere = why(&home.path().join("nowhere/r.txt"), &[]);
        assert!(nowhere.starts_with("cannot write the report"), "{nowhere}");
        assert_eq!(why(&home.path().join("r.txt"), &[]), "it may");
        assert_eq!(home.path().read_dir().expect("a directory").count(), 0);
    }
}
