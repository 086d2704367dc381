//! A row of a catalog contradicts itself or a row of another catalog.
//!
//! Truth: what is asked stands in `claims`.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pgclinic_cluster::{DatabaseContext, RawRow, Relation, RowState};
use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_ATTRIBUTE, PG_CLASS, PG_PROC, PG_TYPE};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;

use crate::catalogs::catalog_reference_missing::int2s;
use crate::catalogs::claims::{CLAIMS, Claim, Is, Needs, Rows, Test, owner_columns};
use crate::catalogs::rows::{CatalogTable, CatalogTables, catalogs_are_comparable};
use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static CATALOG_ROWS_DISAGREE: Rule =
    Rule::from_page(include_str!("../../rules/catalog-rows-disagree.md"));

/// See [`CATALOG_ROWS_DISAGREE`].
pub struct CatalogRowsDisagree;

/// Catalogs of a database whose files a relation map names.
const MAPPED: [Oid; 4] = [PG_CLASS, PG_ATTRIBUTE, PG_PROC, PG_TYPE];
/// Keys of one claim that are remembered, 8 bytes each.
const KEYS_MAX: usize = 8 << 20;
/// Rows told of one claim; a catalog that was lost as a whole is not told row by row.
const TOLD_MAX: u64 = 100;

impl DatabaseCheck for CatalogRowsDisagree {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CATALOG_ROWS_DISAGREE] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        // What is claimed stands in the catalogs that each database has for itself. While a server
        // runs a catalog may get another file between the look at one side and at the other.
        let is_asked = database.catalog.database != 0 && !database.cluster.is_running();
        if !is_asked || !catalogs_are_comparable(database, out) {
            return;
        }
        let tables = CatalogTables::new(database, None);
        let court = Court {
            database,
            kinds: kinds(&tables),
            tables: &tables,
        };
        let major = database.cluster.layout.major;
        let mut open: Vec<Open> = CLAIMS
            .iter()
            .filter(|claim| (claim.since..=claim.until).contains(&major))
            .filter_map(|claim| court.open(claim))
            .collect();
        for table in tables.own() {
            court.gather(table, &mut open, out);
        }
        for own in &mut open {
            own.there.sort_unstable();
        }
        for table in tables.own() {
            court.ask(table, &mut open, out);
        }
    }
}

/// The letter of each relation.
fn kinds(tables: &CatalogTables<'_>) -> HashMap<Oid, u8> {
    let mut kinds = HashMap::new();
    let columns = |table: &CatalogTable<'_>| table.column("oid").zip(table.column("relkind"));
    if let Some(table) = tables.table(PG_CLASS)
        && let Some((oid, kind)) = columns(table)
    {
        tables.each_row(table, |row| {
            kinds.extend(row.u32(oid).zip(row.u8(kind)));
        });
    }
    kinds
}

/// A claim, and the keys of what is there.
struct Open {
    claim: &'static Claim,
    owing: Side,
    own_tests: Vec<ColumnTest>,
    count: Option<usize>,
    other: Option<Side>,
    /// Hashes of keys.
    there: Vec<u64>,
    /// Some rows of the other catalog cannot be read or may be no rows.
    is_unsure: bool,
}

/// Rows as this major has them.
struct Side {
    table: Oid,
    tests: Vec<ColumnTest>,
    key: Vec<KeyColumn>,
}

struct ColumnTest {
    column: usize,
    is: Is,
    /// The column that the value is compared with.
    with: Option<usize>,
}

struct KeyColumn {
    column: usize,
    /// Only so many elements of a vector count.
    first: Option<usize>,
}

/// What rows are judged by.
struct Court<'a, 'b> {
    database: &'b DatabaseContext<'a>,
    tables: &'b CatalogTables<'a>,
    kinds: HashMap<Oid, u8>,
}

impl<'a> Court<'a, '_> {
    /// Nothing where this major does not have a catalog or a column of a key, or where a catalog
    /// cannot be read, which is told elsewhere.
    fn open(&self, claim: &'static Claim) -> Option<Open> {
        let table = self.table(claim.rows)?;
        let (own_tests, count, other) = match &claim.needs {
            Needs::Tests(tests) => (column_tests(table, tests), None, None),
            Needs::Row(other) => (Vec::new(), None, Some(*other)),
            Needs::Count(column, other) => (Vec::new(), Some(table.column(column)?), Some(*other)),
        };
        let other = match other {
            Some(rows) => Some(side(self.table(rows)?, rows)?),
            None => None,
        };
        Some(Open {
            claim,
            owing: side(table, claim.rows)?,
            own_tests,
            count,
            other,
            there: Vec::new(),
            is_unsure: false,
        })
    }

    fn table(&self, rows: Rows) -> Option<&CatalogTable<'a>> {
        let table = self.tables.table(self.tables.oid_of(rows.catalog)?)?;
        self.is_recovered(table.relation).then_some(table)
    }

    /// The recovery that looks for names passes over files with numbers that users' tables have,
    /// which a catalog gets by `VACUUM FULL`, unless a relation map leads there.
    fn is_recovered(&self, catalog: &Relation) -> bool {
        let is_whole = self.database.cluster.recovered().is_none();
        is_whole || catalog.filenode < FIRST_NORMAL_OID || MAPPED.contains(&catalog.oid)
    }

    /// The keys of all rows of a catalog that some claim asks for.
    fn gather(&self, table: &CatalogTable<'a>, open: &mut [Open], out: &mut Findings) {
        let oid = table.relation.oid;
        let mut asking: Vec<&mut Open> = open.iter_mut().collect();
        asking.retain(|own| own.other.as_ref().is_some_and(|other| other.table == oid));
        if asking.is_empty() {
            return;
        }
        let is_whole = self.tables.each_row(table, |row| {
            for own in &mut asking {
                let other = own
                    .other
                    .as_ref()
                    .filter(|other| self.hold(row, &other.tests));
                let Some(key) = other.and_then(|other| key(row, &other.key)) else {
                    continue;
                };
                own.is_unsure |= own.count.is_some() && row.state != RowState::Visible;
                if own.there.len() < KEYS_MAX {
                    own.there.push(key);
                } else {
                    own.is_unsure = true;
                }
            }
        });
        asking.iter_mut().for_each(|own| own.is_unsure |= !is_whole);
        if asking.iter().any(|own| own.is_unsure) {
            let what = format!("other catalogs against {}", table.name());
            let why = "not all of its rows can be read or remembered";
            self.tables.not_checked(out, &what, why);
        }
    }

    /// The rows of a catalog that owe something.
    fn ask(&self, table: &CatalogTable<'a>, open: &mut [Open], out: &mut Findings) {
        let oid = table.relation.oid;
        let owing = |own: &&Open| own.owing.table == oid && !own.is_unsure;
        let mut owing: Vec<(&Open, u64)> = open.iter().filter(owing).map(|own| (own, 0)).collect();
        if owing.is_empty() {
            return;
        }
        self.tables.each_row(table, |row| {
            // A row whose transaction nobody knows may be no row at all.
            if row.state != RowState::Visible {
                return;
            }
            for (own, count) in &mut owing {
                if self.hold(row, &own.owing.tests) && !self.is_kept(row, own) {
                    *count += 1;
                    if *count <= TOLD_MAX {
                        out.add(self.draft(table, row, own));
                    }
                }
            }
        });
        for (own, count) in owing {
            if let Some(more) = count.checked_sub(TOLD_MAX).filter(|more| *more > 0) {
                let name = table.name();
                let words = format!(
                    "{more} of {name}: {}",
                    own.claim.words,
                    more = plural(more, "more row")
                );
                let draft = self
                    .tables
                    .draft(&CATALOG_ROWS_DISAGREE, table, (0, 1), words);
                out.add(self.explained(draft.fact("rows_more", more), own));
            }
        }
    }

    fn is_kept(&self, row: &RawRow<'_>, own: &Open) -> bool {
        if own.other.is_none() {
            return self.hold(row, &own.own_tests);
        }
        let Some(key) = key(row, &own.owing.key) else {
            return true;
        };
        let Some(column) = own.count else {
            return own.there.binary_search(&key).is_ok();
        };
        let first = own.there.partition_point(|other| *other < key);
        let end = own.there.partition_point(|other| *other <= key);
        let found = i64::try_from(end - first).ok();
        number(row, column).is_none_or(|number| Some(number) == found)
    }

    fn draft(&self, table: &CatalogTable<'_>, row: &RawRow<'_>, own: &Open) -> Draft {
        let (name, words) = (table.name(), own.claim.words);
        let whose = self.owner(table, row);
        let message = format!("the row of {whose} in {name}: {words}");
        let place = (row.block, row.item);
        let draft = self
            .tables
            .draft(&CATALOG_ROWS_DISAGREE, table, place, message);
        self.explained(draft.fact("catalog", name), own)
    }

    fn explained(&self, draft: Draft, own: &Open) -> Draft {
        match &own.other {
            Some(other) => self.tables.explained_by(draft, other.table),
            None => draft,
        }
    }

    /// Relation and name of what a row describes, as far as it has them.
    fn owner(&self, table: &CatalogTable<'_>, row: &RawRow<'_>) -> String {
        let (relation, name) = owner_columns(table.name());
        let relation = table.column(relation).and_then(|index| row.u32(index));
        let relation = relation.filter(|oid| *oid != 0).map(|oid| {
            let known = self.relation(oid);
            known.map_or_else(|| oid.to_string(), Relation::qualified_name)
        });
        let name = table
            .column(name)
            .and_then(|index| match number(row, index) {
                Some(number) => Some(number.to_string()),
                None => row.name(index),
            });
        let parts: Vec<String> = relation.into_iter().chain(name).collect();
        parts.join(".")
    }

    fn relation(&self, oid: Oid) -> Option<&Relation> {
        self.database.catalog.relations.get(&oid)
    }

    fn hold(&self, row: &RawRow<'_>, tests: &[ColumnTest]) -> bool {
        tests.iter().all(|test| self.holds(row, test))
    }

    fn holds(&self, row: &RawRow<'_>, test: &ColumnTest) -> bool {
        let column = test.column;
        let value = || number(row, column).unwrap_or(0);
        let relation = || row.u32(column).and_then(|oid| self.relation(oid));
        // What is not known holds.
        let both = || {
            let other = row.u32(test.with?).and_then(|oid| self.relation(oid))?;
            Some((relation()?, other))
        };
        match test.is {
            Is::Set => value() != 0,
            Is::Unset => value() == 0,
            Is::Given => row.bytes(column).is_some(),
            Is::Null => row.bytes(column).is_none(),
            Is::Letter(letters) => row.u8(column).is_some_and(|own| letters.contains(&own)),
            Is::Number(number) => row.u32(column) == Some(number),
            Is::Users => row.u32(column).is_some_and(|oid| oid >= FIRST_NORMAL_OID),
            Is::OfKind(letters) => {
                let kind = row.u32(column).and_then(|oid| self.kinds.get(&oid));
                kind.is_some_and(|kind| letters.contains(kind))
            }
            Is::InSchema(name) => relation().is_none_or(|own| begins(&own.schema, name)),
            Is::InSchemaOf(_) => both().is_none_or(|(own, other)| own.schema == other.schema),
            Is::AsLastingAs(_) => {
                both().is_none_or(|(own, other)| own.persistence == other.persistence)
            }
            Is::Counts(_) => {
                let count = test.with.and_then(|other| number(row, other));
                let own = elements_of(row, column);
                own.zip(count)
                    .is_none_or(|(own, count)| i64::from(own) == count)
            }
            Is::CountsAs(_) => {
                let other = test.with.and_then(|other| elements_of(row, other));
                let own = elements_of(row, column);
                own.zip(other).is_none_or(|(own, other)| own == other)
            }
        }
    }
}

/// A schema without a name is written as its OID.
fn begins(schema: &str, name: &str) -> bool {
    schema.starts_with(name) || schema.parse::<Oid>().is_ok()
}

fn side(table: &CatalogTable<'_>, rows: Rows) -> Option<Side> {
    let key = rows.key.iter().map(|name| {
        Some(KeyColumn {
            column: table.column(name)?,
            // Behind its keys an index names the columns that it includes.
            first: table.column("indnkeyatts").filter(|_| *name == "indkey"),
        })
    });
    Some(Side {
        table: table.relation.oid,
        tests: column_tests(table, rows.tests),
        key: key.collect::<Option<_>>()?,
    })
}

/// A test of a column that this major does not have holds.
fn column_tests(table: &CatalogTable<'_>, tests: &[Test]) -> Vec<ColumnTest> {
    let tests = tests.iter().filter_map(|(name, is)| {
        let with = match is {
            Is::InSchemaOf(other) | Is::AsLastingAs(other) => Some(other),
            Is::Counts(other) | Is::CountsAs(other) => Some(other),
            _ => None,
        };
        Some(ColumnTest {
            column: table.column(name)?,
            is: *is,
            with: with.and_then(|other| table.column(other)),
        })
    });
    tests.collect()
}

/// A flag, a letter, or a number of two or four bytes.
fn number(row: &RawRow<'_>, column: usize) -> Option<i64> {
    let bytes = row.bytes(column)?;
    match bytes.len() {
        1 => bytes.first().copied().map(i64::from),
        2 => row.i16(column).map(i64::from),
        4 => row.u32(column).map(i64::from),
        _ => None,
    }
}

/// A hash of some columns; nothing where one is null.
fn key(row: &RawRow<'_>, columns: &[KeyColumn]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for own in columns {
        match number(row, own.column) {
            Some(number) => number.hash(&mut hasher),
            None if row.bytes(own.column)?.len() == NAME_BYTES => {
                row.name_bytes(own.column)?.hash(&mut hasher);
            }
            None => {
                let mut numbers = int2s(row, own.column);
                let first = own.first.and_then(|first| number(row, first));
                if let Some(first) = first.and_then(|first| usize::try_from(first).ok()) {
                    numbers.truncate(first);
                }
                numbers.hash(&mut hasher);
            }
        }
    }
    Some(hasher.finish())
}

/// `NAMEDATALEN`.
const NAME_BYTES: usize = 64;

/// The number of elements of a one-dimensional array or vector.
fn elements_of(row: &RawRow<'_>, column: usize) -> Option<u32> {
    let array = row.payload(column)?;
    let word = |at: usize| Some(u32::from_le_bytes(*array.get(at..)?.first_chunk()?));
    match word(0)? {
        0 => Some(0),
        1 => word(12),
        _ => None,
    }
}
