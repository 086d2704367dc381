//! What should exist, by witnesses beside itself: plain facts, for whoever judges them.

mod column_types;
mod columns;
mod databases;
mod entries;
mod lost_keys;
mod lost_map;
mod mentions;
mod rebuilt;
mod relations;
mod toast_values;
mod types;

pub(crate) use column_types::{CATALOGS_WITH_TYPES, ColumnTypes, KnownType, Relatives};
pub use columns::LostColumn;
pub(crate) use columns::{Gap, column_like, column_of_indexes, column_of_type, lost_columns};
pub(crate) use databases::lost_databases;
pub(crate) use entries::{PagesLost, each_row_in, index_of_rows, pages_lost, schema_names};
pub use lost_keys::LostKeys;
pub(crate) use lost_keys::keys_of_lost_rows;
pub(crate) use mentions::{CATALOGS_WITH_MENTIONS, Mentions, Rowless};
pub(crate) use rebuilt::{owner_by_toast_name, rebuilt, settle_kind};
pub use relations::LostRelation;
pub(crate) use relations::{ClassWitness, LostRelations, lost_relations};
pub use toast_values::{KILLED_BY_HAND_MAX, rows_with_values};
pub use types::LostType;
pub(crate) use types::{base_of_domain, lost_labels, lost_types};
