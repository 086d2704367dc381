//! Advice that articles give and experiments settle, said where figures, catalogs or settings show
//! that it applies: one file each, and one line in the register below.
//!
//! A piece looks at what was measured, and is silent where it cannot know. Nothing is wrong where
//! one speaks: no finding, no verdict and no exit code comes of it.

use pgclinic_cluster::{Cluster, DatabaseContext, Relation};
use pgclinic_format::oid::PG_DB_ROLE_SETTING;
use pgclinic_format::registry;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{Advice, MeasuredRelation};

use super::catalog_rows::{each_row, place};
use super::run::forks_of;
use super::server_facts::ServerFacts;

/// Tables that one piece names in one database.
const NAMED_MAX: usize = 20;

/// A database that was measured.
pub(crate) struct SeenDatabase<'a> {
    pub(crate) view: &'a DatabaseContext<'a>,
    pub(crate) measured: &'a [MeasuredRelation],
    pub(crate) server: &'a ServerFacts,
}

/// A cluster that was measured.
pub(crate) struct SeenCluster<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) measured: &'a [MeasuredRelation],
    pub(crate) server: &'a ServerFacts,
}

/// What speaks where it applies.
pub(crate) trait Piece: Sync {
    /// Its name, which never changes.
    fn name(&self) -> &'static str;

    /// What is so of a database.
    fn of_database(&self, _seen: &SeenDatabase<'_>) -> Option<Said> {
        None
    }

    /// What is so of the whole cluster.
    fn of_cluster(&self, _seen: &SeenCluster<'_>) -> Option<Said> {
        None
    }
}

registry! {
    /// Every piece of advice, in the order in which people read them.
    pub static PIECES: [Piece] = [
        minor_releases::MinorReleases,
        io_uring::IoUring,
        analyze_after_upgrade::AnalyzeAfterUpgrade,
        failed_inserts::FailedInserts,
        toast_tuple_target::ToastTupleTarget,
        default_compression::DefaultCompression,
        catalog_logging::CatalogLogging,
    ];
}

/// What a piece says.
pub(crate) struct Said {
    /// What was seen, and why that matters.
    pub(crate) message: String,
    /// The single things that it is about.
    pub(crate) of: Vec<String>,
    /// What to type.
    pub(crate) commands: Vec<String>,
    /// The command that settles it.
    pub(crate) settled_by: String,
}

impl Said {
    fn named(self, piece: &dyn Piece, database: Option<&String>) -> Advice {
        Advice {
            advice: piece.name().into(),
            database: database.cloned(),
            message: self.message,
            of: self.of,
            commands: self.commands,
            settled_by: self.settled_by,
        }
    }
}

pub(crate) fn of_database(seen: &SeenDatabase<'_>) -> Vec<Advice> {
    let database = seen.view.catalog.database_name.as_ref();
    let all = PIECES.iter().filter_map(|piece| {
        let own = piece.of_database(seen)?;
        Some(own.named(*piece, database))
    });
    all.collect()
}

pub(crate) fn of_cluster(
    cluster: &Cluster,
    server: &ServerFacts,
    measured: &[MeasuredRelation],
) -> Vec<Advice> {
    let seen = SeenCluster {
        cluster,
        measured,
        server,
    };
    let all = PIECES.iter().filter_map(|piece| {
        let own = piece.of_cluster(&seen)?;
        Some(own.named(*piece, None))
    });
    all.collect()
}

impl<'a> SeenDatabase<'a> {
    /// Tables and materialized views of users, with what the catalogs say of them; the largest
    /// first.
    pub(crate) fn tables(&self) -> Vec<(&'a MeasuredRelation, &'a Relation)> {
        let mut tables: Vec<_> = self
            .measured
            .iter()
            .filter(|own| own.sections.contains_key("table"))
            .filter(|own| is_users(own))
            .filter_map(|own| {
                let relation = self.view.catalog.relations.get(&own.relation_oid?)?;
                (relation.toast_of == 0 && relation.schema != "pg_toast").then_some((own, relation))
            })
            .collect();
        tables.sort_by_key(|(own, _)| std::cmp::Reverse(own.bytes));
        tables
    }

    /// What `ALTER DATABASE … SET` says of a setting, in lower case.
    fn database_setting(&self, name: &str) -> Option<String> {
        let (cluster, database) = (self.view.cluster, self.view.catalog.database);
        let catalog = cluster.catalog(0);
        let (forks, _) = forks_of(cluster, 0);
        let shared = DatabaseContext {
            cluster,
            catalog: &catalog,
            forks: &forks,
        };
        let settings = catalog.relations.get(&PG_DB_ROLE_SETTING)?;
        let (of, role) = (place(settings, "setdatabase")?, place(settings, "setrole")?);
        let values = place(settings, "setconfig")?;
        let mut found = None;
        each_row(&shared, settings, &mut |row| {
            if row.u32(of) == Some(database) && row.u32(role) == Some(0) {
                found = row
                    .unpacked(values)
                    .and_then(|array| option_in(&array, name));
            }
        });
        found
    }

    /// A setting as it is in a session of this database.
    pub(crate) fn setting(&self, name: &str, default: &str) -> Option<String> {
        let own = self.database_setting(name);
        own.or_else(|| self.server.setting(self.view.cluster, name, default))
    }

    /// Its name, for commands.
    pub(crate) fn name(&self) -> &str {
        let name = &self.view.catalog.database_name;
        name.as_deref().unwrap_or_default()
    }
}

/// Not one of the server's own.
fn is_users(own: &MeasuredRelation) -> bool {
    let is_numbered = own.relation_oid.is_some_and(|oid| oid >= FIRST_NORMAL_OID);
    is_numbered && own.schema.as_deref() != Some("information_schema")
}

/// The value of a name in an array of texts such as `fillfactor=70`, in lower case: each text
/// begins at a multiple of four bytes with its length.
fn option_in(array: &[u8], name: &str) -> Option<String> {
    let wanted = format!("{name}=");
    let wanted = wanted.as_bytes();
    let at = array.windows(wanted.len()).position(|own| own == wanted)?;
    let is_start = at.checked_sub(1).and_then(|before| array.get(before));
    // What stands before the name is the length of its text, or the end of that.
    is_start
        .is_some_and(|byte| !is_of_word(*byte))
        .then_some(())?;
    let value = array.get(at + wanted.len()..)?;
    let len = value.iter().take_while(|byte| is_of_word(**byte)).count();
    let value = std::str::from_utf8(value.get(..len)?).ok()?;
    (!value.is_empty()).then(|| value.to_ascii_lowercase())
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// Some of many things, and how many more there are.
fn some_of(mut all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(NAMED_MAX);
    all.truncate(NAMED_MAX);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = PIECES.iter().map(|own| own.name()).collect();
        assert_eq!(names.len(), PIECES.len());
    }

    #[test]
    fn an_option_is_found_among_others() {
        let array = b"\x40\0\0\0fillfactor=70\0\0\0\x68\0\0\0toast_tuple_target=8160\0\0";
        let found = |name| option_in(array, name);
        assert_eq!(found("toast_tuple_target").as_deref(), Some("8160"));
        assert_eq!(found("tuple_target"), None);
        assert_eq!(found("user_catalog_table"), None);
        assert_eq!(option_in(b"\0fillfactor=", "fillfactor"), None);
    }

    #[test]
    fn a_long_list_ends_with_the_number_of_the_others() {
        let all: Vec<String> = (0..25).map(|number| number.to_string()).collect();
        let some = some_of(all);
        assert_eq!(some.last().map(String::as_str), Some("and 5 more"));
        assert_eq!(some.len(), NAMED_MAX + 1);
    }
}
