//! What a verdict means to somebody who was woken by it, and what to type next: a file a document.
//!
//! A sentence says what follows from the verdict and what does not. Nothing is said that the
//! document alone does not show.

mod check;
mod copies;
mod heal;
mod others;
mod salvage;

pub(super) use check::check;
pub(super) use copies::{checksums, diff};
pub(super) use heal::heal;
pub(super) use others::{
    blind, catalog_cost, drill, experiment, inspect, loss, measure, rehearsal, start_drill, watch,
};
pub(super) use salvage::salvage;

use super::next::Next;

/// What a verdict means.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Meaning {
    /// One sentence.
    pub(crate) sentence: String,
    /// What to type next.
    pub(crate) next: Next,
}

impl Meaning {
    fn of(sentence: impl Into<String>, next: Next) -> Self {
        Meaning {
            sentence: sentence.into(),
            next,
        }
    }

    /// Nothing is to be done.
    fn alone(sentence: impl Into<String>) -> Self {
        Meaning::of(sentence, Next::default())
    }
}
