//! The plain data that everybody shares: documents, rules, places, levels, selections, plans and
//! progress.
//!
//! Nothing here reads a cluster or decides anything about one. `report` renders these types and
//! knows no other crate of the house but `format`; whoever works on a cluster fills them in.
#![forbid(unsafe_code)]

pub mod document;
mod figure_kind;
mod labels;
pub mod plan;
mod plural;
mod progress;
mod rule;
mod selection;
mod shell;
mod whole;

pub use document::{CheckDocument, Finding, Level, Place, SalvageReport, Verdict};
pub use figure_kind::{FigureKind, FigureKinds, FigureList, Unit};
pub use labels::Labels;
pub use plural::{count, noun_of, plural, verb_of};
pub use progress::Progress;
pub use rule::{Rule, SECTIONS, Severity};
pub use selection::{Glob, Selection};
pub use shell::{in_quotes, shell_word};
pub use whole::whole;
