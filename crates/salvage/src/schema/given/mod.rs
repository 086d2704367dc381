//! Columns that a person gives, where no catalog does: `CREATE TABLE` statements, or a list of
//! columns.
//!
//! Of a file of statements only those are read that say how rows are laid out: `CREATE TABLE`,
//! `CREATE TYPE`, `CREATE DOMAIN`. Everything else is passed over, and so are tables with columns
//! of types that nothing tells, so that the output of `pg_dump -s` can be given as it is.

mod statements;
mod tokens;
mod types;

use std::sync::Arc;

use pgclinic_format::ColumnLayout;
use pgclinic_format::datum::TypeInfo;
use statements::Unread;

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenColumn {
    /// Its name.
    pub name: String,
    /// Its type; of a dropped column only length and alignment count.
    pub ty: Arc<TypeInfo>,
    /// It is stored, but no longer a column.
    pub dropped: bool,
}

impl GivenColumn {
    /// How to walk it.
    pub fn layout(&self) -> ColumnLayout {
        ColumnLayout {
            attlen: self.ty.len,
            attalign: self.ty.align,
        }
    }
}

/// A table that a person describes.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenTable {
    /// Its schema, if it is told.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
    /// Its columns in order.
    pub columns: Vec<GivenColumn>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Its file, from the root of the data directory, where a line `-- file base/5/16384` stands
    /// before the statement.
    pub file: Option<String>,
    /// From 0 to 1; of columns that were guessed.
    pub confidence: Option<f64>,
}

/// All tables of a file of statements. The error says what is wrong and where.
pub fn tables_in(text: &str) -> Result<Vec<GivenTable>, String> {
    let given = statements::read(text)?;
    match given.unread.into_iter().next() {
        Some(unread) if given.tables.is_empty() => Err(unread.why),
        _ => Ok(given.tables),
    }
}

/// The table of this name (`schema.name` or `name`), or the only one there is.
pub fn table_in(text: &str, wanted: Option<&str>) -> Result<GivenTable, String> {
    let given = statements::read(text)?;
    let mut tables = given.tables;
    let mut unread = given.unread.into_iter();
    let fits = |table: &GivenTable| {
        wanted.is_none_or(|wanted| {
            let schema = table.schema.as_deref().unwrap_or("public");
            wanted == table.name || wanted == format!("{schema}.{}", table.name)
        })
    };
    tables.retain(fits);
    let is_meant = |unread: &Unread| wanted.is_none_or(|wanted| unread.names(wanted));
    if tables.is_empty()
        && let Some(unread) = unread.find(is_meant)
    {
        return Err(unread.why);
    }
    match (tables.len(), wanted) {
        (1, _) => Ok(tables.remove(0)),
        (0, None) => Err("it holds no CREATE TABLE".into()),
        (0, Some(wanted)) => Err(format!("it holds no CREATE TABLE for {wanted}")),
        (count, _) => Err(format!(
            "it describes {count} tables that fit: name one of them"
        )),
    }
}

/// The type of an extension, by its name.
pub(crate) fn type_of_extension(name: &str) -> Arc<TypeInfo> {
    Arc::new(types::of_extension(name))
}

/// Columns as `id int8, name text, gone dropped(4, 4), tags text[]`. `dropped(length, alignment)`
/// stands for a column that is stored, but no longer there.
pub fn columns_in(text: &str) -> Result<GivenTable, String> {
    let statement = format!("CREATE TABLE given ({text}\n);");
    table_in(&statement, Some("given"))
}
