//! What a running server says of its tables.

use pgclinic_diagnose::Selection;
use pgclinic_servers::{Session, SqlError};

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
    pub(super) blocks: u32,
    pub(super) is_materialized_view: bool,
}

/// Words of the question that depend on what is asked.
const QUESTION: &str = "\
SELECT n.nspname, c.relname, c.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), \
  (pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint), c.relkind, \
  a.attname, pg_catalog.quote_ident(a.attname) \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped GENERATED \
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND (c.relkind = 'r' OR c.relispopulated) \
ORDER BY 1, 2, c.oid, a.attnum";

/// The tables that fit the selection.
pub(super) fn read(
    session: &mut Session,
    selection: &Selection,
    with_generated: bool,
) -> Result<Vec<LiveTable>, SqlError> {
    let generated = match with_generated {
        true => "AND a.attgenerated IN ('', 's')",
        false => "AND a.attgenerated = ''",
    };
    let mut tables: Vec<LiveTable> = Vec::new();
    for row in session.query(&QUESTION.replace("GENERATED", generated))? {
        let [
            Some(schema),
            Some(name),
            Some(oid),
            Some(quoted),
            Some(blocks),
            Some(kind),
            attname,
            column,
        ] = row.as_slice()
        else {
            continue;
        };
        let of_the_system = schema.starts_with("pg_") || schema == "information_schema";
        let is_wanted = match of_the_system {
            true => selection.names_schema_of(schema, name),
            false => selection.takes_name(schema, name),
        };
        if !is_wanted {
            continue;
        }
        let oid = oid.parse().unwrap_or(0);
        if tables.last().is_none_or(|last| last.oid != oid) {
            tables.push(LiveTable {
                schema: schema.clone(),
                name: name.clone(),
                oid,
                quoted: quoted.clone(),
                columns: String::new(),
                column_names: Vec::new(),
                blocks: blocks.parse().unwrap_or(u32::MAX),
                is_materialized_view: kind == "m",
            });
        }
        if let (Some(table), Some(attname), Some(column)) = (tables.last_mut(), attname, column) {
            let comma = if table.columns.is_empty() { "" } else { ", " };
            table.columns = format!("{}{comma}{column}", table.columns);
            table.column_names.push(attname.clone());
        }
    }
    Ok(tables)
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
    /// The rows of all blocks.
    pub(super) fn whole(&self) -> String {
        format!("SELECT {} FROM ONLY {}", self.columns, self.quoted)
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

    /// One row.
    pub(super) fn row(&self, block: u32, item: u16) -> String {
        format!("{} WHERE ctid = '({block},{item})'::tid", self.whole())
    }

    /// `schema.name`, for messages.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}
