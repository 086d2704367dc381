//! What the checks of btree indexes share: the order of keys, and the walk along a level.

mod faces;
mod fixed_keys;
mod key_order;
pub mod walk;

pub(crate) use faces::{AllFaces, Faces, Sight};
pub(crate) use fixed_keys::{FixedKeys, image};
pub(crate) use key_order::payload;
pub use key_order::{KeyOrder, Tie, Unordered};
