//! `pg_am`: whose handler reads a relation's pages.
//!
//! The built-in handlers have fixed OIDs; any other is an extension's, as of columnar and encrypted
//! tables. Truth: `src/include/catalog/pg_am.h`.

use std::collections::{BTreeMap, HashMap, HashSet};

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::layout::CatalogColumn;
use pgclinic_format::oid::PG_INDEX;
use pgclinic_format::{ColumnLayout, Fork, Oid};
use pgclinic_model::{plural, verb_of};

use crate::catalog::Reader;
use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;
use crate::relation::{ForeignMethod, RelKind, Relation};

/// How the access methods of pg_tde, whose relations are encrypted, begin.
const ENCRYPTING: &str = "tde_heap";

const fn column(name: &'static str, attlen: i16) -> CatalogColumn {
    CatalogColumn {
        name,
        layout: ColumnLayout {
            attlen,
            attalign: 4,
        },
    }
}

/// The columns of `pg_am` up to the handler, the same in all majors.
pub(crate) const PG_AM_COLUMNS: [CatalogColumn; 3] = [
    column("oid", 4),
    column("amname", 64),
    column("amhandler", 4),
];
/// The columns of `pg_index` up to `indisready`, the numbers of columns as one, and so the flags.
const PG_INDEX_COLUMNS: [CatalogColumn; 4] = [
    column("indexrelid", 4),
    column("indrelid", 4),
    column("numbers", 4),
    CatalogColumn {
        name: "flags",
        layout: ColumnLayout {
            attlen: 9,
            attalign: 1,
        },
    },
];

/// What the flags of a row of `pg_index` say.
fn is_valid_and_ready(flags: &[u8], major: u16) -> bool {
    // 15 brought indnullsnotdistinct, before them.
    let shift = usize::from(major >= 15);
    [5, 7]
        .iter()
        .all(|flag| flags.get(flag + shift) == Some(&1))
}

/// A row of `pg_am`.
pub(crate) struct MethodRow {
    pub(crate) name: String,
    pub(crate) handler: u32,
}

/// What `pg_class.relam` says before `pg_am` was read.
pub(crate) fn unnamed(relam: Oid, kind: RelKind) -> Option<ForeignMethod> {
    let is_known = relam == 0 || AccessMethod::from_oid(relam).is_some();
    (!is_known).then(|| ForeignMethod {
        name: relam.to_string(),
        is_of_table: kind != RelKind::Index,
    })
}

/// Some method makes encrypted relations.
pub(crate) fn encrypts(methods: &HashMap<Oid, MethodRow>) -> bool {
    let mut methods = methods.values();
    methods.any(|method| method.name.starts_with(ENCRYPTING))
}

/// Indexes and TOAST relations of such tables, and the indexes of these, are as unknown as the
/// tables.
pub(crate) fn spread(relations: &mut BTreeMap<Oid, Relation>, tables: &HashMap<Oid, Oid>) {
    let of_table = |relations: &BTreeMap<Oid, Relation>, oid: Oid| {
        let own = relations.get(&oid)?.foreign_method.clone();
        own.filter(|method| method.is_of_table)
    };
    let toasts: Vec<(Oid, Oid)> = relations
        .values()
        .filter(|relation| relation.toast_of != 0)
        .map(|relation| (relation.oid, relation.toast_of))
        .collect();
    let indexes = tables.iter().map(|(index, table)| (*index, *table));
    for (part, owner) in toasts.into_iter().chain(indexes) {
        let method = of_table(relations, owner);
        if let (Some(method), Some(relation)) = (method, relations.get_mut(&part)) {
            relation.foreign_method = Some(method);
        }
    }
}

impl Reader<'_> {
    /// Puts names and built-in handlers in the place of OIDs. A method whose row is lost is taken
    /// for the usual one where a table looks like a heap.
    pub(crate) fn name_methods(
        &mut self,
        relations: &mut BTreeMap<Oid, Relation>,
        methods: &HashMap<Oid, MethodRow>,
    ) {
        let mut lost = 0_u64;
        for relation in relations.values_mut() {
            let Some(foreign) = relation.foreign_method.as_mut() else {
                continue;
            };
            let known = foreign.name.parse().ok();
            let Some(method) = known.and_then(|oid: Oid| methods.get(&oid)) else {
                if self.looks_like_a_heap(relation) {
                    relation.access_method = Some(AccessMethod::Heap);
                    relation.foreign_method = None;
                    lost += 1;
                }
                continue;
            };
            foreign.name.clone_from(&method.name);
            if let Some(built_in) = AccessMethod::from_handler(method.handler) {
                relation.access_method = Some(built_in);
                relation.foreign_method = None;
            }
        }
        if lost > 0 {
            let why = format!(
                "it does not have the access method of {tables}, which {look} like {heaps} and {are} read so",
                tables = plural(lost, "table"),
                look = verb_of(lost, "look"),
                heaps = if lost == 1 { "a heap" } else { "heaps" },
                are = verb_of(lost, "are")
            );
            self.trouble("pg_am", why);
        }
    }

    fn looks_like_a_heap(&self, relation: &Relation) -> bool {
        let mut homes = self.cluster.homes.iter();
        let home = homes.find(|home| {
            (home.database, home.tablespace) == (self.home.database, relation.tablespace)
        });
        let is_table = matches!(relation.kind, RelKind::Table | RelKind::MaterializedView);
        home.filter(|_| is_table).is_some_and(|home| {
            let files = self.cluster.fork_files(home, relation.filenode, Fork::Main);
            self.cluster.method_of_content(&files) == Some(AccessMethod::Heap)
        })
    }

    /// The table of each index.
    pub(crate) fn tables_of_indexes(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
    ) -> HashMap<Oid, Oid> {
        let mut tables = HashMap::new();
        self.index_rows_by_built_in(relations, |row| {
            if let (Some(index), Some(table)) = (row.u32(0), row.u32(1)) {
                tables.insert(index, table);
            }
        });
        tables
    }

    pub(crate) fn mark_indexes_being_built(&mut self, relations: &mut BTreeMap<Oid, Relation>) {
        let major = self.cluster.layout.major;
        let mut finished = HashSet::new();
        self.index_rows_by_built_in(relations, |row| {
            if let (Some(index), Some(flags)) = (row.u32(0), row.bytes(3))
                && is_valid_and_ready(flags, major)
            {
                finished.insert(index);
            }
        });
        for relation in relations.values_mut() {
            relation.being_built =
                relation.kind == RelKind::Index && !finished.contains(&relation.oid);
        }
    }

    /// The first columns of `pg_index` by themselves, as names may be all that is asked for.
    fn index_rows_by_built_in(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
        each: impl FnMut(RawRow<'_>),
    ) {
        if let Some(filenode) = relations.get(&PG_INDEX).map(|own| own.filenode) {
            let names = ColumnNames::built_in(&PG_INDEX_COLUMNS);
            self.rows("pg_index", filenode, &names.layouts, each);
        }
    }
}
