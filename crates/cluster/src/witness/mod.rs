//! What should exist, by witnesses beside itself: plain facts, for whoever judges them.

mod columns;
mod entries;
mod rebuilt;
mod relations;

pub use columns::LostColumn;
pub use relations::LostRelation;
pub(crate) use columns::{Gap, column_of_indexes, lost_columns};
pub(crate) use relations::{ClassWitness, LostRelations, lost_relations};
pub(crate) use rebuilt::{owner_by_toast_name, rebuilt, settle_kind};
