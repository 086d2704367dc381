//! One database's relations with names, columns, indexes and types, read from its catalogs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pgclinic_format::datum::TypeInfo;
use pgclinic_format::oid::{
    PG_AM, PG_ATTRIBUTE, PG_CLASS, PG_COLLATION, PG_DATABASE, PG_NAMESPACE, PG_SEQUENCE,
};
use pgclinic_format::{BlockNo, ColumnLayout, Fork, Oid};
use pgclinic_model::{plural, verb_of};

use pgclinic_source::Presence;

use crate::access_methods::{self, MethodRow, PG_AM_COLUMNS};
use crate::attached_columns::{attach_columns, attach_toast_owners, only_element};
use crate::catalog_encoding::CatalogEncoding;
use crate::catalog_places::{AttributePlaces, ClassPlaces};
use crate::cluster::Cluster;
use crate::collation::{Collation, DEFAULT_COLLATION};
use crate::columns::ColumnNames;
use crate::comparison::Comparison;
use crate::contradictions::{
    Contradiction, in_schemas_of_the_server, mend_columns, mend_relations,
};
use crate::error::ReadGap;
use crate::files::{DatabaseDirectory, ForkFiles};
use crate::heap_scan::{HeapScan, RawRow};
use crate::index::{Index, OpClass};
use crate::lost_rows::{attach_toast_of_lost, settle_lost};
use crate::relation::{Column, RelKind, Relation};
use crate::row_places::RowPlaces;
use crate::state::State;
use crate::types::TypeRows;
use crate::visibility::RowState;
use crate::witness::{
    LostColumn, LostRelation, LostType, PagesLost, Rowless, index_of_rows, pages_lost, schema_names,
};

/// `SelfItemPointerAttributeNumber`: every table has it.
const CTID: i16 = -1;

/// How the words begin that say of some pages that their checksums are wrong.
const DENIED: &str = "checksums do not match";

/// How much of a catalog is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Relations by name, kind and file.
    Names,
    /// Columns, indexes and types too.
    Columns,
}

/// The bounds of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceBounds {
    /// `seqmin`.
    pub min: i64,
    /// `seqmax`.
    pub max: i64,
}

/// A database's relations. What could not be read stands in `troubles`.
pub struct Catalog {
    /// OID of the database; 0 for the shared relations alone.
    pub database: Oid,
    /// Name of the database.
    pub database_name: Option<String>,
    /// Its encoding, as `pg_database` numbers it.
    pub encoding: Option<i32>,
    /// Relations by OID.
    pub relations: BTreeMap<Oid, Relation>,
    /// What could not be read.
    pub troubles: Vec<ReadGap>,
    /// Rows that say what no server writes; what they must have said was put in its place.
    pub contradictions: Vec<Contradiction>,
    /// Some access method of the database makes encrypted relations.
    pub encrypts: bool,
    /// Relations whose rows in `pg_class` are lost, as other witnesses name them. Those with an OID
    /// stand among the relations too, rebuilt as far as evidence goes. While a server runs, only
    /// pages that are lost bring some, and none before its WAL was applied.
    pub lost_relations: Vec<LostRelation>,
    /// Pages of catalogs to which entries of their indexes lead and which are lost, by the OID of
    /// the catalog. Beside a running server they count where two looks find the same.
    pub lost_pages: BTreeSet<(Oid, BlockNo)>,
    /// Pages of `pg_class` could not be read: a name that is missing proves nothing.
    pub names_unread: bool,
    /// Columns whose rows in `pg_attribute` are lost, by relation, as its indexes name them.
    pub lost_columns: BTreeMap<Oid, Vec<LostColumn>>,
    /// What `pg_attribute` has of relations of which it does not have all columns.
    pub partial_columns: BTreeMap<Oid, Vec<Column>>,
    /// Types whose rows in `pg_type` are lost, as its indexes name them.
    pub lost_types: Vec<LostType>,
    by_file: HashMap<(Oid, Oid), Oid>,
    collations: BTreeMap<Oid, Collation>,
    sequences: BTreeMap<Oid, SequenceBounds>,
    /// Operator classes by OID.
    pub(crate) classes: HashMap<Oid, OpClass>,
    pub(crate) types: TypeRows,
}

impl Cluster {
    /// Relations, columns and types of a database, or of `0`, the shared ones.
    pub fn catalog(&self, database: Oid) -> Catalog {
        Catalog::read(self, database, Depth::Columns)
    }

    /// Relations of a database by name, kind and file, without columns: quicker.
    pub fn catalog_names(&self, database: Oid) -> Catalog {
        Catalog::read(self, database, Depth::Names)
    }
}

impl Catalog {
    /// The type with this OID: from the catalogs, else built in, else of unknown make.
    pub fn type_info(&self, oid: Oid) -> Arc<TypeInfo> {
        self.types.info(oid, &self.relations)
    }

    /// The relation whose files have this number in this tablespace.
    pub fn by_file(&self, tablespace: Oid, filenode: Oid) -> Option<&Relation> {
        self.relations
            .get(self.by_file.get(&(tablespace, filenode))?)
    }

    /// The table whose long values a TOAST relation holds, or the relation of this index.
    pub fn toast_owner(&self, relation: &Relation) -> Option<&Relation> {
        let toast = match &relation.index {
            Some(index) => self.relations.get(&index.table)?,
            None => relation,
        };
        self.relations.get(&toast.toast_of)
    }

    /// The relation of this schema and name.
    pub fn by_name(&self, schema: &str, name: &str) -> Option<&Relation> {
        self.relations
            .values()
            .find(|relation| relation.schema == schema && relation.name == name)
    }

    /// The collation with this OID; 100 is the database's own.
    pub fn collation(&self, oid: Oid) -> Option<&Collation> {
        self.collations.get(&oid)
    }

    /// What `pg_sequence` says of a sequence.
    pub fn sequence(&self, oid: Oid) -> Option<SequenceBounds> {
        self.sequences.get(&oid).copied()
    }

    /// `pg_class` was read whole, and every entry of its indexes that was asked for met its row: a
    /// file that no relation names is nobody's.
    pub fn names_are_complete(&self) -> bool {
        // A page whose rows are read and met by the indexes names them, though its checksum is
        // wrong.
        let of_names = |trouble: &ReadGap| {
            trouble.what.starts_with("catalog pg_class ") && !trouble.why.starts_with(DENIED)
        };
        !self.is_blind() && !self.troubles.iter().any(of_names)
    }

    /// No relation could be read: names and columns are unknown.
    pub fn is_blind(&self) -> bool {
        self.relations.is_empty()
    }

    pub(crate) fn read(cluster: &Cluster, database: Oid, depth: Depth) -> Catalog {
        let known = cluster.databases.get(&database);
        let mut catalog = Catalog {
            database,
            database_name: known.and_then(|database| database.name.clone()),
            encoding: known.and_then(|database| database.encoding),
            relations: BTreeMap::new(),
            troubles: Vec::new(),
            contradictions: Vec::new(),
            encrypts: false,
            lost_relations: Vec::new(),
            lost_pages: BTreeSet::new(),
            names_unread: false,
            lost_columns: BTreeMap::new(),
            partial_columns: BTreeMap::new(),
            lost_types: Vec::new(),
            by_file: HashMap::new(),
            collations: BTreeMap::new(),
            sequences: BTreeMap::new(),
            classes: HashMap::new(),
            types: TypeRows::default(),
        };
        let Some(home) = readable_home(cluster, database) else {
            if !is_on_its_way(cluster, database) {
                let why = why_without_home(cluster, database);
                let what = format!("catalogs of database {database}");
                catalog.troubles.push(ReadGap::new(what, why));
            }
            return catalog;
        };
        let mut reader = Reader::of(cluster, &home);
        reader.read_into(&mut catalog, depth);
        catalog.troubles.append(&mut reader.troubles);
        catalog.lost_pages.append(&mut reader.lost_pages);
        if database == 0 {
            catalog.relations.retain(|_, relation| relation.shared);
        } else {
            catalog.relations.retain(|_, relation| !relation.shared);
        }
        let files = catalog
            .relations
            .values()
            .filter(|relation| relation.filenode != 0);
        catalog.by_file = files
            .map(|relation| ((relation.tablespace, relation.filenode), relation.oid))
            .collect();
        catalog
    }
}

/// Shared relations are described in every database: the first one whose catalogs are there.
fn readable_home(cluster: &Cluster, database: Oid) -> Option<DatabaseDirectory> {
    if database != 0 {
        return cluster.catalog_home(database).cloned();
    }
    let databases = cluster.databases.keys().copied();
    databases
        .filter_map(|oid| cluster.catalog_home(oid))
        .find(|home| {
            let filenode = cluster.mapped_file(home, PG_CLASS);
            !cluster
                .fork_files(home, filenode, Fork::Main)
                .segments
                .is_empty()
        })
        .cloned()
}

/// Its directory is missing from files that passed by, and the server has it or dropped it.
fn is_on_its_way(cluster: &Cluster, database: Oid) -> bool {
    match cluster.state() {
        State::Streamed(files) => files.passed_on_its_way(database),
        _ => false,
    }
}

/// Why a database has no directory with catalogs: what stands in its place was told when the
/// directories were listed.
fn why_without_home(cluster: &Cluster, database: Oid) -> String {
    let end = format!("/{database}");
    let mut troubles = cluster.troubles.iter();
    let own = troubles.find(|trouble| {
        let is_directory = trouble.what == "base" || trouble.what.ends_with(&end);
        is_directory && database != 0
    });
    own.map_or_else(
        || "their directory is missing".into(),
        |trouble| trouble.why.clone(),
    )
}

/// Of a catalog's file.
const ENDS_WITHIN_A_PAGE: &str = "its file ends within a page";

/// What `pg_class` holds.
struct ReadRelations {
    relations: BTreeMap<Oid, Relation>,
    contradictions: Vec<Contradiction>,
    places: Option<RowPlaces>,
}

pub(crate) struct Reader<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) home: &'a DatabaseDirectory,
    pub(crate) words: CatalogEncoding,
    troubles: Vec<ReadGap>,
    /// What `pg_attribute` and `pg_index` have of relations without a row in `pg_class`.
    pub(crate) rowless: Rowless,
    /// Names of schemas, by their OIDs as text.
    pub(crate) schemas: HashMap<String, String>,
    /// Rows that were taken as live because nobody knows what became of their transactions.
    pub(crate) unknown_rows: u64,
    /// Where the rows of catalogs stand that were read by their own columns.
    pub(crate) places: BTreeMap<Oid, RowPlaces>,
    lost_pages: BTreeSet<(Oid, BlockNo)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn of(cluster: &'a Cluster, home: &'a DatabaseDirectory) -> Self {
        Reader {
            cluster,
            home,
            words: cluster.words(home.database),
            troubles: Vec::new(),
            rowless: Rowless::default(),
            schemas: HashMap::new(),
            unknown_rows: 0,
            places: BTreeMap::new(),
            lost_pages: BTreeSet::new(),
        }
    }

    fn read_into(&mut self, catalog: &mut Catalog, depth: Depth) {
        let pg_class = self.cluster.mapped_file(self.home, PG_CLASS);
        let read = self.read_relations(pg_class);
        let class_places = read.places;
        (catalog.relations, catalog.contradictions) = (read.relations, read.contradictions);
        let mended = mend_relations(self.cluster, self.home, &mut catalog.relations);
        catalog.contradictions.extend(mended);
        self.doubt_what_does_not_name_itself(&catalog.relations);
        let (mut columns, attribute_places) = match depth {
            Depth::Names => (BTreeMap::new(), None),
            Depth::Columns => {
                let pg_attribute = self.cluster.mapped_file(self.home, PG_ATTRIBUTE);
                self.read_columns(pg_attribute)
            }
        };
        catalog.contradictions.extend(mend_columns(&mut columns));
        self.doubt_contradictions(&catalog.contradictions);
        if let Some(places) = class_places {
            let is_whole = |places: &RowPlaces| places.is_sound() && !places.has_zeroed();
            let columns_are_whole = attribute_places.as_ref().is_some_and(is_whole);
            self.find_lost_relations(catalog, &columns, columns_are_whole, &places);
        }
        if let Some(places) = &attribute_places {
            self.find_lost_columns(catalog, &mut columns, places);
        }
        self.rowless.keep_columns(&catalog.relations, &columns);
        self.resolve_mapped(&mut catalog.relations);
        self.name_schemas(catalog);
        let misplaced: Vec<_> = in_schemas_of_the_server(&catalog.relations).collect();
        self.doubt_contradictions(&misplaced);
        catalog.contradictions.extend(misplaced);
        attach_toast_of_lost(catalog);
        attach_toast_owners(&mut catalog.relations);
        catalog.encrypts = self.read_access_methods(&mut catalog.relations);
        if depth == Depth::Names {
            if self.cluster.needs_recovery() {
                self.mark_indexes_being_built(&mut catalog.relations);
            }
            return;
        }
        catalog.partial_columns = attach_columns(&mut catalog.relations, columns);
        self.attach_missing_values(&mut catalog.relations);
        catalog.classes = self.read_classes(&catalog.relations);
        self.attach_indexes(&mut catalog.relations, &catalog.classes);
        for relation in catalog.relations.values_mut() {
            let is_finished = |index: &Index| index.valid && index.ready;
            relation.being_built = relation.kind == RelKind::Index
                && !relation.index.as_ref().is_some_and(is_finished);
        }
        settle_lost(catalog);
        catalog.collations = self.read_collations(&catalog.relations, catalog.database);
        catalog.sequences = self.read_sequences(&catalog.relations);
        catalog.types = TypeRows::read(&catalog.relations, |relation, each| {
            self.rows_of(relation, each)
        });
        self.find_mentioned_relations(catalog, attribute_places.as_ref());
        self.find_lost_types(catalog);
        self.type_lost_columns(catalog);
        self.name_lost_by_type(catalog);
        self.doubt_lost_pages(&catalog.relations);
    }

    /// All live rows of a file, with what went wrong told under `name`; and where they stand.
    pub(crate) fn rows(
        &mut self,
        name: &str,
        filenode: Oid,
        columns: &[ColumnLayout],
        each: impl FnMut(RawRow<'_>),
    ) -> Option<RowPlaces> {
        let files = self.cluster.fork_files(self.home, filenode, Fork::Main);
        self.rows_in(name, &files, columns, each)
    }

    fn rows_in(
        &mut self,
        name: &str,
        files: &ForkFiles,
        columns: &[ColumnLayout],
        mut each: impl FnMut(RawRow<'_>),
    ) -> Option<RowPlaces> {
        let cluster = self.cluster;
        let mut is_unread = false;
        if files.segments.is_empty() {
            let path = files.path(0);
            let why = match Presence::of_file(cluster.source.as_ref(), &path) {
                Presence::Unreadable(error) => {
                    is_unread = true;
                    error.to_string()
                }
                Presence::Missing | Presence::There(_) => format!("its file {path} is missing"),
            };
            self.trouble(name, why);
        }
        let words = match files.home.database {
            0 => self.words.shared(),
            _ => self.words,
        };
        let mut rows = HeapScan::new(cluster, files, columns);
        rows = rows.in_words(words).noting_places();
        let mut unknown = 0u64;
        rows.each_that_may_count(|row| {
            unknown += u64::from(matches!(row.state, RowState::Undecided(_)));
            each(row);
        });
        let (unreadable, broken) = (rows.unreadable.len(), rows.broken_rows);
        let mut places = rows.places();
        if let Some(places) = places.as_mut().filter(|_| is_unread) {
            places.unread(0);
        }
        let denied = places.as_ref().map_or(0, RowPlaces::denied_pages);
        let denied = if cluster.may_compare(Comparison::CatalogsWithIndexes) {
            denied
        } else {
            0
        };
        if cluster.may_compare(Comparison::CatalogsWithIndexes) && cluster.is_cut(files) {
            self.trouble(name, ENDS_WITHIN_A_PAGE.into());
        }
        if unreadable > 0 || broken > 0 {
            self.trouble(
                name,
                format!(
                    "{unreadable} and {broken} rows cannot be read",
                    unreadable = plural(unreadable, "page")
                ),
            );
        }
        if denied > 0 {
            self.trouble(name, format!("{DENIED} on {}", plural(denied, "page")));
        }
        self.unknown_rows += unknown;
        if unknown > 0 {
            self.trouble(
                name,
                format!(
                    "the status of {unknown} is lost; they were taken as live",
                    unknown = plural(unknown, "row")
                ),
            );
        }
        places
    }

    /// All live rows of a catalog whose columns are known from `pg_attribute`.
    pub(crate) fn rows_of(
        &mut self,
        relation: &Relation,
        each: &mut dyn FnMut(&ColumnNames, RawRow<'_>),
    ) {
        let built_in = || self.cluster.layout.catalog(relation.oid);
        let names = match &relation.columns {
            Some(columns) => Some(ColumnNames::read(columns)),
            None => built_in()
                .map(ColumnNames::built_in)
                .or_else(|| self.columns_of_sibling(relation.oid)),
        };
        let Some(names) = names else {
            self.trouble(&relation.name, "its columns are unknown".into());
            return;
        };
        let home = if relation.shared {
            &DatabaseDirectory::global()
        } else {
            self.home
        };
        let files = self.cluster.fork_files(home, relation.filenode, Fork::Main);
        let places = self.rows_in(&relation.name, &files, &names.layouts, |row| {
            each(&names, row)
        });
        self.places
            .extend(places.map(|places| (relation.oid, places)));
    }

    /// Says where entries of its indexes lead to pages of a catalog that are lost. A cluster that
    /// was replayed in memory has the indexes from before, which may name what VACUUM removed
    /// since.
    fn doubt_lost_pages(&mut self, relations: &BTreeMap<Oid, Relation>) {
        let read = std::mem::take(&mut self.places);
        if !self.cluster.catalog_entries_prove() {
            return;
        }
        for (catalog, places) in read {
            let name = relations.get(&catalog).map(|relation| &relation.name);
            let index = index_of_rows(catalog).and_then(|index| relations.get(&index));
            let lost = index.map_or_else(PagesLost::default, |index| {
                pages_lost(self.cluster, self.home, index, &places)
            });
            if let (Some(name), true) = (name, lost.entries > 0) {
                let entries = lost.entries;
                let why = format!(
                    "{entries} of an index {lead} to pages that are lost",
                    entries = plural(entries, "entry"),
                    lead = verb_of(entries, "lead")
                );
                self.trouble(name, why);
                self.lose_pages(catalog, lost.blocks);
            }
        }
    }

    /// Keeps which pages of a catalog are lost.
    pub(crate) fn lose_pages(&mut self, catalog: Oid, blocks: BTreeSet<BlockNo>) {
        if self.cluster.catalog_entries_prove() {
            let pages = blocks.into_iter().map(|block| (catalog, block));
            self.lost_pages.extend(pages);
        }
    }

    /// How many there are.
    pub(crate) fn troubles(&self) -> usize {
        self.troubles.len()
    }

    pub(crate) fn trouble(&mut self, name: &str, why: String) {
        let database = self.home.database;
        self.troubles.push(ReadGap::new(
            format!("catalog {name} of database {database}"),
            why,
        ));
    }

    fn read_relations(&mut self, filenode: Oid) -> ReadRelations {
        let names = ColumnNames::built_in(self.cluster.layout.pg_class);
        let place = ClassPlaces::new(&names);
        let default_tablespace = self.home.tablespace;
        let (mut relations, mut contradictions) = (BTreeMap::new(), Vec::new());
        let places = self.rows("pg_class", filenode, &names.layouts, |row| {
            if let Some(relation) = place.relation(&row, default_tablespace) {
                contradictions.extend(place.unknown_letters(&row, &relation));
                relations.insert(relation.oid, relation);
            }
        });
        ReadRelations {
            relations,
            contradictions,
            places,
        }
    }

    /// What a row says that cannot be may be wrong in more than is known.
    fn doubt_contradictions(&mut self, contradictions: &[Contradiction]) {
        let database = self.home.database;
        let gaps = contradictions.iter().map(|own| {
            let what = format!(
                "row of {} (OID {}) in {} of database {database}",
                own.name, own.relation, own.catalog
            );
            ReadGap::new(what, own.what.clone())
        });
        self.troubles.extend(gaps);
    }

    /// `pg_class` names itself and the catalogs that are needed to read it; one that does not is
    /// not whole, however well its pages look.
    fn doubt_what_does_not_name_itself(&mut self, relations: &BTreeMap<Oid, Relation>) {
        let lost = [PG_CLASS, PG_ATTRIBUTE, PG_NAMESPACE]
            .into_iter()
            .filter(|oid| !relations.contains_key(oid))
            .count();
        if lost > 0 {
            self.trouble(
                "pg_class",
                format!("it does not name {lost} of the catalogs that every database has"),
            );
        }
    }

    fn resolve_mapped(&mut self, relations: &mut BTreeMap<Oid, Relation>) {
        let cluster = self.cluster;
        let maps = [
            cluster.relation_map(self.home),
            cluster.relation_map(&DatabaseDirectory::global()),
        ];
        let [local, shared] = maps.map(|map| map.ok().filter(|map| map.is_right()));
        for relation in relations.values_mut() {
            if relation.filenode == 0 && relation.kind.has_storage() {
                let map = if relation.shared { &shared } else { &local };
                let mapped = map.as_ref().and_then(|map| map.filenode(relation.oid));
                relation.filenode = mapped.unwrap_or(relation.oid);
            }
        }
    }

    pub(crate) fn read_columns(
        &mut self,
        filenode: Oid,
    ) -> (BTreeMap<Oid, Vec<Column>>, Option<RowPlaces>) {
        let names = ColumnNames::built_in(self.cluster.layout.pg_attribute);
        let place = AttributePlaces::new(&names);
        let mut columns: BTreeMap<Oid, Vec<Column>> = BTreeMap::new();
        let places = self.rows("pg_attribute", filenode, &names.layouts, |row| {
            if let Some((relation, column)) = place.column(&row) {
                columns.entry(relation).or_default().push(column);
            } else if let (Some(relation), Some(CTID)) =
                (row.u32(place.relation), row.i16(place.number))
            {
                // A table without columns is known by its system columns.
                columns.entry(relation).or_default();
            }
        });
        (columns, places)
    }

    /// Values of columns that were added with a default, for rows from before. `attmissingval` is
    /// an array of one element, read only where some column has one.
    fn attach_missing_values(&mut self, relations: &mut BTreeMap<Oid, Relation>) {
        let has_some = |relation: &Relation| {
            let columns = relation.columns.iter().flatten();
            columns.into_iter().any(|column| column.has_missing)
        };
        if !relations.values().any(has_some) {
            return;
        }
        let Some(pg_attribute) = relations.get(&PG_ATTRIBUTE).cloned() else {
            return;
        };
        self.rows_of(&pg_attribute, &mut |names, row| {
            let (Some(oid), Some(number)) = (
                row.u32(names.index("attrelid")),
                row.i16(names.index("attnum")),
            ) else {
                return;
            };
            let columns = relations
                .get_mut(&oid)
                .and_then(|relation| relation.columns.as_mut());
            let index = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
            let column = columns
                .zip(index)
                .and_then(|(columns, index)| columns.get_mut(index));
            if let Some(column) = column.filter(|column| column.has_missing) {
                let array = row.unpacked(names.index("attmissingval"));
                column.missing = array.and_then(|array| only_element(&array, column.layout.attlen));
            }
        });
    }

    fn name_schemas(&mut self, catalog: &mut Catalog) {
        let relations = &mut catalog.relations;
        let mut schemas: HashMap<String, String> = HashMap::new();
        let names = ColumnNames::built_in(self.cluster.layout.pg_namespace);
        let filenode = relations
            .get(&PG_NAMESPACE)
            .map_or(PG_NAMESPACE, |relation| relation.filenode);
        let (oid, name) = (names.index("oid"), names.index("nspname"));
        let places = self.rows("pg_namespace", filenode, &names.layouts, |row| {
            if let (Some(oid), Some(name)) = (row.u32(oid), row.name(name)) {
                schemas.insert(oid.to_string(), name);
            }
        });
        self.places
            .extend(places.map(|places| (PG_NAMESPACE, places)));
        let is_nameless = |relation: &Relation| {
            !relation.schema.is_empty() && !schemas.contains_key(&relation.schema)
        };
        let may_compare = |what| self.cluster.may_compare(what);
        let proves = may_compare(Comparison::CatalogEntriesWithPages);
        if relations.values().any(is_nameless) && (proves || !self.cluster.is_running()) {
            let lost = schema_names(self.cluster, self.home, self.words, relations);
            if proves && !lost.is_empty() {
                let why = format!("{} schemas are named by its indexes alone", lost.len());
                self.trouble("pg_namespace", why);
            }
            for (oid, name) in lost {
                schemas.entry(oid.to_string()).or_insert(name);
            }
        }
        let mut nameless = BTreeSet::new();
        for relation in relations.values_mut() {
            match schemas.get(&relation.schema) {
                Some(name) => relation.schema.clone_from(name),
                // The type of a lost relation may still tell its schema.
                None if relation.schema.is_empty() => {}
                None => drop(nameless.insert(relation.schema.clone())),
            }
        }
        for lost in &mut catalog.lost_relations {
            let name = lost.schema.as_ref().and_then(|oid| schemas.get(oid));
            lost.schema = name.cloned().or(lost.schema.take());
        }
        for schema in nameless {
            self.trouble("pg_namespace", format!("schema {schema} has no name"));
        }
        self.schemas = schemas;
    }

    /// Names access methods, finds what belongs to tables of those that are not known here, and
    /// says whether some encrypt.
    fn read_access_methods(&mut self, relations: &mut BTreeMap<Oid, Relation>) -> bool {
        let Some(filenode) = relations.get(&PG_AM).map(|own| own.filenode) else {
            return false;
        };
        let names = ColumnNames::built_in(&PG_AM_COLUMNS);
        let (oid, name) = (names.index("oid"), names.index("amname"));
        let handler = names.index("amhandler");
        let mut methods = HashMap::new();
        self.rows("pg_am", filenode, &names.layouts, |row| {
            if let (Some(oid), Some(name), Some(handler)) =
                (row.u32(oid), row.name(name), row.u32(handler))
            {
                methods.insert(oid, MethodRow { name, handler });
            }
        });
        self.name_methods(relations, &methods);
        if relations
            .values()
            .any(|relation| relation.unknown_storage().is_some())
        {
            let tables = self.tables_of_indexes(relations);
            access_methods::spread(relations, &tables);
        }
        access_methods::encrypts(&methods)
    }

    fn read_sequences(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
    ) -> BTreeMap<Oid, SequenceBounds> {
        let mut sequences = BTreeMap::new();
        if let Some(relation) = relations.get(&PG_SEQUENCE) {
            self.rows_of(relation, &mut |names, row| {
                let [oid, min, max] =
                    ["seqrelid", "seqmin", "seqmax"].map(|name| names.index(name));
                if let (Some(oid), Some(min), Some(max)) =
                    (row.u32(oid), row.i64(min), row.i64(max))
                {
                    sequences.insert(oid, SequenceBounds { min, max });
                }
            });
        }
        sequences
    }

    fn read_collations(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
        database: Oid,
    ) -> BTreeMap<Oid, Collation> {
        let mut collations = BTreeMap::new();
        if let Some(relation) = relations.get(&PG_COLLATION) {
            self.rows_of(relation, &mut |names, row| {
                let collation = Collation::of_row(names, &row);
                collations.extend(collation.map(|collation| (collation.oid, collation)));
            });
        }
        let Some(relation) = relations.get(&PG_DATABASE) else {
            return collations;
        };
        self.rows_of(relation, &mut |names, row| {
            if row.u32(names.index("oid")) == Some(database)
                && let Some(own) = Collation::of_database(names, &row)
            {
                collations.insert(DEFAULT_COLLATION, own);
            }
        });
        collations
    }
}
