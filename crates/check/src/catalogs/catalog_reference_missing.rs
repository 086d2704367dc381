//! A row of a catalog refers to a row that is not there.
//!
//! Truth: `src/include/catalog/*.h`; what is looked up stands in `catalog_references`.

use std::collections::HashMap;

use pgclinic_cluster::{DatabaseContext, RawRow, RowState};
use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_CLASS, PG_LARGEOBJECT, PG_LARGEOBJECT_METADATA, PG_SUBSCRIPTION};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::catalogs::oid_set::OidSet;
use crate::catalogs::references::{ATTRIBUTE_REFERENCES, OBJECT_REFERENCES, REFERENCES, Shape};
use crate::catalogs::rows::{CatalogTable, CatalogTables, Shared, catalogs_are_comparable};
use crate::check::DatabaseCheck;
use crate::findings::Findings;

/// The rule.
pub static CATALOG_REFERENCE_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/catalog-reference-missing.md"));

/// See [`CATALOG_REFERENCE_MISSING`].
pub struct CatalogReferenceMissing;

/// Findings told of one catalog; a catalog that was lost as a whole is not told row by row.
const TOLD_MAX: usize = 5000;
/// System columns have the numbers from -1 down to this.
const ATTRIBUTE_MIN: i32 = -7;
/// Catalogs whose leftovers hurt nobody.
const HARMLESS: [&str; 7] = [
    "pg_description",
    "pg_shdescription",
    "pg_seclabel",
    "pg_shseclabel",
    "pg_init_privs",
    "pg_statistic",
    "pg_statistic_ext_data",
];

impl DatabaseCheck for CatalogReferenceMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CATALOG_REFERENCE_MISSING] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        if !catalogs_are_comparable(database, out) {
            return;
        }
        let shared = Shared::read(database);
        let tables = CatalogTables::new(database, shared.as_ref());
        let mut lookup = Lookup {
            database,
            tables: &tables,
            targets: HashMap::new(),
        };
        for table in tables.own() {
            lookup.rows_of(table, out);
        }
        // What objects of this database owe to roles and tablespaces stands in a shared catalog.
        let shdepend = tables.oid_of("pg_shdepend").filter(|_| shared.is_some());
        if let Some(table) = shdepend.and_then(|oid| tables.table(oid)) {
            lookup.rows_of(table, out);
        }
        for (name, known) in &lookup.targets {
            if let ReferencedOids::Unknown = known {
                let name = tables.table(*name).map_or("a catalog", CatalogTable::name);
                let why = "not all of its rows can be read";
                tables.not_checked(out, &format!("references to {name}"), why);
            }
        }
    }
}

/// The OIDs of a catalog that is referred to.
enum ReferencedOids {
    Whole(OidSet),
    /// Some rows cannot be read, so nothing is missing for sure.
    Unknown,
}

struct Lookup<'a, 'b> {
    database: &'b DatabaseContext<'a>,
    tables: &'b CatalogTables<'a>,
    targets: HashMap<Oid, ReferencedOids>,
}

/// What is looked up of the rows of one catalog.
#[derive(Default)]
struct Columns {
    oids: Vec<(usize, Oid, Shape)>,
    attributes: Vec<(usize, usize)>,
    objects: Vec<ObjectColumns>,
    /// `pg_shdepend.dbid`.
    database: Option<usize>,
    /// `deptype`.
    kind: Option<usize>,
}

#[derive(Clone, Copy)]
struct ObjectColumns {
    class: usize,
    object: usize,
    part: Option<usize>,
    /// The end that belongs to one database.
    local: bool,
}

/// A reference that leads nowhere.
struct Dangling {
    column: usize,
    value: i64,
    target: Option<Oid>,
    words: String,
}

impl<'a> Lookup<'a, '_> {
    fn columns(&self, table: &CatalogTable<'_>) -> Columns {
        let name = table.name();
        let major = self.database.cluster.layout.major;
        let own_shared = table.relation.shared == (self.database.catalog.database == 0);
        let mut columns = Columns {
            database: table.column("dbid").filter(|_| name == "pg_shdepend"),
            kind: table.column("deptype"),
            ..Columns::default()
        };
        for (catalog, column, target, shape) in REFERENCES {
            let known = table.column(column).zip(self.tables.oid_of(target));
            if let Some((index, target)) =
                known.filter(|_| *catalog == name && own_shared && shape.since <= major)
            {
                columns.oids.push((index, target, *shape));
            }
        }
        for (catalog, relation, numbers) in ATTRIBUTE_REFERENCES {
            let known = table.column(relation).zip(table.column(numbers));
            columns
                .attributes
                .extend(known.filter(|_| *catalog == name));
        }
        for (catalog, class, object, part) in OBJECT_REFERENCES {
            let known = table.column(class).zip(table.column(object));
            if let Some((class_index, object)) = known.filter(|_| *catalog == name) {
                columns.objects.push(ObjectColumns {
                    class: class_index,
                    object,
                    part: part.and_then(|part| table.column(part)),
                    local: *class == "classid",
                });
            }
        }
        columns
    }

    fn rows_of(&mut self, table: &CatalogTable<'a>, out: &mut Findings) {
        let columns = self.columns(table);
        if columns.oids.is_empty() && columns.attributes.is_empty() && columns.objects.is_empty() {
            return;
        }
        let harmless = HARMLESS.contains(&table.name());
        let mut told = 0;
        let tables = self.tables;
        tables.each_row(table, |row| {
            // A row whose transaction nobody knows may be no row at all.
            if row.state != RowState::Visible || told >= TOLD_MAX {
                return;
            }
            for dangling in self.dangling(row, &columns) {
                told += 1;
                let name = table.columns.get(dangling.column);
                let name = name.map_or("", |column| column.name.as_str());
                let words = format!("{name} {} {}", dangling.value, dangling.words);
                let place = (row.block, row.item);
                let mut draft = tables.draft(&CATALOG_REFERENCE_MISSING, table, place, words);
                draft = draft
                    .fact("column", name)
                    .fact("value", dangling.value)
                    .attribute(u16::try_from(dangling.column + 1).unwrap_or(u16::MAX));
                if let Some(oid) = table.column("oid").and_then(|index| row.u32(index)) {
                    draft = draft.fact("row_oid", oid);
                }
                // `DROP SUBSCRIPTION` leaves the comment on what it drops behind
                // (`subscriptioncmds.c`).
                if harmless && dangling.target == Some(PG_SUBSCRIPTION) {
                    draft = draft.severity(Severity::Note);
                } else if harmless {
                    draft = draft.severity(Severity::Warning);
                }
                if let Some(target) = dangling.target {
                    draft = tables.explained_by(draft, target);
                    if let Some(target) = tables.table(target) {
                        draft = draft.fact("target", target.name());
                    }
                }
                out.add(draft);
            }
        });
    }

    fn dangling(&mut self, row: &RawRow<'_>, columns: &Columns) -> Vec<Dangling> {
        let mut found = Vec::new();
        for (column, target, shape) in &columns.oids {
            for oid in oids(row, *column, *shape) {
                let none = oid == 0 && shape.optional;
                if !none && self.is_there(*target, oid) == Some(false) {
                    found.push(self.missing(*column, oid, *target));
                }
            }
        }
        for (relation, numbers) in &columns.attributes {
            found.extend(self.stray_attributes(row, *relation, *numbers));
        }
        for object in &columns.objects {
            found.extend(self.stray_object(row, *object, columns));
        }
        found
    }

    fn missing(&self, column: usize, oid: Oid, target: Oid) -> Dangling {
        let name = self
            .tables
            .table(target)
            .map_or("its catalog", CatalogTable::name);
        Dangling {
            column,
            value: i64::from(oid),
            target: Some(target),
            words: format!("is not in {name}"),
        }
    }

    /// Whether a catalog has a row with this OID; nothing when nobody can tell.
    fn is_there(&mut self, target: Oid, oid: Oid) -> Option<bool> {
        let tables = self.tables;
        let known = self
            .targets
            .entry(target)
            .or_insert_with(|| load(tables, target));
        match known {
            ReferencedOids::Whole(oids) => Some(oids.contains(oid)),
            ReferencedOids::Unknown => None,
        }
    }

    fn stray_attributes(&self, row: &RawRow<'_>, relation: usize, numbers: usize) -> Vec<Dangling> {
        let relation = row.u32(relation).filter(|oid| *oid != 0);
        let relation = relation.and_then(|oid| self.database.catalog.relations.get(&oid));
        let Some(relation) = relation else {
            return Vec::new();
        };
        let stray = |number: &i16| !is_attribute(i32::from(*number), relation.relnatts);
        int2s(row, numbers)
            .into_iter()
            .filter(stray)
            .map(|number| no_attribute(numbers, i64::from(number), &relation.qualified_name()))
            .collect()
    }

    fn stray_object(
        &mut self,
        row: &RawRow<'_>,
        own: ObjectColumns,
        columns: &Columns,
    ) -> Option<Dangling> {
        let (class, object) = (row.u32(own.class)?, row.u32(own.object)?);
        if !self.is_ours(row, own, columns) {
            return None;
        }
        // Until 14 a row that says what may never be dropped has only the other end.
        let pinned = columns.kind.and_then(|kind| row.u8(kind)) == Some(b'p');
        if class == 0 && pinned {
            return None;
        }
        let target = match class {
            // A large object is known by its row in the other catalog.
            PG_LARGEOBJECT => PG_LARGEOBJECT_METADATA,
            other => other,
        };
        if !self.tables.is_catalog(target) {
            return Some(Dangling {
                column: own.class,
                value: i64::from(class),
                target: None,
                words: "is no system catalog".into(),
            });
        }
        if self.is_there(target, object) == Some(false) {
            return Some(self.missing(own.object, object, target));
        }
        let part = own
            .part
            .and_then(|part| Some((part, row.u32(part)?.cast_signed())));
        let (column, number) = part.filter(|_| class == PG_CLASS)?;
        let relation = self.database.catalog.relations.get(&object)?;
        (!is_attribute(number, relation.relnatts))
            .then(|| no_attribute(column, i64::from(number), &relation.qualified_name()))
    }

    /// The end of a row of `pg_shdepend` that belongs to the database at hand; every other row
    /// does.
    fn is_ours(&self, row: &RawRow<'_>, own: ObjectColumns, columns: &Columns) -> bool {
        let Some(dbid) = columns.database else {
            return true;
        };
        let database = self.database.catalog.database;
        if own.local {
            row.u32(dbid) == Some(database)
        } else {
            database == 0
        }
    }
}

fn is_attribute(number: i32, relnatts: u16) -> bool {
    (ATTRIBUTE_MIN..=i32::from(relnatts)).contains(&number)
}

fn no_attribute(column: usize, value: i64, relation: &str) -> Dangling {
    Dangling {
        column,
        value,
        target: None,
        words: format!("is no column of {relation}"),
    }
}

fn load(tables: &CatalogTables<'_>, target: Oid) -> ReferencedOids {
    let table = tables.table(target);
    let Some((table, oid)) = table.and_then(|table| Some((table, table.column("oid")?))) else {
        return ReferencedOids::Unknown;
    };
    let mut oids = OidSet::default();
    let mut whole = true;
    let all = tables.each_row(table, |row| match row.u32(oid) {
        Some(oid) => {
            oids.insert(oid);
        }
        None => whole = false,
    });
    if whole && all {
        ReferencedOids::Whole(oids)
    } else {
        ReferencedOids::Unknown
    }
}

fn oids(row: &RawRow<'_>, column: usize, shape: Shape) -> Vec<Oid> {
    if !shape.many {
        return row.u32(column).into_iter().collect();
    }
    let elements = row.payload(column).and_then(|array| elements(array, 4));
    let (elements, _) = elements.unwrap_or_default().as_chunks::<4>();
    elements
        .iter()
        .map(|raw| u32::from_le_bytes(*raw))
        .collect()
}

/// One number, or those of a vector or array.
pub(crate) fn int2s(row: &RawRow<'_>, column: usize) -> Vec<i16> {
    if let Some(raw) = row.bytes(column).and_then(|bytes| bytes.as_array::<2>()) {
        return vec![i16::from_le_bytes(*raw)];
    }
    let elements = row.payload(column).and_then(|array| elements(array, 2));
    let (elements, _) = elements.unwrap_or_default().as_chunks::<2>();
    elements
        .iter()
        .map(|raw| i16::from_le_bytes(*raw))
        .collect()
}

/// The elements of a one-dimensional array without nulls; nothing for any other.
fn elements(array: &[u8], size: usize) -> Option<&[u8]> {
    const HEADER: usize = 20;
    let word = |at: usize| Some(u32::from_le_bytes(*array.get(at..)?.first_chunk()?));
    let (dimensions, nulls) = (word(0)?, word(4)?);
    (dimensions == 1 && nulls == 0).then_some(())?;
    let count = usize::try_from(word(12)?).ok()?;
    array.get(HEADER..HEADER.checked_add(count.checked_mul(size)?)?)
}
