//! What the checks of btree indexes share: the order of keys, and the walk along a level.

mod key_order;
pub mod walk;

pub(crate) use key_order::payload;
pub use key_order::{KeyOrder, Tie, Unordered};
