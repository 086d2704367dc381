//! Reads the catalogs that a schema is made of.

use std::collections::HashMap;
use std::sync::OnceLock;

use pgclinic_cluster::{
    Catalog, CatalogEncoding, Cluster, Column, ForkFiles, HeapScan, LostKeys, RawRow, Relation,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::{plural, verb_of};

use super::super::long_text::{CatalogRoom, CatalogText, TextStore};
use super::Catalogs;
use super::long_values::LongValues;
use super::rebuilt_columns::DescribedColumns;
use super::rebuilt_rows::Values;
use super::siblings::Gap;
use super::table::{Table, Taken};

/// The catalogs that are read, each with the columns that its rows are found by.
const WANTED: &[(&str, &[&str])] = &[
    ("pg_aggregate", &["aggfnoid"]),
    ("pg_am", &["oid"]),
    ("pg_amop", &["oid", "amopfamily", "amopopr"]),
    ("pg_amproc", &["oid", "amprocfamily"]),
    ("pg_attrdef", &["oid", "adrelid"]),
    ("pg_attribute", &["attrelid"]),
    ("pg_auth_members", &[]),
    ("pg_authid", &["oid"]),
    ("pg_cast", &["oid"]),
    ("pg_class", &["oid", "relnamespace"]),
    ("pg_collation", &["oid"]),
    (
        "pg_constraint",
        &["oid", "conrelid", "contypid", "conindid"],
    ),
    ("pg_conversion", &["oid"]),
    ("pg_database", &["oid"]),
    ("pg_db_role_setting", &["setdatabase"]),
    ("pg_default_acl", &["oid"]),
    ("pg_depend", &["objid", "refobjid"]),
    ("pg_description", &["objoid"]),
    ("pg_enum", &["oid", "enumtypid"]),
    ("pg_event_trigger", &["oid"]),
    ("pg_extension", &["oid"]),
    ("pg_foreign_data_wrapper", &["oid"]),
    ("pg_foreign_server", &["oid"]),
    ("pg_foreign_table", &["ftrelid"]),
    ("pg_index", &["indexrelid", "indrelid"]),
    ("pg_init_privs", &[]),
    ("pg_inherits", &["inhrelid", "inhparent"]),
    ("pg_language", &["oid"]),
    ("pg_largeobject_metadata", &["oid"]),
    ("pg_namespace", &["oid"]),
    ("pg_opclass", &["oid", "opcfamily"]),
    ("pg_operator", &["oid"]),
    ("pg_opfamily", &["oid"]),
    ("pg_partitioned_table", &["partrelid"]),
    ("pg_policy", &["oid", "polrelid"]),
    ("pg_proc", &["oid"]),
    ("pg_publication", &["oid"]),
    ("pg_publication_namespace", &["pnpubid"]),
    ("pg_publication_rel", &["prpubid"]),
    ("pg_range", &["rngtypid", "rngmultitypid"]),
    ("pg_rewrite", &["oid", "ev_class"]),
    ("pg_seclabel", &["objoid"]),
    ("pg_sequence", &["seqrelid"]),
    ("pg_shdepend", &["objid"]),
    ("pg_shdescription", &["objoid"]),
    ("pg_statistic_ext", &["oid", "stxrelid"]),
    ("pg_subscription", &["oid"]),
    ("pg_tablespace", &["oid"]),
    ("pg_transform", &["oid"]),
    ("pg_trigger", &["oid", "tgrelid"]),
    ("pg_ts_config", &["oid"]),
    ("pg_ts_config_map", &["mapcfg"]),
    ("pg_ts_dict", &["oid"]),
    ("pg_ts_parser", &["oid"]),
    ("pg_ts_template", &["oid"]),
    ("pg_type", &["oid", "typrelid"]),
    ("pg_user_mapping", &["oid"]),
];

/// Columns that are not kept: long, and of no use here.
const UNWANTED: &[&str] = &["attmissingval"];
/// What else is not kept where only names and types are asked for: code, comments and stored trees.
const PG_NODE_TREE: Oid = 194;
const LONG: &[&str] = &["prosrc", "probin", "description"];
/// Those of them that say nothing of whose a function is.
const BODIES: &[&str] = &["prosrc", "description"];
/// The tree of a default or of a generated column.
const COMPUTED_BY: &str = "adbin";

impl<'a> Catalogs<'a> {
    /// Reads what `catalog` (of one database) and `shared` (of the cluster) know of.
    pub(crate) fn read(
        cluster: &Cluster,
        catalog: &'a Catalog,
        shared: &Catalog,
        room: &CatalogRoom,
    ) -> Self {
        let nothing = DescribedColumns::new();
        Catalogs::read_with(cluster, (catalog, shared), room, &nothing)
    }

    /// The same with columns that they do not give, but a person or the rows of the tables.
    pub(crate) fn read_with(
        cluster: &Cluster,
        (catalog, shared): (&'a Catalog, &Catalog),
        room: &CatalogRoom,
        described: &DescribedColumns,
    ) -> Self {
        let mut catalogs = Catalogs {
            catalog,
            major: cluster.layout.major,
            words: cluster.words(catalog.database),
            tables: HashMap::new(),
            empty: Table::default(),
            lost: HashMap::new(),
            store: TextStore::new(room),
            troubles: Vec::new(),
            parents_alone: OnceLock::new(),
        };
        let mut gaps = Vec::new();
        for part in [catalog, shared] {
            let files = files_of(cluster, part.database);
            let mut reader = Reader {
                cluster,
                catalog: part,
                files: &files,
                room,
                store: &catalogs.store,
                words: match part.database {
                    0 => catalogs.words.shared(),
                    _ => catalogs.words,
                },
                troubles: Vec::new(),
                gaps: Vec::new(),
                lost: Vec::new(),
            };
            let wanted = WANTED.iter();
            let read: Vec<_> = wanted
                .filter_map(|(name, keys)| Some((*name, reader.table(name, keys)?)))
                .collect();
            gaps.append(&mut reader.gaps);
            let (troubles, lost) = (reader.troubles, reader.lost);
            catalogs.lost.extend(lost);
            catalogs.tables.extend(read);
            catalogs.troubles.extend(troubles);
        }
        catalogs.add_rows_of_siblings(cluster, room, &gaps);
        catalogs.forget_what_is_known();
        catalogs.add_rebuilt_names(cluster, shared, &gaps);
        catalogs.add_rebuilt_links();
        catalogs.add_rebuilt_rows();
        catalogs.add_rebuilt_types();
        catalogs.add_rebuilt_columns(described);
        catalogs.add_rebuilt_extensions(&gaps);
        catalogs.add_members_by_library(&gaps);
        catalogs.add_rebuilt_constraints(&gaps);
        catalogs.add_rebuilt_sequences(cluster);
        catalogs.add_rebuilt_foreign_tables();
        catalogs
    }

    /// Puts rows among those of a catalog that was read.
    pub(super) fn add_rows(&mut self, name: &str, rows: &[Values]) {
        let Some(table) = self.tables.get_mut(name).filter(|_| !rows.is_empty()) else {
            return;
        };
        for row in rows {
            table.push_named(row);
        }
        let keys = WANTED.iter().find(|(wanted, _)| *wanted == name);
        for key in keys.map_or(&[][..], |(_, keys)| *keys) {
            table.key(key);
        }
    }
}

/// Main forks of a database by tablespace and number.
pub(super) fn files_of(cluster: &Cluster, database: Oid) -> HashMap<(Oid, Oid), ForkFiles> {
    let homes = cluster.homes.iter();
    homes
        .filter(|home| home.database == database)
        .filter_map(|home| cluster.files(home).ok())
        .flatten()
        .filter(|files| files.fork == Fork::Main && files.temporary.is_none())
        .map(|files| ((files.home.tablespace, files.filenode), files))
        .collect()
}

pub(super) struct Reader<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) catalog: &'a Catalog,
    pub(super) files: &'a HashMap<(Oid, Oid), ForkFiles>,
    pub(super) room: &'a CatalogRoom,
    pub(super) store: &'a TextStore,
    pub(super) words: CatalogEncoding,
    pub(super) troubles: Vec<String>,
    /// Catalogs that lost rows.
    pub(super) gaps: Vec<Gap>,
    /// What their indexes still have of those.
    pub(super) lost: Vec<(&'static str, Table)>,
}

/// What a pass over a catalog says beside its rows.
struct RowsRead {
    /// What its indexes name beyond its rows, in words.
    missed: Option<String>,
    /// All of its pages could be read.
    is_whole: bool,
    lost: Vec<LostKeys>,
}

impl Reader<'_> {
    pub(super) fn table(
        &mut self,
        name: &'static str,
        keys: &'static [&'static str],
    ) -> Option<Table> {
        let mut relations = self.catalog.relations.values();
        // Of a relation whose row and file are both lost the kind is lost too.
        let relation =
            relations.find(|relation| relation.name == name && relation.oid < FIRST_NORMAL_OID)?;
        let relation = &self.with_columns(relation);
        let Some(columns) = &relation.columns else {
            self.troubles
                .push(format!("{name}: its columns are unknown"));
            return None;
        };
        let names = || columns.iter().map(|column| column.name.clone());
        let mut table = Table::new(names(), self.words, self.store);
        let nowhere;
        let files = if let Some(files) = self.files_of(relation) {
            files
        } else {
            self.troubles.push(format!("{name}: its file is missing"));
            let Some(files) = self.without_segments(relation) else {
                self.gaps.push(Gap { name, keys });
                return Some(table);
            };
            nowhere = files;
            &nowhere
        };
        let is_wanted = |column: &Column| {
            let name = column.name.as_str();
            let is_tree = column.type_oid == PG_NODE_TREE;
            let is_left_out = match self.room.text {
                CatalogText::All => false,
                CatalogText::OfColumns => {
                    (is_tree && name != COMPUTED_BY) || BODIES.contains(&name)
                }
                CatalogText::None => is_tree || LONG.contains(&name),
            };
            !is_left_out && !UNWANTED.contains(&name)
        };
        let toast = self.catalog.relations.get(&relation.toast);
        let toast = toast.and_then(|toast| self.files_of(toast));
        let mut values = LongValues::new(self.cluster, toast, self.room, self.store);
        let mut lost = Vec::new();
        let RowsRead {
            missed,
            is_whole,
            lost: lost_rows,
        } = self.each_row(relation, files, |row| {
            let mut taken = Vec::with_capacity(columns.len());
            for (index, column) in columns.iter().enumerate() {
                let bytes = row.bytes(index).filter(|_| is_wanted(column));
                let value = match bytes {
                    None => Ok(Taken::Null),
                    Some(bytes) if column.layout.attlen == -1 => values.payload(bytes),
                    Some(bytes) => Ok(Taken::Payload(bytes.to_vec())),
                };
                taken.push(value.unwrap_or_else(|why| {
                    lost.push(format!("{name}.{}: {why}", column.name));
                    Taken::Lost
                }));
            }
            if let Err(error) = table.push(taken) {
                lost.push(format!("{name}: {error}"));
            }
        });
        if self.cluster.is_cut(files) {
            lost.push(format!(
                "{name}: its file ends within a page, and what stood there is missing"
            ));
        }
        let mut lost_pages = self.catalog.lost_pages.iter();
        if missed.is_some() || !is_whole || lost_pages.any(|(catalog, _)| *catalog == relation.oid)
        {
            self.gaps.push(Gap { name, keys });
        }
        if !lost_rows.is_empty() {
            let mut lost = Table::new(names(), self.words, self.store);
            lost_rows.iter().for_each(|row| lost.push_named(row));
            self.lost.push((name, lost));
        }
        self.troubles.append(&mut lost);
        self.troubles.extend(missed);
        for key in keys {
            table.key(key);
        }
        Some(table)
    }

    /// A catalog has the same columns in every database.
    fn with_columns(&self, relation: &Relation) -> Relation {
        let mut relation = relation.clone();
        if relation.columns.is_none() {
            let database = self.catalog.database;
            let columns = self.cluster.columns_of_catalog(relation.oid, database);
            if let Some(columns) = columns {
                let layouts = columns.iter().map(|column| column.layout);
                relation.layouts = Some(layouts.collect());
                relation.columns = Some(columns);
            }
        }
        relation
    }

    fn files_of(&self, relation: &Relation) -> Option<&ForkFiles> {
        self.files.get(&(relation.tablespace, relation.filenode))
    }

    /// A relation whose file is missing.
    fn without_segments(&self, relation: &Relation) -> Option<ForkFiles> {
        let mut homes = self.cluster.homes.iter();
        let home = homes.find(|home| {
            home.database == self.catalog.database && home.tablespace == relation.tablespace
        })?;
        Some(ForkFiles {
            home: home.clone(),
            filenode: relation.filenode,
            fork: Fork::Main,
            temporary: None,
            segments: Vec::new(),
        })
    }

    /// What the indexes of the catalog name beyond its rows is asked where statements are made of
    /// them.
    fn each_row(
        &self,
        relation: &Relation,
        files: &ForkFiles,
        each: impl FnMut(RawRow<'_>),
    ) -> RowsRead {
        let layouts = relation.layouts.as_deref().unwrap_or_default();
        let mut scan = HeapScan::new(self.cluster, files, layouts);
        if self.room.text == CatalogText::None {
            scan.each_that_may_count(each);
            return RowsRead {
                missed: None,
                is_whole: scan.is_whole(),
                lost: Vec::new(),
            };
        }
        scan = scan.noting_places();
        scan.each_that_may_count(each);
        let indexes = self.catalog.relations.values().filter(|own| {
            let index = own.index.as_ref();
            let is_full = index.is_some_and(|index| {
                index.table == relation.oid && index.valid && !index.has_predicate
            });
            is_full && own.page_method() == Some(AccessMethod::Btree)
        });
        let missed = indexes.filter_map(|index| {
            let missed = scan.rows_missed_by(self.files_of(index)?);
            (missed > 0).then(|| (missed, index.name.clone()))
        });
        let name = &relation.name;
        let missed = missed.max().map(|(missed, index)| {
            format!(
                "{name}: {missed} of {index} {lead} to rows that are not there, and what these described is missing",
                missed = plural(missed, "entry"),
                lead = verb_of(missed, "lead")
            )
        });
        let is_whole = scan.is_whole();
        let lost = if missed.is_some() || !is_whole {
            scan.keys_of_lost_rows(relation.oid, &|index| self.files_of_index(index))
        } else {
            Vec::new()
        };
        RowsRead {
            missed,
            is_whole,
            lost,
        }
    }

    /// An index whose own row is lost has the number it was born with.
    fn files_of_index(&self, index: Oid) -> Option<&ForkFiles> {
        match self.catalog.relations.get(&index) {
            Some(relation) => self.files_of(relation),
            None => self.files.values().find(|files| files.filenode == index),
        }
    }
}
