//! `PG_VERSION` of the cluster and of each database.
//!
//! Truth: `ValidatePgVersion` in `src/backend/utils/init/miscinit.c`.

use std::path::Path;

use pgclinic_cluster::Cluster;
use pgclinic_format::Layout;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, shell_word};
use pgclinic_source::{EntryKind, SourceErrorKind, read_all};

use super::databases::is_first_home;
use super::{Draft, Found, Stops, write};

pub(super) const NAME: &str = "write-version-file";
/// A version file is shorter.
const BYTES_MAX: u64 = 64;
const OF_CLUSTER: &str = "PG_VERSION";
/// What is found where there is no file.
const NOTHING: &str = "nothing";

/// A file that is missing, empty, or says something else.
struct Wrong {
    path: String,
    found: String,
}

/// Who tells the major, and whether that proves it.
struct Proof {
    why: String,
    safety: Safety,
}

impl Proof {
    fn exact(why: String) -> Self {
        Proof {
            why,
            safety: Safety::Exact,
        }
    }
}

/// What becomes of those that are wrong.
pub(super) fn found(cluster: &Cluster, pgdata: &Path) -> Found {
    let wrong = wrong(cluster);
    let mut found: Found = match proof(cluster, &wrong) {
        None => not_settled(cluster, &wrong),
        Some(proof) => {
            let drafts = wrong.iter().map(|own| draft(cluster, own, &proof));
            drafts.collect::<Vec<Draft>>().into()
        }
    };
    found.add(directories(cluster, pgdata));
    found
}

/// Version files in whose place there is a directory. What it holds is somebody else's.
pub(super) fn directories(cluster: &Cluster, pgdata: &Path) -> Found {
    let mut found = Found::default();
    let is_directory = |path: &String| {
        // What a source cannot read it keeps, so that only a listing is asked.
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = cluster.source().list(parent).unwrap_or_default();
        let mut own = entries.iter().filter(|entry| entry.name == name);
        own.any(|entry| entry.kind == EntryKind::Folder)
    };
    for path in paths(cluster).into_iter().filter(is_directory) {
        let own = shell_word(&pgdata.join(&path).display().to_string());
        let why = "it is a directory, where the server reads a file: move the directory away and heal again, which then writes the file";
        let commands = vec![format!("mv {own} {own}.directory")];
        found.leave_to_user(&path, stops(&path), vec![why.into()], commands);
    }
    found
}

/// That of the cluster, and of each database.
fn paths(cluster: &Cluster) -> Vec<String> {
    let homes = cluster.homes.iter();
    let databases = homes.filter(|home| home.database != 0 && is_first_home(cluster, home));
    let paths = databases.map(|home| format!("{}/PG_VERSION", home.folder));
    std::iter::once(OF_CLUSTER.to_owned())
        .chain(paths)
        .collect()
}

fn stops(path: &str) -> Stops {
    if path == OF_CLUSTER {
        Stops::Start
    } else {
        Stops::Other
    }
}

fn wrong(cluster: &Cluster) -> Vec<Wrong> {
    let right = cluster.layout.major.to_string();
    let all = paths(cluster).into_iter().filter_map(|path| {
        let found = match read_all(cluster.source().as_ref(), &path, BYTES_MAX) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(error) if error.kind == SourceErrorKind::NotFound => NOTHING.into(),
            Err(_) => return None,
        };
        Some(Wrong { path, found })
    });
    all.filter(|own| own.found != right).collect()
}

/// Who tells the major; nothing where only such files do, and they disagree.
fn proof(cluster: &Cluster, wrong: &[Wrong]) -> Option<Proof> {
    let major = cluster.layout.major;
    if let Some(control) = cluster.control.trusted() {
        let version = control.catalog_version_no;
        return Some(Proof::exact(format!(
            "the control file has the catalog version {version} of PostgreSQL {major}"
        )));
    }
    if cluster.major_of_wal() == Some(major) {
        return Some(Proof::exact(format!(
            "pages of WAL begin with the number of PostgreSQL {major}"
        )));
    }
    if let Some(proof) = by_databases(cluster, wrong) {
        return Some(proof);
    }
    let is_other = |own: &Wrong| {
        own.found
            .parse()
            .is_ok_and(|it| Layout::of_major(it).is_some())
    };
    let is_settled = wrong
        .iter()
        .all(|own| own.path != OF_CLUSTER && !is_other(own));
    is_settled.then(|| {
        Proof::exact(format!(
            "the data directory's own PG_VERSION says {major}, and no other one contradicts it"
        ))
    })
}

/// Where the cluster's own file is not there, nor anything else that tells, every database has to.
fn by_databases(cluster: &Cluster, wrong: &[Wrong]) -> Option<Proof> {
    let [only] = wrong else { return None };
    let is_missing = only.path == OF_CLUSTER && only.found == NOTHING;
    let databases = paths(cluster).len().saturating_sub(1);
    (is_missing && databases > 0 && cluster.major_of_wal().is_none()).then(|| Proof {
        why: format!(
            "PG_VERSION of {} says {}",
            plural(databases, "database"),
            cluster.layout.major
        ),
        safety: Safety::Lossy,
    })
}

fn not_settled(cluster: &Cluster, wrong: &[Wrong]) -> Found {
    let mut found = Found::default();
    for own in wrong {
        let why = format!(
            "it says {}, where {} is expected from other files of the kind: neither the control file nor WAL is there to decide which is right. Bring back global/pg_control from a backup first",
            own.found, cluster.layout.major
        );
        found.leave_open(&own.path, stops(&own.path), why);
    }
    found
}

fn draft(cluster: &Cluster, wrong: &Wrong, proof: &Proof) -> Draft {
    let major = cluster.layout.major;
    let text = format!("{major}\n");
    let len = text.len() as u64;
    let summary = format!("the file says {major}, as initdb and CREATE DATABASE write it");
    let change = write(cluster, &wrong.path, text.into_bytes(), len);
    let found = match wrong.found.as_str() {
        "" => "no text",
        found => found,
    };
    let draft = Draft::new(NAME, proof.safety, &wrong.path, summary)
        .because(&proof.why)
        .change(format!("{found} becomes {major}"), change);
    match proof.safety {
        Safety::Exact => draft,
        _ => draft.warn("neither the control file nor WAL is there to confirm it: where the directories of the databases are those of another cluster, a server of the wrong major would start on these files"),
    }
}
