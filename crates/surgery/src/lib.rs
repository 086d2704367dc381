//! The only crate that writes to a cluster: injuries for rehearsals, and the journal that takes them back.
//!
//! ```text
//! injury + site ─► Wound (Patch) ─► apply: safety, journal, write, read back ─► undo: first bytes again
//! ```
//!
//! [`safety`] decides whether a folder may be touched, [`journal`] keeps what was there, [`apply`] and [`undo`]
//! do the work. Nothing here decides what to heal: a [`pgclinic_model::plan::Patch`] is plain data.
#![forbid(unsafe_code)]

mod brin_site;
mod btree_site;
mod copy;
#[cfg(test)]
mod crash_tests;
mod error;
pub mod followers;
mod index_entries;
pub mod injuries;
mod injury;
pub mod journal;
mod operate;
mod plan_injury;
pub mod safety;
mod site;
mod sites;
mod storage;
mod target;
mod trees;
mod undo;
mod way_out;
mod writer;

pub use copy::{MarkedCopy, copy_to};
pub use error::{Error, Result};
pub use injury::{Injury, SiteWants, Wound};
pub use journal::{Journal, JournalFolder};
pub use operate::{Applied, Operation, Undone, apply, undo};
pub use plan_injury::{
    InjuryOptions, PlannedInjury, injuries, injury_named, patched, plan_injury, plan_on, seal,
};
pub use safety::{Consent, MARKER_FILE, is_marked, mark_copy};
pub use site::{Row, Site, SiteKind, Value};
pub use sites::{SiteRef, Sites, Within};
pub use storage::{Disk, Owner, Storage};
