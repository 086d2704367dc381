//! `PG_VERSION` of the cluster and of each database.
//!
//! Truth: `ValidatePgVersion` in `src/backend/utils/init/miscinit.c`.

use pgclinic_cluster::Cluster;
use pgclinic_model::plan::Safety;
use pgclinic_source::{SourceErrorKind, read_all};

use super::databases::is_first_home;
use super::{Draft, write};

pub(super) const NAME: &str = "write-version-file";
/// A version file is shorter.
const BYTES_MAX: u64 = 64;

/// Those that are missing, empty, or say something else.
pub(super) fn drafts(cluster: &Cluster) -> Vec<Draft> {
    let homes = cluster.homes.iter();
    let databases = homes.filter(|home| home.database != 0 && is_first_home(cluster, home));
    let paths = databases.map(|home| format!("{}/PG_VERSION", home.folder));
    let root = std::iter::once("PG_VERSION".to_owned());
    root.chain(paths)
        .filter_map(|path| draft(cluster, &path))
        .collect()
}

fn draft(cluster: &Cluster, path: &str) -> Option<Draft> {
    let major = cluster.layout.major;
    let found = match read_all(cluster.source().as_ref(), path, BYTES_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(error) if error.kind == SourceErrorKind::NotFound => "nothing".into(),
        Err(_) => return None,
    };
    if found == major.to_string() {
        return None;
    }
    let text = format!("{major}\n");
    let len = text.len() as u64;
    let draft = Draft::new(
        NAME,
        Safety::Exact,
        path,
        format!("the file says {major}, as initdb and CREATE DATABASE write it"),
    );
    let why = match cluster.control.trusted() {
        Some(control) => format!(
            "the control file has the catalog version {} of PostgreSQL {major}",
            control.catalog_version_no
        ),
        None => format!("the data directory's own PG_VERSION says {major}"),
    };
    let change = write(cluster, path, text.into_bytes(), len);
    Some(
        draft
            .because(why)
            .change(format!("{found} becomes {major}"), change),
    )
}
