//! What the server's own tools, `amcheck` and `pg_visibility`, find on a cluster that was hurt, we
//! find at the same places.

mod btree;
mod gin;
mod heap;
pub(crate) mod hurt;
mod indexes;
mod long_values;
mod rows;
mod visibility;
