//! `PG_VERSION` of the cluster and of each database.
//!
//! Truth: `ValidatePgVersion` in `src/backend/utils/init/miscinit.c`.

use pgclinic_cluster::Cluster;
use pgclinic_format::Layout;
use pgclinic_model::plan::Safety;
use pgclinic_source::{SourceErrorKind, read_all};

use super::databases::is_first_home;
use super::{Draft, Found, Stops, write};

pub(super) const NAME: &str = "write-version-file";
/// A version file is shorter.
const BYTES_MAX: u64 = 64;
const OF_CLUSTER: &str = "PG_VERSION";

/// A file that is missing, empty, or says something else.
struct Wrong {
    path: String,
    found: String,
}

/// What becomes of those that are wrong.
pub(super) fn found(cluster: &Cluster) -> Found {
    let wrong = wrong(cluster);
    let Some(why) = proof(cluster, &wrong) else {
        return not_settled(cluster, &wrong);
    };
    let drafts: Vec<Draft> = wrong.iter().map(|own| draft(cluster, own, &why)).collect();
    drafts.into()
}

fn wrong(cluster: &Cluster) -> Vec<Wrong> {
    let homes = cluster.homes.iter();
    let databases = homes.filter(|home| home.database != 0 && is_first_home(cluster, home));
    let paths = databases.map(|home| format!("{}/PG_VERSION", home.folder));
    let root = std::iter::once(OF_CLUSTER.to_owned());
    let right = cluster.layout.major.to_string();
    let all = root.chain(paths).filter_map(|path| {
        let found = match read_all(cluster.source().as_ref(), &path, BYTES_MAX) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(error) if error.kind == SourceErrorKind::NotFound => "nothing".into(),
            Err(_) => return None,
        };
        Some(Wrong { path, found })
    });
    all.filter(|own| own.found != right).collect()
}

/// Who tells the major; nothing where only such files do, and they disagree.
fn proof(cluster: &Cluster, wrong: &[Wrong]) -> Option<String> {
    let major = cluster.layout.major;
    if let Some(control) = cluster.control.trusted() {
        let version = control.catalog_version_no;
        return Some(format!(
            "the control file has the catalog version {version} of PostgreSQL {major}"
        ));
    }
    if cluster.major_of_wal() == Some(major) {
        return Some(format!(
            "pages of WAL begin with the number of PostgreSQL {major}"
        ));
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
        format!("the data directory's own PG_VERSION says {major}, and no other one contradicts it")
    })
}

fn not_settled(cluster: &Cluster, wrong: &[Wrong]) -> Found {
    let mut found = Found::default();
    for own in wrong {
        let stops = if own.path == OF_CLUSTER {
            Stops::Start
        } else {
            Stops::Other
        };
        let why = format!(
            "it says {}, where {} is expected from other files of the kind: neither the control file nor WAL is there to decide which is right. Bring back global/pg_control from a backup first",
            own.found, cluster.layout.major
        );
        found.leave_open(&own.path, stops, why);
    }
    found
}

fn draft(cluster: &Cluster, wrong: &Wrong, why: &str) -> Draft {
    let major = cluster.layout.major;
    let text = format!("{major}\n");
    let len = text.len() as u64;
    let summary = format!("the file says {major}, as initdb and CREATE DATABASE write it");
    let change = write(cluster, &wrong.path, text.into_bytes(), len);
    let found = match wrong.found.as_str() {
        "" => "no text",
        found => found,
    };
    let draft = Draft::new(NAME, Safety::Exact, &wrong.path, summary);
    draft
        .because(why)
        .change(format!("{found} becomes {major}"), change)
}
