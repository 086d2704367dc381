//! What the checks of BRIN indexes share: what each column stores, where the map says a summary is, and
//! what a summary covers.

mod cover;
mod map;
mod stored;

pub(crate) use cover::{Cover, payload};
pub(crate) use map::Map;
pub(crate) use stored::Stored;
