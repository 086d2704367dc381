//! The names that values of the `reg*` types and of `aclitem` stand for, from the catalogs, as a
//! session prints them whose `search_path` is given.
//!
//! Truth: `regproc.c`, `format_type.c`, and `RelationIsVisible` with its kin in `namespace.c`.

use std::collections::{BTreeSet, HashMap, HashSet};

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;
use pgclinic_format::datum::ObjectNames;

use super::catalog::{Catalogs, PG_CATALOG, Row};
use super::long_text::CatalogRoom;
use super::names::sql_type;

const REGPROC: Oid = 24;
const REGCLASS: Oid = 2205;
const REGPROCEDURE: Oid = 2202;
const REGOPER: Oid = 2203;
const REGOPERATOR: Oid = 2204;
const REGTYPE: Oid = 2206;
const REGNAMESPACE: Oid = 4089;
const REGROLE: Oid = 4096;

/// Types whose objects are found by their name alone: catalog, column of the schema, column of the
/// name.
const BY_NAME: [(Oid, [&str; 3]); 4] = [
    (REGCLASS, ["pg_class", "relnamespace", "relname"]),
    (3734, ["pg_ts_config", "cfgnamespace", "cfgname"]),
    (3769, ["pg_ts_dict", "dictnamespace", "dictname"]),
    (4191, ["pg_collation", "collnamespace", "collname"]),
];

/// Names by OID.
type Names = HashMap<Oid, Vec<u8>>;

/// The names of all objects of these types; `path` are schemas, `pg_catalog` comes first where it
/// is not among them.
pub(crate) fn object_names(
    cluster: &Cluster,
    catalog: &Catalog,
    path: &[String],
    types: &BTreeSet<Oid>,
) -> ObjectNames {
    let shared = cluster.catalog(0);
    let catalogs = Catalogs::read(cluster, catalog, &shared, &CatalogRoom::brief());
    let namer = Namer::new(&catalogs, path);
    let names = |ty: &Oid| {
        let mut names = namer.names(*ty)?;
        if *ty == REGCLASS {
            namer.add_lost(catalog, &mut names);
        }
        Some((*ty, names))
    };
    types.iter().filter_map(names).collect()
}

struct Namer<'a> {
    catalogs: &'a Catalogs<'a>,
    /// Schemas in the order in which a name is looked for.
    path: Vec<Oid>,
}

impl<'a> Namer<'a> {
    fn new(catalogs: &'a Catalogs<'a>, path: &[String]) -> Self {
        let schemas = catalogs.table("pg_namespace");
        let named = |name: &String| {
            let schema = schemas.iter().find(|row| row.name("nspname") == *name);
            schema.map(|row| row.id())
        };
        let mut path: Vec<Oid> = path.iter().filter_map(named).collect();
        if !path.contains(&PG_CATALOG) {
            path.insert(0, PG_CATALOG);
        }
        Namer { catalogs, path }
    }

    fn names(&self, ty: Oid) -> Option<Names> {
        Some(match ty {
            REGPROC => self.lone(self.functions(), "proname"),
            REGPROCEDURE => self.with_arguments(self.functions(), "proname"),
            REGOPER => self.lone(self.operators(), "oprname"),
            REGOPERATOR => self.with_arguments(self.operators(), "oprname"),
            REGTYPE => self.types(),
            REGNAMESPACE => self.plain("pg_namespace", "nspname"),
            REGROLE => self.plain("pg_authid", "rolname"),
            other => {
                let (_, columns) = BY_NAME.iter().find(|(oid, _)| *oid == other)?;
                self.by_name(*columns)
            }
        })
    }

    /// Relations whose rows in `pg_class` are lost have the names that other witnesses give them.
    fn add_lost(&self, catalog: &Catalog, names: &mut Names) {
        let lost = catalog.lost_relations.iter();
        let lost = lost.filter_map(|lost| catalog.relations.get(&lost.oid?));
        for relation in lost {
            let name = self.catalogs.quoted(&relation.name);
            let text = match relation.schema.as_str() {
                "pg_catalog" => name,
                schema => format!("{}.{name}", self.catalogs.quoted(schema)),
            };
            names.entry(relation.oid).or_insert(text.into_bytes());
        }
    }

    fn place(&self, schema: Oid) -> Option<usize> {
        self.path.iter().position(|oid| *oid == schema)
    }

    /// A name as it is stored, in the encoding of the database, quoted where needed: a character
    /// that is not ASCII needs it.
    fn quoted(&self, row: Row<'_>, column: &str) -> Vec<u8> {
        let stored = row.text_bytes(column).unwrap_or_default();
        if stored.is_ascii() {
            return self.catalogs.quoted(&row.name(column)).into_bytes();
        }
        let doubled = stored.split(|byte| *byte == b'"').collect::<Vec<_>>();
        [b"\"", &doubled.join(&b"\"\""[..])[..], b"\""].concat()
    }

    fn with_schema(&self, schema: Oid, name: &[u8]) -> Vec<u8> {
        let schema = self.catalogs.row("pg_namespace", schema);
        let schema = schema.map(|row| self.quoted(row, "nspname"));
        [&schema.unwrap_or_default()[..], b".", name].concat()
    }

    fn plain(&self, table: &str, column: &str) -> Names {
        let rows = self.catalogs.table(table).iter();
        rows.map(|row| (row.id(), self.quoted(row, column)))
            .collect()
    }

    /// Objects that hide others of the same name in later schemas.
    fn by_name(&self, [table, schema, name]: [&str; 3]) -> Names {
        let rows = || self.catalogs.table(table).iter();
        let mut first: HashMap<String, usize> = HashMap::new();
        for row in rows() {
            if let Some(place) = self.place(row.oid(schema)) {
                let known = first.entry(row.name(name)).or_insert(place);
                *known = place.min(*known);
            }
        }
        rows()
            .map(|row| {
                let place = self.place(row.oid(schema));
                let is_visible = place.is_some() && first.get(&row.name(name)) == place.as_ref();
                let bare = self.quoted(row, name);
                let text = if is_visible {
                    bare
                } else {
                    self.with_schema(row.oid(schema), &bare)
                };
                (row.id(), text)
            })
            .collect()
    }

    /// As `format_type` without a modifier.
    fn types(&self) -> Names {
        let mut names = self.by_name(["pg_type", "typnamespace", "typname"]);
        for row in self.catalogs.table("pg_type").iter() {
            let special = match row.id() {
                1042 => Some("character".into()),
                1560 => Some("bit".into()),
                oid => sql_type(oid, -1),
            };
            names.extend(special.map(|text| (row.id(), text.into_bytes())));
        }
        for row in self.catalogs.table("pg_type").iter() {
            let element = row.oid("typelem");
            let is_array = row.int("typlen") == -1 && row.letter("typstorage") != 'p';
            if let Some(name) = names.get(&element).filter(|_| element != 0 && is_array) {
                let name = [name, &b"[]"[..]].concat();
                names.insert(row.id(), name);
            }
        }
        names
    }

    fn functions(&self) -> Vec<Overload<'a>> {
        let rows = self.catalogs.table("pg_proc").iter();
        rows.map(|row| Overload {
            row,
            schema: row.oid("pronamespace"),
            arguments: row.oids("proargtypes"),
        })
        .collect()
    }

    fn operators(&self) -> Vec<Overload<'a>> {
        let rows = self.catalogs.table("pg_operator").iter();
        rows.map(|row| Overload {
            row,
            schema: row.oid("oprnamespace"),
            arguments: vec![row.oid("oprleft"), row.oid("oprright")],
        })
        .collect()
    }

    /// A name that needs no quotes where it is an operator's.
    fn bare(&self, row: Row<'_>, column: &str) -> Vec<u8> {
        match column {
            "oprname" => row.name(column).into_bytes(),
            _ => self.quoted(row, column),
        }
    }

    /// Without arguments: the schema stands before every name that a session would not find as the
    /// only one.
    fn lone(&self, overloads: Vec<Overload<'_>>, column: &str) -> Names {
        let mut seen: HashMap<String, HashSet<&[Oid]>> = HashMap::new();
        for overload in &overloads {
            if self.place(overload.schema).is_some() {
                let name = overload.row.name(column);
                seen.entry(name).or_default().insert(&overload.arguments);
            }
        }
        let visible = self.visible(&overloads, column);
        overloads
            .iter()
            .map(|overload| {
                let row = overload.row;
                let others = seen.get(&row.name(column)).map_or(0, HashSet::len);
                let bare = self.bare(row, column);
                let text = if others == 1 && visible.contains(&row.id()) {
                    bare
                } else {
                    self.with_schema(overload.schema, &bare)
                };
                (row.id(), text)
            })
            .collect()
    }

    /// `name(integer,text)`
    fn with_arguments(&self, overloads: Vec<Overload<'_>>, column: &str) -> Names {
        let types = self.types();
        let visible = self.visible(&overloads, column);
        let type_name = |oid: &Oid| match oid {
            0 => b"NONE".to_vec(),
            _ => types.get(oid).cloned().unwrap_or(b"???".to_vec()),
        };
        overloads
            .iter()
            .map(|overload| {
                let row = overload.row;
                let mut text = self.bare(row, column);
                if !visible.contains(&row.id()) {
                    text = self.with_schema(overload.schema, &text);
                }
                let arguments: Vec<Vec<u8>> = overload.arguments.iter().map(type_name).collect();
                text.extend([b"(", &arguments.join(&b',')[..], b")"].concat());
                (row.id(), text)
            })
            .collect()
    }

    /// Those that no other one of the same name and arguments in an earlier schema hides.
    fn visible(&self, overloads: &[Overload<'_>], column: &str) -> HashSet<Oid> {
        let mut first: HashMap<(String, &[Oid]), (usize, Oid)> = HashMap::new();
        for overload in overloads {
            let Some(place) = self.place(overload.schema) else {
                continue;
            };
            let key = (overload.row.name(column), overload.arguments.as_slice());
            let own = (place, overload.row.id());
            let known = first.entry(key).or_insert(own);
            *known = own.min(*known);
        }
        first.into_values().map(|(_, oid)| oid).collect()
    }
}

/// One of the functions or operators of a name.
struct Overload<'a> {
    row: Row<'a>,
    schema: Oid,
    arguments: Vec<Oid>,
}
