//! What the checks of GIN indexes share: the walk over their trees, and which pages it reaches.

mod face;
mod keys;
mod level;
mod pages;
mod pending;
mod reached;

pub(crate) use level::Walk;
pub(crate) use pages::{entries, gin_page};
pub use reached::{Reached, reached};
