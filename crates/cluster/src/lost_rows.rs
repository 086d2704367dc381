//! What a catalog takes from the witnesses of its lost rows while it is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pgclinic_format::Oid;
use pgclinic_format::datum::TypeKind;
use pgclinic_format::oid::{
    PG_ATTRDEF, PG_ATTRIBUTE, PG_CLASS, PG_CONSTRAINT, PG_ENUM, PG_PROC, PG_REWRITE, PG_TYPE,
};
use pgclinic_model::{plural, verb_of};

use crate::attached_columns::{is_gapless, sort_columns};
use crate::catalog::{Catalog, Reader};
use crate::cluster::Cluster;
use crate::columns::ColumnNames;
use crate::comparison::Comparison;
use crate::relation::{Column, Generated, Persistence, RelKind, Relation};
use crate::row_places::RowPlaces;
use crate::witness::{
    CATALOGS_WITH_TYPES, ClassWitness, ColumnTypes, Gap, KnownType, LostColumn, LostRelations,
    LostType, PagesLost, Relatives, base_of_domain, column_like, column_of_indexes, column_of_type,
    lost_columns, lost_labels, lost_relations, lost_types, owner_by_toast_name, rebuilt,
    settle_kind,
};

/// Stands for the schema of a relation where nothing tells it.
const UNKNOWN_SCHEMA: &str = "unknown_schema";

/// The rule that makes a view.
const RULE_OF_A_VIEW: &str = "_RETURN";
/// How a column stands in a stored expression.
const VAR: &str = "{VAR ";
/// Where the first OID of an `oidvector` stands, behind its length.
const FIRST_ELEMENT: usize = 20;

type Columns = BTreeMap<Oid, Vec<Column>>;

impl Reader<'_> {
    /// Asks the indexes of `pg_class` for rows that it lost, and puts what they name among the
    /// relations.
    pub(crate) fn find_lost_relations(
        &mut self,
        catalog: &mut Catalog,
        columns: &Columns,
        columns_are_whole: bool,
        places: &RowPlaces,
    ) {
        let class = ClassWitness {
            cluster: self.cluster,
            home: self.home,
            words: self.words,
            places,
            relations: &catalog.relations,
            columns,
            columns_are_whole,
            columns_are_live: self.unknown_rows == 0,
        };
        let found = lost_relations(&class);
        self.doubt_names(&found, places);
        catalog.names_unread = places.has_unread();
        for lost in found.relations {
            let own = lost.oid.and_then(|oid| columns.get(&oid));
            let relation = rebuilt(self.cluster, &lost, own.map(Vec::as_slice));
            catalog
                .relations
                .extend(relation.map(|relation| (relation.oid, relation)));
            catalog.lost_relations.push(lost);
        }
    }

    /// Of a cluster that was replayed in memory the indexes are those from before, and prove
    /// nothing by themselves.
    fn doubt_names(&mut self, found: &LostRelations, places: &RowPlaces) {
        if !self
            .cluster
            .may_compare(Comparison::CatalogEntriesWithPages)
        {
            return;
        }
        let (lost, entries) = (found.relations.len(), found.entries_without_page);
        if lost > 0 {
            let (rows, is_unread) = (plural(lost, "row"), places.has_unread());
            let why = if is_unread {
                format!("{rows} of it could not be read, as its indexes and pg_attribute tell")
            } else {
                let are = verb_of(lost, "are");
                format!("{rows} {are} lost, as its indexes and pg_attribute tell")
            };
            self.trouble("pg_class", why);
        } else if entries > 0 && self.cluster.catalog_entries_prove() {
            let why = format!(
                "{entries} of its indexes {lead} to pages that are lost",
                entries = plural(entries, "entry"),
                lead = verb_of(entries, "lead")
            );
            self.trouble("pg_class", why);
        }
        self.lose_pages(PG_CLASS, found.lost_pages.clone());
        let is_suspect = !places.is_sound() || places.has_zeroed();
        if is_suspect && !found.was_asked {
            let why =
                "it has bad pages, and its indexes cannot be asked for the rows that stood there";
            self.trouble("pg_class", why.into());
        }
    }

    /// Asks the indexes of `pg_attribute` for columns that it lost.
    pub(crate) fn find_lost_columns(
        &mut self,
        catalog: &mut Catalog,
        columns: &mut Columns,
        places: &RowPlaces,
    ) {
        let lost_rows = catalog.lost_relations.iter().filter_map(|lost| lost.oid);
        let lost_rows: BTreeSet<Oid> = lost_rows.collect();
        let mut gaps = BTreeMap::new();
        for relation in catalog.relations.values() {
            let known = columns.get(&relation.oid).map_or(&[][..], Vec::as_slice);
            let is_lost = lost_rows.contains(&relation.oid);
            let count = (!is_lost).then_some(relation.relnatts);
            if is_lost || is_gappy(known, relation.relnatts) {
                gaps.insert(relation.oid, Gap { known, count });
            }
        }
        if gaps.is_empty() && places.is_sound() && !places.has_zeroed() {
            return;
        }
        let without_columns = gaps.values().filter(|gap| gap.count.is_some()).count();
        let (lost, pages) = lost_columns(self.cluster, self.home, self.words, places, &gaps);
        // A server may have changed a table while its columns were read.
        if places.are_on_their_way() && pages.entries == 0 {
            return;
        }
        self.doubt_columns(without_columns, pages);
        catalog.lost_columns = lost;
        for oid in lost_rows {
            let last = catalog.lost_columns.get(&oid).and_then(|lost| lost.last());
            let relation = catalog.relations.get_mut(&oid);
            if let (Some(last), Some(relation)) = (last, relation) {
                relation.relnatts = if columns.contains_key(&oid) {
                    relation.relnatts.max(last.attnum)
                } else {
                    last.attnum
                };
            }
        }
    }

    fn doubt_columns(&mut self, relations: usize, pages: PagesLost) {
        if !self
            .cluster
            .may_compare(Comparison::CatalogEntriesWithPages)
        {
            return;
        }
        let entries = pages.entries;
        if relations > 0 {
            let why = format!(
                "it does not have all columns of {relations}",
                relations = plural(relations, "relation")
            );
            self.trouble("pg_attribute", why);
        } else if entries > 0 && self.cluster.catalog_entries_prove() {
            let why = format!(
                "{entries} of an index {lead} to pages that are lost",
                entries = plural(entries, "entry"),
                lead = verb_of(entries, "lead")
            );
            self.trouble("pg_attribute", why);
        }
        self.lose_pages(PG_ATTRIBUTE, pages.blocks);
    }

    /// A relation that only `pg_attribute` knows is called as its row type is.
    pub(crate) fn name_lost_by_type(&mut self, catalog: &mut Catalog) {
        self.take_names_of_types(catalog);
        self.find_lost_views(catalog);
        for oid in catalog.lost_relations.iter().filter_map(|lost| lost.oid) {
            let relation = catalog.relations.get_mut(&oid);
            if let Some(relation) = relation.filter(|relation| relation.schema.is_empty()) {
                relation.schema = UNKNOWN_SCHEMA.to_owned();
            }
        }
    }

    /// Gives lost columns the types that other catalogs have, one after the other until each has
    /// one.
    pub(crate) fn type_lost_columns(&mut self, catalog: &mut Catalog) {
        if catalog.lost_columns.is_empty() {
            return;
        }
        let indexes = indexes_by_table(&catalog.relations);
        type_each(catalog, |catalog, table, column| {
            column_of_indexes(table, column, &catalog.relations, &indexes)
        });
        let known = self.known_types(catalog);
        type_each(catalog, |catalog, table, column| {
            let known = known.get(&(table, column.attnum))?;
            let ty = catalog.type_info(known.oid);
            (ty.kind != TypeKind::Unknown).then(|| column_of_type(column, known, &ty))
        });
        let relatives = self.relatives(catalog);
        type_each(catalog, |catalog, table, column| {
            column_of_relatives(catalog, &relatives, table, column)
        });
        catalog
            .partial_columns
            .retain(|_, columns| !columns.is_empty());
        self.find_generated(catalog);
    }

    /// A catalog has the same columns in every database: those that another one still has.
    pub(crate) fn columns_of_sibling(&self, catalog: Oid) -> Option<ColumnNames> {
        let columns = self.cluster.columns_of_catalog(catalog, self.home.database);
        columns.map(|columns| ColumnNames::read(&columns))
    }

    /// Labels of enumerations by the indexes of `pg_enum`, bounds of ranges by the functions that
    /// make them.
    fn find_lost_makes(&mut self, catalog: &mut Catalog) {
        let bare = catalog.types.bare_types();
        let places = self.places.get(&PG_ENUM);
        if let Some(places) =
            places.filter(|own| !bare.is_empty() || !own.is_sound() || own.has_zeroed())
        {
            let known = |oid| catalog.types.has_label(oid);
            let lost = lost_labels(self.cluster, self.home, &catalog.relations, places, &known);
            catalog.types.add_labels(lost);
        }
        let Some(relation) = catalog.relations.get(&PG_PROC).filter(|_| !bare.is_empty()) else {
            return;
        };
        let mut makers: Vec<(i16, Oid, Oid)> = Vec::new();
        self.rows_of(relation, &mut |names, row| {
            let made = row.u32(names.index("prorettype"));
            let Some(made) = made.filter(|made| bare.contains(made)) else {
                return;
            };
            let count = row.i16(names.index("pronargs")).unwrap_or(0);
            let arguments = row.unpacked(names.index("proargtypes"));
            let first = arguments.and_then(|bytes| {
                let first = bytes.get(FIRST_ELEMENT..)?.first_chunk()?;
                Some(u32::from_le_bytes(*first))
            });
            makers.extend(first.map(|first| (count, made, first)));
        });
        // Ranges, of two bounds, come before the multiranges that are made of them.
        makers.sort_unstable_by_key(|maker| std::cmp::Reverse(maker.0));
        for (count, made, first) in makers {
            if matches!(count, 1 | 2) {
                catalog.types.add_range(made, first);
            }
        }
    }

    /// Asks the indexes of `pg_type` for types that it lost, and other catalogs for what they are
    /// made of. An array comes after its elements.
    pub(crate) fn find_lost_types(&mut self, catalog: &mut Catalog) {
        self.find_lost_makes(catalog);
        let Some(places) = self.places.get(&PG_TYPE) else {
            return;
        };
        let is_sound = places.is_sound() && !places.has_zeroed();
        if is_sound && !catalog.types.lacks_some(&catalog.relations) {
            return;
        }
        let has_row = |oid| catalog.types.has_row(oid);
        let lost = lost_types(self.cluster, self.home, self.words, places, &has_row);
        if lost.is_empty() {
            return;
        }
        if is_sound
            && self
                .cluster
                .may_compare(Comparison::CatalogEntriesWithPages)
        {
            let types = plural(lost.len(), "type");
            self.trouble(
                "pg_type",
                format!("it does not have {types} that its indexes name"),
            );
        }
        catalog.types.index_names();
        let bases = self.bases_of_domains(catalog);
        let mut open: Vec<&LostType> = lost.iter().collect();
        let mut relations: HashMap<(&str, &str), Oid> = HashMap::new();
        for relation in catalog.relations.values().filter(|own| has_row_type(own)) {
            relations.insert((&relation.schema, &relation.name), relation.oid);
        }
        for _ in 0..2 {
            open.retain(|lost| {
                let number = lost.namespace.to_string();
                let schema = self.schemas.get(&number).unwrap_or(&number);
                let relation = relations
                    .get(&(schema.as_str(), lost.name.as_str()))
                    .copied();
                let base = bases.get(&lost.oid).copied();
                !catalog.types.take_lost(lost, relation, base)
            });
        }
        catalog.lost_types = lost;
    }

    /// As far as they have checks.
    fn bases_of_domains(&mut self, catalog: &Catalog) -> HashMap<Oid, Oid> {
        let mut bases = HashMap::new();
        if let Some(relation) = catalog.relations.get(&PG_CONSTRAINT) {
            self.rows_of(relation, &mut |names, row| {
                let domain = row.u32(names.index("contypid")).filter(|oid| *oid != 0);
                let tree = domain.and_then(|_| row.unpacked(names.index("conbin")));
                let base = tree.and_then(|tree| base_of_domain(&tree));
                bases.extend(domain.zip(base));
            });
        }
        bases
    }

    fn known_types(&mut self, catalog: &Catalog) -> BTreeMap<(Oid, u16), KnownType> {
        let lost = catalog.lost_columns.iter();
        let untyped = lost.flat_map(|(table, columns)| {
            let untyped = columns.iter().filter(|column| column.type_by.is_none());
            untyped.map(|column| (*table, column.attnum))
        });
        let mut types = ColumnTypes::of(untyped.collect());
        for oid in CATALOGS_WITH_TYPES {
            let relation = catalog.relations.get(&oid);
            let Some(relation) = relation.filter(|_| !types.is_complete()) else {
                continue;
            };
            self.rows_of(relation, &mut |names, row| types.read_row(oid, names, &row));
        }
        types.known
    }

    fn relatives(&mut self, catalog: &Catalog) -> Relatives {
        let mut relatives = Relatives::default();
        let mut lost = catalog.lost_columns.values().flatten();
        let is_wanted = lost.any(|column| column.type_by.is_none());
        let relation = catalog.relations.get(&Relatives::CATALOG);
        if let Some(relation) = relation.filter(|_| is_wanted) {
            self.rows_of(relation, &mut |names, row| relatives.read_row(names, &row));
        }
        relatives
    }

    /// A lost relation with rows and a rule that makes a view is a materialised view.
    fn find_lost_views(&mut self, catalog: &mut Catalog) {
        let lost = catalog.lost_relations.iter().filter_map(|lost| lost.oid);
        let lost: BTreeSet<Oid> = lost.collect();
        let rules = catalog.relations.get(&PG_REWRITE).cloned();
        let Some(rules) = rules.filter(|_| !lost.is_empty()) else {
            return;
        };
        self.rows_of(&rules, &mut |names, row| {
            let name = row.name(names.index("rulename"));
            let view = row.u32(names.index("ev_class"));
            let view = view.filter(|oid| lost.contains(oid));
            let relation = view.and_then(|oid| catalog.relations.get_mut(&oid));
            if let (Some(relation), Some(RULE_OF_A_VIEW)) = (relation, name.as_deref())
                && relation.kind == RelKind::Table
            {
                relation.kind = RelKind::MaterializedView;
            }
        });
    }

    /// A lost column by whose expression in `pg_attrdef` others are read is a generated one: no
    /// default reads a column.
    fn find_generated(&mut self, catalog: &mut Catalog) {
        let Some(defaults) = catalog.relations.get(&PG_ATTRDEF).cloned() else {
            return;
        };
        let mut generated: BTreeSet<(Oid, u16)> = BTreeSet::new();
        self.rows_of(&defaults, &mut |names, row| {
            let table = row.u32(names.index("adrelid"));
            let number = row.i16(names.index("adnum"));
            let number = number.and_then(|number| u16::try_from(number).ok());
            let Some(column) = table.zip(number) else {
                return;
            };
            let lost = catalog.lost_columns.get(&column.0);
            let mut lost = lost.into_iter().flatten();
            if lost.any(|own| own.attnum == column.1) {
                let tree = row.unpacked(names.index("adbin"));
                let reads = tree.is_some_and(|tree| String::from_utf8_lossy(&tree).contains(VAR));
                generated.extend(reads.then_some(column));
            }
        });
        for (table, number) in generated {
            let relation = catalog.relations.get_mut(&table);
            let whole = relation.and_then(|relation| relation.columns.as_mut());
            let columns = whole.or_else(|| catalog.partial_columns.get_mut(&table));
            let mut columns = columns.into_iter().flatten();
            if let Some(column) = columns.find(|column| column.attnum == number) {
                column.generated = Generated::Stored;
            }
        }
    }

    fn take_names_of_types(&self, catalog: &mut Catalog) {
        let known = catalog.types.relations();
        let known: HashMap<Oid, (&str, Oid)> = known
            .map(|(relation, name, namespace)| (relation, (name, namespace)))
            .collect();
        let nameless = catalog.lost_relations.iter_mut();
        for lost in nameless.filter(|lost| lost.name.is_none()) {
            let Some(oid) = lost.oid else {
                continue;
            };
            let Some((name, namespace)) = known.get(&oid).copied() else {
                continue;
            };
            let number = namespace.to_string();
            let schema = self.schemas.get(&number).cloned().unwrap_or(number);
            lost.name = Some(name.to_owned());
            lost.schema = Some(schema.clone());
            if let Some(relation) = catalog.relations.get_mut(&oid) {
                relation.name = name.to_owned();
                relation.schema = schema;
            }
        }
    }
}

impl Cluster {
    /// The columns of a catalog, as some other database than this one still has them.
    pub fn columns_of_catalog(&self, catalog: Oid, database: Oid) -> Option<Vec<Column>> {
        let databases = self.databases.keys().copied();
        let mut homes = databases
            .filter(|other| *other != database)
            .filter_map(|other| self.catalog_home(other));
        homes.find_map(|home| {
            let pg_attribute = self.mapped_file(home, PG_ATTRIBUTE);
            let (mut columns, _) = Reader::of(self, home).read_columns(pg_attribute);
            let mut columns = columns.remove(&catalog)?;
            sort_columns(&mut columns);
            is_gapless(&columns).then_some(columns)
        })
    }
}

/// Indexes, sequences since 14 and TOAST relations have none; a sequence's is of no use.
fn has_row_type(relation: &Relation) -> bool {
    matches!(
        relation.kind,
        RelKind::Table
            | RelKind::MaterializedView
            | RelKind::PartitionedTable
            | RelKind::WithoutStorage
    )
}

/// A lost table has the TOAST relation that is named after it.
pub(crate) fn attach_toast_of_lost(catalog: &mut Catalog) {
    if catalog.lost_relations.is_empty() {
        return;
    }
    let toast = catalog.relations.values();
    let owned: Vec<(Oid, Oid)> = toast
        .filter(|relation| relation.kind == RelKind::Toast)
        .filter_map(|relation| Some((owner_by_toast_name(&relation.name)?, relation.oid)))
        .collect();
    for (owner, toast) in owned {
        let relation = catalog.relations.get_mut(&owner);
        if let Some(relation) = relation.filter(|relation| relation.toast == 0) {
            relation.toast = toast;
        }
    }
}

/// What can be said of lost rows only after columns and indexes were read: their kinds.
pub(crate) fn settle_lost(catalog: &mut Catalog) {
    for lost in catalog.lost_relations.iter().filter_map(|lost| lost.oid) {
        if let Some(relation) = catalog.relations.get_mut(&lost) {
            settle_kind(relation);
            let is_temporary = ["pg_temp_", "pg_toast_temp_"]
                .iter()
                .any(|schema| relation.schema.starts_with(schema));
            if is_temporary {
                relation.persistence = Persistence::Temporary;
            }
        }
    }
}

fn indexes_by_table(relations: &BTreeMap<Oid, Relation>) -> BTreeMap<Oid, Vec<Oid>> {
    let mut indexes: BTreeMap<Oid, Vec<Oid>> = BTreeMap::new();
    for relation in relations.values() {
        if let Some(index) = &relation.index {
            indexes.entry(index.table).or_default().push(relation.oid);
        }
    }
    indexes
}

/// Puts the columns of a table that were found beside those that `pg_attribute` still has.
fn take_found(catalog: &mut Catalog, table: Oid, found: Vec<Column>) {
    let own = catalog.partial_columns.entry(table).or_default();
    own.extend(found);
    sort_columns(own);
    let relation = catalog.relations.get_mut(&table);
    if let Some(relation) = relation.filter(|relation| is_whole(relation, own)) {
        relation.take_columns(std::mem::take(own));
    }
}

/// Asks for each lost column without a type, and keeps what was found.
fn type_each(
    catalog: &mut Catalog,
    mut find: impl FnMut(&Catalog, Oid, &LostColumn) -> Option<(Column, &'static str)>,
) {
    let mut lost = std::mem::take(&mut catalog.lost_columns);
    for (table, columns) in &mut lost {
        let mut found = Vec::new();
        for column in columns.iter_mut().filter(|column| column.type_by.is_none()) {
            let Some((described, by)) = find(catalog, *table, column) else {
                continue;
            };
            column.type_by = Some(by);
            found.push(described);
        }
        take_found(catalog, *table, found);
    }
    catalog.lost_columns = lost;
}

fn column_of_relatives(
    catalog: &Catalog,
    relatives: &Relatives,
    table: Oid,
    lost: &LostColumn,
) -> Option<(Column, &'static str)> {
    let name = lost.name.as_deref()?;
    relatives.of(table).find_map(|relative| {
        let relation = catalog.relations.get(&relative)?;
        let partial = || catalog.partial_columns.get(&relative);
        let mut columns = relation.columns.as_ref().or_else(partial)?.iter();
        let own = columns.find(|column| column.name == name && !column.dropped)?;
        Some((column_like(own, lost), "a relative by inheritance"))
    })
}

/// Some number up to the last one is missing; rows whose status is lost may be there twice.
fn is_gappy(known: &[Column], count: u16) -> bool {
    let has = |number: u16| known.iter().any(|column| column.attnum == number);
    known.len() != usize::from(count) && !(1..=count).all(has)
}

fn is_whole(relation: &Relation, columns: &[Column]) -> bool {
    is_gapless(columns) && columns.len() == usize::from(relation.relnatts)
}
