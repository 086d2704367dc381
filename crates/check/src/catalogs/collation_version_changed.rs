//! Indexes over text that a library of another version put in order.

use std::collections::BTreeMap;

use pgclinic_cluster::inventory::default_home;
use pgclinic_cluster::{
    Catalog, Cluster, Collation, CollationVersion, DatabaseContext, Index, RelKind, Relation,
};
use pgclinic_format::Oid;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::order::Unordered;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, NotChecked, Place};
use pgclinic_model::plan::Safety;
use serde_json::{Value, json};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// Indexes and collations that a finding names; the rest is counted.
const NAMED_MAX: usize = 1000;
/// `DEFAULT_COLLATION_OID`.
const DEFAULT_COLLATION: Oid = 100;

/// The rule.
pub static COLLATION_VERSION_CHANGED: Rule =
    Rule::from_page(include_str!("../../rules/collation-version-changed.md"));

/// See [`COLLATION_VERSION_CHANGED`].
pub struct CollationVersionChanged;

impl DatabaseCheck for CollationVersionChanged {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&COLLATION_VERSION_CHANGED] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        if database.catalog.database == 0 {
            return;
        }
        let uses = Uses::of(database.catalog);
        let (mut changed, mut unknown) = (Vec::new(), BTreeMap::new());
        for (oid, indexes) in &uses.by_collation {
            let Some(collation) = database.catalog.collation(*oid) else {
                continue;
            };
            match version_here(database.cluster, database.catalog, collation) {
                CollationVersion::Fixed | CollationVersion::Same => {}
                CollationVersion::Changed { recorded, here } => {
                    changed.push(Changed {
                        collation,
                        recorded,
                        here,
                        indexes,
                    });
                }
                CollationVersion::Unknown(why) => {
                    *unknown.entry(why).or_insert(0_usize) += indexes.len();
                }
            }
        }
        if !changed.is_empty() {
            out.add(told(database, &changed));
        }
        for (why, count) in unknown {
            out.not_checked(NotChecked {
                what: format!(
                    "collation versions of {} in database {}",
                    counted(count, "index", "indexes"),
                    name_of(database)
                ),
                why: why.into(),
                inherent: true,
            });
        }
    }
}

/// A collator knows its libraries better than the machine's files tell.
pub(crate) fn version_here(
    cluster: &Cluster,
    catalog: &Catalog,
    collation: &Collation,
) -> CollationVersion {
    let database = cluster.databases.get(&catalog.database);
    let encoding = database.and_then(|database| database.encoding);
    match (&cluster.collator, encoding) {
        (Some(collator), Some(encoding)) => {
            let here = collator.version(encoding, collation);
            collation.version_against(here.as_deref())
        }
        _ => collation.version_on(&cluster.machine),
    }
}

/// A collation with another version here.
struct Changed<'a> {
    collation: &'a Collation,
    recorded: String,
    here: String,
    indexes: &'a [&'a Relation],
}

/// Which indexes lean on which collation.
struct Uses<'a> {
    by_collation: BTreeMap<Oid, Vec<&'a Relation>>,
}

impl<'a> Uses<'a> {
    fn of(catalog: &'a Catalog) -> Self {
        let mut by_collation: BTreeMap<Oid, Vec<&Relation>> = BTreeMap::new();
        for relation in catalog.relations.values() {
            let (RelKind::Index, Some(index)) = (relation.kind, &relation.index) else {
                continue;
            };
            let mut collations = collations_of(catalog, relation, index);
            collations.sort_unstable();
            collations.dedup();
            for collation in collations {
                by_collation.entry(collation).or_default().push(relation);
            }
        }
        Uses { by_collation }
    }
}

/// The collations whose order the index keeps. A btree over patterns or bytes keeps none, one over
/// `jsonb` keeps the database's; of other methods only the keys' own collations are known.
fn collations_of(catalog: &Catalog, relation: &Relation, index: &Index) -> Vec<Oid> {
    match relation.access_method {
        Some(AccessMethod::Btree) => {
            let columns = relation.columns.iter().flatten();
            let keys = columns.take(usize::from(index.key_count)).enumerate();
            let foreign = keys.filter_map(|(number, column)| {
                let ty = catalog.type_info(column.type_oid);
                match catalog.key_order(index, number, &ty)? {
                    Err(Unordered::Collation(foreign)) => Some(foreign.oid),
                    _ => None,
                }
            });
            foreign.collect()
        }
        Some(AccessMethod::Gin | AccessMethod::Gist | AccessMethod::Brin) => {
            let own = index.collations.iter().copied();
            own.filter(|collation| *collation != 0).collect()
        }
        _ => Vec::new(),
    }
}

fn told(database: &DatabaseContext<'_>, changed: &[Changed<'_>]) -> Draft {
    let mut indexes: BTreeMap<Oid, &Relation> = BTreeMap::new();
    for own in changed {
        indexes.extend(own.indexes.iter().map(|index| (index.oid, *index)));
    }
    let names: Vec<String> = indexes
        .values()
        .take(NAMED_MAX)
        .map(|index| index.sql_name())
        .collect();
    let collations: Vec<Value> = changed.iter().take(NAMED_MAX).map(facts_of).collect();
    let draft = Draft::new(&COLLATION_VERSION_CHANGED, message(changed, indexes.len()))
        .place(place(database))
        .fact("collations", collations)
        .fact("index_count", indexes.len())
        .fact("indexes", names.clone())
        .remedy("reindex", Safety::ShowOnly, reindex(&names))
        .remedy(
            "refresh-collation-version",
            Safety::ShowOnly,
            refresh(database, changed),
        );
    let own = changed
        .iter()
        .find(|own| own.collation.oid == DEFAULT_COLLATION);
    match own {
        // Told at every connection; the others only when they are used.
        Some(_) => draft.server_says(format!(
            "WARNING:  database \"{}\" has a collation version mismatch",
            name_of(database)
        )),
        None => match changed.first() {
            Some(own) => draft.server_says(format!(
                "WARNING:  collation \"{}\" has version mismatch",
                own.collation.name
            )),
            None => draft,
        },
    }
}

fn message(changed: &[Changed<'_>], indexes: usize) -> String {
    let Some(first) = changed.first() else {
        return String::new();
    };
    let more = match changed.len() - 1 {
        0 => String::new(),
        more => format!(
            " and {}",
            counted(more, "more collation", "more collations")
        ),
    };
    format!(
        "{} {} in the order of collation \"{}\"{more}, which was recorded with version {} and has {} on this machine",
        counted(indexes, "index", "indexes"),
        if indexes == 1 { "is" } else { "are" },
        first.collation.name,
        first.recorded,
        first.here,
    )
}

fn facts_of(own: &Changed<'_>) -> Value {
    json!({
        "collation": own.collation.name,
        "locale": own.collation.locale,
        "recorded": own.recorded,
        "here": own.here,
        "indexes": own.indexes.len(),
    })
}

fn reindex(names: &[String]) -> String {
    let each = names.iter().map(|name| format!("REINDEX INDEX {name};"));
    each.collect::<Vec<_>>().join(" ")
}

fn refresh(database: &DatabaseContext<'_>, changed: &[Changed<'_>]) -> String {
    let each = changed.iter().take(NAMED_MAX).map(|own| {
        if own.collation.oid == DEFAULT_COLLATION {
            let name = name_of(database);
            format!("ALTER DATABASE \"{name}\" REFRESH COLLATION VERSION;")
        } else {
            let name = &own.collation.name;
            format!("ALTER COLLATION \"{name}\" REFRESH VERSION;")
        }
    });
    each.collect::<Vec<_>>().join(" ")
}

/// The database as a whole.
fn place(database: &DatabaseContext<'_>) -> Place {
    let oid = database.catalog.database;
    let home = default_home(database.cluster, oid);
    Place {
        path: home.map_or_else(String::new, |home| home.folder.clone()),
        database: database.catalog.database_name.clone(),
        database_oid: Some(oid),
        kind: FileKind::File,
        ..Place::default()
    }
}

fn name_of(database: &DatabaseContext<'_>) -> String {
    let catalog = database.catalog;
    let name = catalog.database_name.clone();
    name.unwrap_or_else(|| catalog.database.to_string())
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
