//! The memory plan: who may hold how much of `--memory`. What does not fit in memory is sorted into
//! a temporary folder, never inside a cluster, in a file that has no name any more while it is
//! used, so that nothing is left behind however the program ends.
#![forbid(unsafe_code)]

mod budget;
mod folder;
mod lookup;
mod memory_plan;
mod merge;
mod record;
mod run_file;
mod sorted_runs;
mod spool;

pub use budget::{Budget, Lease};
pub use folder::nameless_file;
pub use lookup::{Lookup, LookupBlock, LookupWriter};
pub use memory_plan::{Limit, MemoryPlan, Part};
pub use sorted_runs::{SortedRecords, SortedRuns};
pub use spool::{Span, Spool};
