//! What a running server says of its tables.

use std::collections::HashMap;
use std::sync::Arc;

use pgclinic_cluster::{DatabaseDirectory, ForkFiles};
use pgclinic_format::datum::{TypeInfo, TypeKind, builtin};
use pgclinic_format::{Fork, Oid, Xid};
use pgclinic_servers::SqlError;

use super::locks;
use super::snapshots::Reader;
use crate::salvage::{SalvageOptions, is_of_the_system};
use crate::shape::{Column, ColumnEncoding, Missing, Origin, Table};

/// A table or materialised view of the server.
#[derive(Clone, Debug)]
pub(super) struct LiveTable {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) oid: u32,
    /// Quoted, with its schema.
    pub(super) quoted: String,
    /// Its columns as a list, quoted; generated ones are left out unless they are asked for.
    pub(super) columns: String,
    pub(super) column_names: Vec<String>,
    /// The same for forms: names and types, and no files.
    pub(super) shape: Arc<Table>,
    /// 0 where the server did not say it: somebody held the table, or it was dropped meanwhile.
    pub(super) blocks: u32,
    pub(super) has_known_size: bool,
    /// `reltuples`; 0 where nobody counted.
    pub(super) estimate: u64,
    /// The number of its files.
    pub(super) filenode: u32,
    /// Indexes or a visibility map know of its rows.
    pub(super) has_witnesses: bool,
    /// No checkpoint writes its pages.
    pub(super) is_unlogged: bool,
    pub(super) is_materialized_view: bool,
    /// COPY takes its name and all of its columns.
    pub(super) is_copied_by_name: bool,
}

/// Words of the question that depend on what is asked.
const QUESTION: &str = "\
SELECT n.nspname, c.relname, c.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), \
  BLOCKS, c.relkind, \
  a.attname, pg_catalog.quote_ident(a.attname), a.atttypid, c.reltuples::bigint, \
  pg_catalog.pg_relation_filenode(c.oid), c.relhasindex OR c.relallvisible > 0, c.relpersistence = 'u' \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped GENERATED \
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND (c.relkind = 'r' OR c.relispopulated) \
ORDER BY 1, 2, c.oid, a.attnum";

/// Blocks of a table; it waits for whoever holds the table.
const BLOCKS: &str =
    "pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint";

/// The same, unknown of those that somebody holds, or waits for in front of us.
const BLOCKS_OF_FREE: &str = "CASE WHEN c.oid IN (SELECT l.relation FROM pg_catalog.pg_locks l \
   WHERE l.mode = 'AccessExclusiveLock' AND l.relation IS NOT NULL) THEN NULL \
   ELSE pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint END";

const DOMAINS: &str = "SELECT oid, typbasetype FROM pg_catalog.pg_type WHERE typtype = 'd'";

/// A row of the question that names a table.
struct Described<'r> {
    schema: &'r str,
    name: &'r str,
    oid: Oid,
    quoted: &'r str,
    blocks: Option<u32>,
    estimate: u64,
    filenode: u32,
    has_witnesses: bool,
    is_unlogged: bool,
    is_materialized_view: bool,
    /// Name, quoted name and type; none of a table without columns.
    column: Option<(&'r str, &'r str, Oid)>,
}

fn described(row: &[Option<String>]) -> Option<Described<'_>> {
    let text = |at: usize| row.get(at)?.as_deref();
    let number = |at: usize| text(at)?.parse::<u32>().ok();
    let column = || Some((text(6)?, text(7)?, number(8)?));
    Some(Described {
        schema: text(0)?,
        name: text(1)?,
        oid: number(2)?,
        quoted: text(3)?,
        blocks: number(4),
        // Below 0 where nobody counted.
        estimate: text(9).and_then(|rows| rows.parse().ok()).unwrap_or(0),
        filenode: number(10).unwrap_or(0),
        has_witnesses: text(11) == Some("t"),
        is_unlogged: text(12) == Some("t"),
        is_materialized_view: text(5)? == "m",
        column: column(),
    })
}

/// The tables that fit the selection.
pub(super) fn read(
    reader: &mut Reader<'_>,
    database: &str,
    options: &SalvageOptions,
) -> Result<Vec<LiveTable>, SqlError> {
    let selection = &options.selection;
    let generated = if options.generated {
        "AND a.attgenerated IN ('', 's')"
    } else {
        "AND a.attgenerated = ''"
    };
    let question = |blocks| {
        let question = QUESTION.replace("GENERATED", generated);
        question.replace("BLOCKS", blocks)
    };
    let rows = match reader.query(&question(BLOCKS)) {
        Err(error) if locks::is_locked_out(&error) => reader.query(&question(BLOCKS_OF_FREE))?,
        rows => rows?,
    };
    let domains = domains(reader);
    let mut tables: Vec<LiveTable> = Vec::new();
    for row in rows.iter().filter_map(|row| described(row)) {
        let (schema, name) = (row.schema, row.name);
        let is_wanted = if is_of_the_system(row.oid, schema) {
            selection.names_schema_of(schema, name)
        } else {
            selection.takes_name(schema, name)
        };
        if !is_wanted {
            continue;
        }
        if tables.last().is_none_or(|last| last.oid != row.oid) {
            let mut table = LiveTable::of(database, &row);
            // COPY refuses generated columns of a table that it is given by name.
            table.is_copied_by_name &= !options.generated;
            tables.push(table);
        }
        if let (Some(table), Some((name, quoted, ty))) = (tables.last_mut(), row.column) {
            table.add(name, quoted, type_info(ty, &domains));
        }
    }
    Ok(tables)
}

/// Domains with what each stands for. Where they cannot be read their values are taken for texts.
fn domains(reader: &mut Reader<'_>) -> HashMap<Oid, Oid> {
    let rows = reader.query(DOMAINS).unwrap_or_default();
    let numbers = rows.iter().filter_map(|row| match row.as_slice() {
        [Some(oid), Some(base)] => Some((oid.parse().ok()?, base.parse().ok()?)),
        _ => None,
    });
    numbers.collect()
}

/// What a form must know of a type whose values are text: whether they are numbers, booleans or
/// JSON.
fn type_info(oid: Oid, domains: &HashMap<Oid, Oid>) -> Arc<TypeInfo> {
    let text = || builtin(25).expect("text is built in");
    let mut base = oid;
    // Domains over domains; no server makes a circle of them.
    for _ in 0..64 {
        match domains.get(&base) {
            Some(under) => base = *under,
            None => break,
        }
    }
    let info = builtin(base).unwrap_or_else(text);
    if base == oid {
        Arc::new(info)
    } else {
        Arc::new(TypeInfo {
            oid,
            kind: TypeKind::Domain(Arc::new(info)),
            ..text()
        })
    }
}

/// A table of which nothing is known.
pub(super) fn nothing() -> Table {
    Table {
        database_oid: 0,
        database: String::new(),
        schema: String::new(),
        name: String::new(),
        oid: 0,
        is_materialized_view: false,
        files: ForkFiles {
            home: DatabaseDirectory {
                tablespace: 0,
                database: 0,
                folder: String::new(),
            },
            filenode: 0,
            fork: Fork::Main,
            temporary: None,
            segments: Vec::new(),
        },
        toast: None,
        columns: Vec::new(),
        layouts: Vec::new(),
        notes: Vec::new(),
        is_guessed: false,
        relfrozenxid: Xid::INVALID,
    }
}

impl LiveTable {
    fn of(database: &str, row: &Described<'_>) -> Self {
        let shape = Table {
            database: database.to_owned(),
            schema: row.schema.to_owned(),
            name: row.name.to_owned(),
            oid: row.oid,
            ..nothing()
        };
        LiveTable {
            schema: row.schema.to_owned(),
            name: row.name.to_owned(),
            oid: row.oid,
            quoted: row.quoted.to_owned(),
            columns: String::new(),
            column_names: Vec::new(),
            shape: Arc::new(shape),
            blocks: row.blocks.unwrap_or(0),
            has_known_size: row.blocks.is_some(),
            estimate: row.estimate,
            filenode: row.filenode,
            has_witnesses: row.has_witnesses,
            is_unlogged: row.is_unlogged,
            is_materialized_view: row.is_materialized_view,
            is_copied_by_name: !row.is_materialized_view,
        }
    }

    fn add(&mut self, name: &str, quoted: &str, ty: Arc<TypeInfo>) {
        let comma = if self.columns.is_empty() { "" } else { ", " };
        self.columns = format!("{}{comma}{quoted}", self.columns);
        let shape = Arc::make_mut(&mut self.shape);
        shape.columns.push(Column {
            name: name.to_owned(),
            origin: Origin::Attribute(self.column_names.len()),
            ty,
            bytes_of: None,
            typmod: -1,
            holding: ColumnEncoding::Nearest,
            missing: Missing::Null,
        });
        self.column_names.push(name.to_owned());
    }

    /// A relation of the system, of which some columns are wanted.
    pub(super) fn of_system(name: &str, oid: Oid, columns: &[(&str, Oid)], blocks: u32) -> Self {
        let row = Described {
            schema: "pg_catalog",
            name,
            oid,
            quoted: &format!("pg_catalog.{name}"),
            blocks: Some(blocks),
            estimate: 0,
            filenode: 0,
            has_witnesses: false,
            is_unlogged: false,
            is_materialized_view: false,
            column: None,
        };
        let mut table = LiveTable::of("", &row);
        for (name, ty) in columns {
            table.add(name, name, type_info(*ty, &HashMap::new()));
        }
        table
    }
}

/// How rows of some blocks are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RangeWay {
    /// A scan from one ctid to another, which 14 and later make of a comparison.
    Scan,
    /// Every ctid that there can be, one by one.
    Each,
}

/// More line pointers than a page of any size up to 32 kB holds.
const ITEMS_MAX: u32 = 1200;

impl LiveTable {
    /// The rows of all blocks, for COPY. A table is named where that is allowed: its rows then come
    /// without a plan, for which the server opens every index of the table, damaged ones too.
    pub(super) fn copied_whole(&self) -> String {
        if self.is_copied_by_name && !self.columns.is_empty() {
            return format!("{} ({})", self.quoted, self.columns);
        }
        format!("({})", self.whole())
    }

    /// The rows of all blocks.
    fn whole(&self) -> String {
        format!("SELECT {} FROM ONLY {}", self.columns, self.quoted)
    }

    /// How many blocks it has now.
    pub(super) fn size(&self) -> String {
        let blocks = BLOCKS.replace("c.oid", &self.oid.to_string());
        format!("SELECT {blocks}")
    }

    /// The rows of blocks `from` up to `to`, without it.
    pub(super) fn range(&self, from: u32, to: u32, way: RangeWay) -> String {
        let test = match way {
            RangeWay::Scan => format!("ctid >= '({from},0)'::tid AND ctid < '({to},0)'::tid"),
            RangeWay::Each => format!(
                "ctid = ANY (ARRAY(SELECT ('(' || b || ',' || i || ')')::tid FROM \
                 pg_catalog.generate_series({from}, {to} - 1) b, pg_catalog.generate_series(1, {ITEMS_MAX}) i))"
            ),
        };
        format!("{} WHERE {test}", self.whole())
    }

    /// Those of the blocks on which the snapshot sees rows.
    pub(super) fn blocks_with_rows(&self, from: u32, to: u32, way: RangeWay) -> String {
        let places = LiveTable {
            columns: "ctid".into(),
            ..self.clone()
        };
        format!(
            "SELECT DISTINCT (ctid::text::point)[0]::bigint FROM ({}) places",
            places.range(from, to, way)
        )
    }

    /// One row.
    pub(super) fn row(&self, block: u32, item: u16) -> String {
        format!("{} WHERE ctid = '({block},{item})'::tid", self.whole())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server has no size for a table that was dropped since the snapshot was taken.
    #[test]
    fn a_table_without_a_size_has_no_blocks_to_be_asked_for() {
        let of_size = |size: Option<&str>| {
            let words = [
                Some("s"),
                Some("t"),
                Some("16400"),
                Some("s.t"),
                size,
                Some("r"),
            ];
            let row: Vec<Option<String>> =
                words.iter().map(|word| word.map(str::to_owned)).collect();
            let table = LiveTable::of("shop", &described(&row).expect("a table"));
            (table.blocks, table.has_known_size)
        };
        assert_eq!(of_size(Some("7")), (7, true));
        assert_eq!(of_size(None), (0, false));
    }
}
