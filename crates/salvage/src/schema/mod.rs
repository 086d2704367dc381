//! The schema of a database, from its catalogs read offline, as statements that make it again.
//!
//! ```text
//! catalogs ─► rows by column name ─► items (statement, owner, rights, comments) ─► sorted by need ─► two parts
//!                    └─ pg_node_tree ─► SQL
//! ```

mod catalog;
mod ddl;
mod definitions;
mod expression;
mod file;
pub mod given;
pub mod guess;
mod identifier;
pub(crate) mod keys;
mod long_text;
mod names;
mod object_names;
mod refusal;
mod sequence_columns;

pub(crate) use catalog::{Catalogs, DescribedColumns};
pub use ddl::{Ddl, Refused};
pub(crate) use ddl::{
    ExtensionTable, SESSION, Step, columns_made_plain, each_object_detail, encoding_name,
    extension_table, object_details_in, question_for_full_schemas,
};
pub use definitions::{Definition, DefinitionKind, definitions};
pub(crate) use file::{CLOSED_DATABASE, SchemaFile, connected_to, in_its_database};
pub(crate) use identifier::{Quoting, dollar_quoted, literal};
pub(crate) use long_text::{CatalogRoom, Statement};
pub(crate) use object_names::object_names;
pub(crate) use sequence_columns::SequenceColumns;
