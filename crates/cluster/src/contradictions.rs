//! Rows of `pg_class` and `pg_attribute` that say what no server writes, and what they say by all
//! the rest of the row and by the files.
//!
//! One flipped bit of `relkind` makes a view of a table, and its rows would be missed by nobody.
//! Truth: `heap_create` in `src/backend/catalog/heap.c` gives files to relations of certain kinds
//! alone; `RemoveAttributeById` takes the type from a dropped column.

use std::collections::{BTreeMap, HashMap};

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_source::Presence;

use crate::cluster::Cluster;
use crate::comparison::Comparison;
use crate::file_name::fork_path;
use crate::files::DatabaseDirectory;
use crate::relation::{Column, Persistence, RelKind, Relation};

/// `pg_toast`, as text: names of schemas are not read yet.
const PG_TOAST_NAMESPACE: &str = "99";
/// How the name of a dropped column begins.
const DROPPED_NAME: &str = "........pg.dropped.";

/// A row of a catalog that contradicts itself, the files, or another row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contradiction {
    /// The relation that the row is of, or whose column it is of.
    pub relation: Oid,
    /// The name in the row, without a schema.
    pub name: String,
    /// `pg_class` or `pg_attribute`.
    pub catalog: &'static str,
    /// What it says, and why that cannot be.
    pub what: String,
}

/// Makes of the relations what they must be, and tells what their rows said.
pub(crate) fn mend_relations(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    relations: &mut BTreeMap<Oid, Relation>,
) -> Vec<Contradiction> {
    let claims = claims(relations);
    let mut found = Vec::new();
    for relation in relations.values_mut() {
        let has_own_file = |own: &Relation| {
            let mut claimants = claimants(&claims, own).iter();
            own.filenode != 0
                && claimants.all(|oid| *oid == own.oid)
                && has_file(cluster, home, own)
        };
        let told = mend(relation, &has_own_file).into_iter();
        found.extend(told.map(|what| Contradiction {
            relation: relation.oid,
            name: relation.name.clone(),
            catalog: "pg_class",
            what,
        }));
    }
    // Rows of different moments may name one file.
    if cluster.may_compare(Comparison::FilesWithCatalogs) {
        found.extend(
            relations
                .values()
                .filter_map(|own| shares_file(own, relations, &claims)),
        );
    }
    found
}

/// Relations by the files that they say are theirs.
type Claims = HashMap<(Oid, Oid), Vec<Oid>>;

fn claims(relations: &BTreeMap<Oid, Relation>) -> Claims {
    let mut claims = Claims::new();
    let lasting = relations.values().filter(|own| {
        own.filenode != 0 && own.kind.has_storage() && own.persistence != Persistence::Temporary
    });
    for own in lasting {
        let file = (own.tablespace, own.filenode);
        claims.entry(file).or_default().push(own.oid);
    }
    claims
}

fn claimants<'c>(claims: &'c Claims, relation: &Relation) -> &'c [Oid] {
    let own = claims.get(&(relation.tablespace, relation.filenode));
    own.map_or(&[], Vec::as_slice)
}

/// The first file of the relation is there, as that of a relation that lasts.
fn has_file(cluster: &Cluster, home: &DatabaseDirectory, relation: &Relation) -> bool {
    let mut homes = cluster.homes.iter();
    let own =
        homes.find(|own| own.tablespace == relation.tablespace && own.database == home.database);
    own.is_some_and(|own| {
        let path = fork_path(&own.folder, relation.filenode, Fork::Main, 0);
        let there = Presence::of_file(cluster.source().as_ref(), &path);
        matches!(there, Presence::There(_))
    })
}

/// What the row of a relation says that cannot be; each is taken back. Whether it has a file is
/// asked only of one that is suspicious: a catalog may have very many.
fn mend(relation: &mut Relation, has_file: &dyn Fn(&Relation) -> bool) -> Vec<String> {
    let mut told = Vec::new();
    if relation.shared && relation.oid >= FIRST_NORMAL_OID {
        relation.shared = false;
        told.push("relisshared is set, and only catalogs are shared".to_owned());
    }
    if let Some(kind) = right_kind(relation).filter(|_| has_file(relation)) {
        relation.kind = kind;
        told.push(format!(
            "relkind is wrong: by its access method and its file, {}, it is {}",
            relation.filenode,
            words_of(kind)
        ));
    }
    let is_toast = relation.schema == PG_TOAST_NAMESPACE || is_named_as_toast(&relation.name);
    let lasts = relation.persistence != Persistence::Temporary;
    if relation.kind == RelKind::Toast && lasts && !is_toast && has_file(relation) {
        relation.kind = RelKind::Table;
        told.push("relkind says that it is a TOAST table, and name and schema do not".to_owned());
    }
    let may_lack_rows = relation.kind == RelKind::MaterializedView || !relation.kind.has_storage();
    if !relation.populated && !may_lack_rows {
        relation.populated = true;
        told.push("relispopulated is not set, and it is no materialized view".to_owned());
    }
    if relation.persistence == Persistence::Temporary && has_file(relation) {
        relation.persistence = Persistence::Permanent;
        told.push(format!(
            "relpersistence says that it is temporary, and its file, {}, is not",
            relation.filenode
        ));
    }
    let is_mapped = relation.oid < FIRST_NORMAL_OID || relation.foreign_method.is_some();
    if relation.filenode == 0 && relation.kind.has_storage() && !is_mapped {
        told.push("relfilenode is 0, and the relation map has catalogs alone".to_owned());
    }
    let has_method = relation.access_method.is_some() || relation.foreign_method.is_some();
    if is_of_rows(relation.kind) && !has_method {
        relation.access_method = Some(AccessMethod::Heap);
        told.push("relam is 0, and every table has an access method".to_owned());
    }
    told
}

/// `pg_toast_16384`.
fn is_named_as_toast(name: &str) -> bool {
    let owner = name.strip_prefix("pg_toast_").unwrap_or_default();
    !owner.is_empty() && owner.bytes().all(|byte| byte.is_ascii_digit())
}

/// Relations that stand in a schema of the server's own making, and are none of those that it keeps
/// there. One flipped bit moves a table there, or every table of a schema.
pub(crate) fn in_schemas_of_the_server(
    relations: &BTreeMap<Oid, Relation>,
) -> impl Iterator<Item = Contradiction> {
    let users = relations
        .values()
        .filter(|own| own.oid >= FIRST_NORMAL_OID && own.kind.has_storage());
    users.filter_map(|own| {
        let schema = own.schema.as_str();
        let is_of_sessions = schema.starts_with("pg_temp_") || schema.starts_with("pg_toast_temp_");
        let lasts = own.persistence != Persistence::Temporary;
        let is_of_toast = matches!(own.kind, RelKind::Toast | RelKind::Index);
        let what = if is_of_sessions && lasts {
            format!("its schema, {schema}, is one of temporary relations, and it is not temporary")
        } else if schema == "pg_toast" && !is_of_toast {
            "its schema is that of TOAST tables, and it is another relation".to_owned()
        } else {
            return None;
        };
        Some(Contradiction {
            relation: own.oid,
            name: own.name.clone(),
            catalog: "pg_class",
            what,
        })
    })
}

fn is_of_rows(kind: RelKind) -> bool {
    matches!(
        kind,
        RelKind::Table | RelKind::Toast | RelKind::MaterializedView
    )
}

/// The kind of a relation that has a file, where its row says another.
fn right_kind(relation: &Relation) -> Option<RelKind> {
    let by_rows = match relation.schema.as_str() {
        PG_TOAST_NAMESPACE => RelKind::Toast,
        _ => RelKind::Table,
    };
    match (relation.kind, relation.access_method) {
        (kind, Some(method)) if is_of_rows(kind) && method != AccessMethod::Heap => {
            Some(RelKind::Index)
        }
        (RelKind::Index, Some(AccessMethod::Heap)) => Some(by_rows),
        (kind, _) if kind.has_storage() => None,
        (_, Some(AccessMethod::Heap)) => Some(by_rows),
        (_, Some(_)) => Some(RelKind::Index),
        (_, None) if relation.foreign_method.is_some() => None,
        (_, None) => Some(RelKind::Sequence),
    }
}

fn words_of(kind: RelKind) -> &'static str {
    match kind {
        RelKind::Index => "an index",
        RelKind::Sequence => "a sequence",
        RelKind::Toast => "a TOAST table",
        _ => "a table",
    }
}

/// Another row names the same file.
fn shares_file(
    own: &Relation,
    relations: &BTreeMap<Oid, Relation>,
    claims: &Claims,
) -> Option<Contradiction> {
    let mut others = claimants(claims, own).iter().filter(|oid| **oid != own.oid);
    let other = relations.get(others.next()?)?;
    let is_claimant = claimants(claims, own).contains(&own.oid);
    is_claimant.then(|| Contradiction {
        relation: own.oid,
        name: own.name.clone(),
        catalog: "pg_class",
        what: format!(
            "relfilenode is {}, and so is that of {}",
            own.filenode, other.name
        ),
    })
}

/// A dropped column has lost its type and its name: one that has both is there. And the other way
/// round.
pub(crate) fn mend_columns(columns: &mut BTreeMap<Oid, Vec<Column>>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for (relation, columns) in columns {
        for column in columns {
            let is_named_so = column.name.starts_with(DROPPED_NAME);
            let (what, is_dropped) = match (column.dropped, column.type_oid) {
                (true, 1..) if !is_named_so => {
                    ("is set, and the column has a type and a name", false)
                }
                (false, 0) if is_named_so => {
                    ("is not set, and the column has no type and no name", true)
                }
                // Its type is lost, so that it stays dropped.
                (true, 0) if !is_named_so => ("is set, and the column still has a name", true),
                _ => continue,
            };
            column.dropped = is_dropped;
            found.push(Contradiction {
                relation: *relation,
                name: column.name.clone(),
                catalog: "pg_attribute",
                what: format!("attisdropped {what}"),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_column_has_no_type() {
        let column = |name: &str, type_oid, dropped| Column {
            attnum: 1,
            name: name.to_owned(),
            type_oid,
            typmod: -1,
            collation: 0,
            not_null: false,
            dropped,
            generated: crate::relation::Generated::No,
            storage: b'p',
            compression: 0,
            layout: pgclinic_format::ColumnLayout {
                attlen: 4,
                attalign: 4,
            },
            missing: None,
            has_missing: false,
        };
        let gone = "........pg.dropped.1........";
        let right = vec![column("a", 23, false), column(gone, 0, true)];
        let wrong = vec![column("a", 23, true), column(gone, 0, false)];
        let mut columns = BTreeMap::from([(16384, right.clone()), (16385, wrong)]);
        let found = mend_columns(&mut columns);
        assert_eq!(found.len(), 2);
        let named = BTreeMap::from([(16386, vec![column("a", 0, true)])]);
        assert_eq!(mend_columns(&mut named.clone()).len(), 1);
        assert!(found.iter().all(|own| own.relation == 16385));
        assert!(columns.values().all(|own| *own == right));
    }
}
