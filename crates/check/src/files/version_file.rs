//! `PG_VERSION` of the cluster or of a database is missing or names another major.
//!
//! Truth: `ValidatePgVersion` in `src/backend/utils/init/miscinit.c`.

use pgclinic_cluster::inventory::{filled_home, is_remade};
use pgclinic_cluster::{Comparison, DatabaseContext};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, NotChecked, Place};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static VERSION_FILE: Rule = Rule::from_page(include_str!("../../rules/version-file.md"));

/// See [`VERSION_FILE`].
pub struct VersionFile;

impl DatabaseCheck for VersionFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&VERSION_FILE] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let (cluster, oid) = (database.cluster, database.catalog.database);
        let Some(folder) = folder_to_look_in(database) else {
            return;
        };
        let path = format!("{folder}PG_VERSION");
        let missing = match read_all(cluster.source().as_ref(), &path, 64) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let major = text.trim();
                if major == cluster.layout.major.to_string() {
                    return;
                }
                let what = Draft::new(
                    &VERSION_FILE,
                    format!("PG_VERSION says {major:?}, not {}", cluster.layout.major),
                );
                return out.add(what.place(place(database, path)));
            }
            Err(error) if error.kind == SourceErrorKind::NotFound => {
                "PG_VERSION is missing".to_owned()
            }
            // What is there and out of reach is no damage.
            Err(error) => {
                return out.not_checked(NotChecked {
                    what: path,
                    why: error.to_string(),
                    inherent: false,
                });
            }
        };
        let draft = Draft::new(&VERSION_FILE, missing).place(place(database, path));
        let words = || {
            format!(
                "FATAL:  \"{}\" is not a valid data directory",
                folder.trim_end_matches('/')
            )
        };
        out.add(if oid == 0 {
            draft
        } else {
            draft.server_says(words())
        });
    }
}

/// With a slash at its end. Folders that only a crash or an interrupted `DROP DATABASE` left
/// behind need no such file, and replay writes one only where it makes the database.
fn folder_to_look_in(cx: &DatabaseContext<'_>) -> Option<String> {
    let oid = cx.catalog.database;
    if oid == 0 {
        return Some(String::new());
    }
    let known = cx.cluster.databases.get(&oid)?;
    let lives = known.name.is_some()
        && !known.invalid
        && !is_remade(cx.cluster, oid)
        && cx.cluster.may_compare(Comparison::FilesWithCatalogs);
    let home = filled_home(cx).filter(|_| lives)?;
    Some(format!("{}/", home.folder))
}

fn place(cx: &DatabaseContext<'_>, path: String) -> Place {
    let oid = cx.catalog.database;
    Place {
        path,
        database: cx.catalog.database_name.clone(),
        database_oid: (oid != 0).then_some(oid),
        kind: FileKind::File,
        ..Place::default()
    }
}
