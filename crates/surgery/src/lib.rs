//! The only crate that writes to a cluster: injuries for rehearsals, and the journal that takes
//! them back.
//!
//! ```text
//! injury + target ─► Damage (Patch) ─► apply: safety, journal, write, read back ─► undo: first bytes again
//! ```
//!
//! [`safety`] decides whether a directory may be touched, [`journal`] keeps what was there, [`apply`] and [`undo`]
//! do the work. Nothing here decides what to heal: a [`pgclinic_model::plan::Patch`] is plain data.
#![forbid(unsafe_code)]

mod advice;
mod appended;
mod byte_edits;
pub mod checksums;
mod cluster_lock;
mod copy;
#[cfg(test)]
mod crash_tests;
pub mod cures;
mod error;
pub mod followers;
mod index_entries;
mod injuries;
mod injury;
mod injury_target;
mod injury_targets;
pub mod journal;
mod new_files;
mod operate;
mod overlay;
mod plan_injury;
mod random_injuries;
mod resume;
pub mod safety;
pub mod start_again;
pub mod start_wounds;
mod storage;
mod target;
mod undo;
mod writer;

pub use copy::{MarkedCopy, copy_still_files, copy_to};
pub use error::{Error, Result};
pub use injury::{Damage, Injury, Wants};
pub use injury_target::{InjuryTarget, InjuryTargetKind, Row, Value};
pub use injury_targets::{InjuryTargetRef, InjuryTargets, Within};
pub use journal::{Journal, JournalFolder};
pub use operate::{Applied, Content, FileBeside, Operation, Resumed, Undone, apply, resume, undo};
pub use overlay::overlay;
pub use plan_injury::{
    InjuryOptions, PlannedInjury, injuries, injuries_by_family, injury_named, patched, plan_injury,
    plan_on, seal,
};
pub use random_injuries::{
    Chosen, DamageBudget, PageBudget, PlannedInjuries, plan_named, plan_random,
};
pub use safety::{Consent, MARKER_FILE, is_marked, mark_copy};
pub use storage::{Disk, Owner, Storage};
