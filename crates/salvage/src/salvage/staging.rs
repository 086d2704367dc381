//! Rows that a COPY cannot put into their table as they are printed: they are read into a temporary
//! table beside it, and go from there into their own. So come values of types whose text is not
//! known here, and the rows that a user added to a table of an extension, which has filled it by
//! itself.

use std::collections::BTreeSet;

use pgclinic_format::Oid;

use crate::schema::{ExtensionTable, Quoting};
use crate::shape::Table;
use crate::stored_types::{Conversion, OwnTypes};

/// Where the rows are read into; each session has one of its own.
pub(crate) const STAGE: &str = "pg_temp.pgclinic_stage";

pub(crate) const QUOTING: Quoting = Quoting { major: 18 };

/// The statements around a COPY into the stage, in one transaction with it.
#[derive(Clone, Debug)]
pub(crate) struct Staging {
    /// Makes the stage.
    pub(crate) create: String,
    /// Takes the rows out of it.
    pub(crate) insert: String,
    /// Asks how many rows that belong into the table are not in it as they are.
    pub(crate) missing: Option<String>,
    /// Takes the rows away that an earlier run brought, where others must stay.
    pub(crate) empty: Option<String>,
}

/// What a column's values take to come over.
pub(crate) struct StagedColumn {
    /// Index among those that are written.
    pub(crate) column: usize,
    /// How they do, or why they do not.
    pub(crate) conversion: Result<Conversion, String>,
}

/// The columns of a table that are written as stored bytes.
pub(crate) fn staged_columns(table: &Table, own: &mut OwnTypes<'_>) -> Vec<StagedColumn> {
    let bytes = table.columns.iter().enumerate();
    let bytes = bytes.filter_map(|(at, column)| Some((at, column, column.bytes_of.as_ref()?)));
    let staged = bytes.map(|(at, column, ty)| {
        let value = format!("stage.{}", QUOTING.name(&column.name));
        StagedColumn {
            column: at,
            conversion: own.conversion(ty, &value),
        }
    });
    staged.collect()
}

/// `schema.table`.
pub(crate) fn quoted(table: &Table) -> String {
    QUOTING.qualified(&table.schema, &table.name)
}

/// The names of the columns that are written.
pub(crate) fn column_names(table: &Table) -> Vec<String> {
    let columns = table.columns.iter();
    columns.map(|column| QUOTING.name(&column.name)).collect()
}

impl Staging {
    /// For a table with such columns, with columns that the server computes, or of an extension;
    /// nothing where a plain COPY does.
    pub(crate) fn of(
        table: &Table,
        staged: &[StagedColumn],
        extension: Option<&ExtensionTable>,
        is_computed: &dyn Fn(usize) -> bool,
    ) -> Option<Self> {
        let names = column_names(table);
        let has_computed = (0..names.len()).any(is_computed);
        let is_needed = extension.is_some() || has_computed || !staged.is_empty();
        if names.is_empty() || !is_needed {
            return None;
        }
        let target = quoted(table);
        let mut read = names.clone();
        let mut values: Vec<String> = names.iter().map(|name| format!("stage.{name}")).collect();
        for StagedColumn { column, conversion } in staged {
            let slots = (read.get_mut(*column), values.get_mut(*column));
            let (Some(read), Some(value)) = slots else {
                continue;
            };
            match conversion {
                Ok(way) => {
                    *read = format!("NULL::{} AS {read}", way.read_as);
                    value.clone_from(&way.value);
                }
                // Its own input function would read the bytes as something else.
                Err(_) => {
                    *read = format!("NULL::pg_catalog.text AS {read}");
                    "NULL".clone_into(value);
                }
            }
        }
        let kept = |texts: &[String]| {
            let kept = texts.iter().enumerate();
            let kept = kept.filter(|(at, _)| !is_computed(*at));
            kept.map(|(_, text)| text.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (read, list, values) = (read.join(", "), kept(&names), kept(&values));
        let condition = extension.and_then(|known| known.users_rows.as_deref());
        let condition = condition.filter(|condition| !condition.trim().is_empty());
        let rows = match condition {
            None => format!("{STAGE} AS stage"),
            Some(condition) => format!("(SELECT * FROM {STAGE} {condition}) AS stage"),
        };
        // What the extension made is there already.
        let conflict = if extension.is_some() {
            " ON CONFLICT DO NOTHING"
        } else {
            ""
        };
        Some(Staging {
            create: format!(
                "CREATE TEMPORARY TABLE {STAGE} ON COMMIT DROP AS SELECT {read} FROM ONLY {target} WITH NO DATA"
            ),
            insert: format!(
                "INSERT INTO {target} ({list}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {rows}{conflict}"
            ),
            empty: condition.map(|rows| format!("DELETE FROM ONLY {target} {rows}")),
            missing: extension.map(|_| {
                format!(
                    "SELECT pg_catalog.count(*) FROM (SELECT ROW({values})::pg_catalog.text FROM {rows} \
                     EXCEPT ALL SELECT ROW({list})::pg_catalog.text FROM ONLY {target}) AS other"
                )
            }),
        })
    }
}

/// The load's own types that these columns take.
pub(crate) fn own_types_of(staged: &[StagedColumn]) -> BTreeSet<Oid> {
    let ways = staged
        .iter()
        .filter_map(|staged| staged.conversion.as_ref().ok());
    ways.flat_map(|way| way.own_types.iter().copied()).collect()
}
