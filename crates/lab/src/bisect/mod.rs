//! Which minor release changed a figure: a search that halves the releases in between, every half
//! being decided by blocks of runs on both ends and on the release in the middle.
//!
//! ```text
//! 15.0 ──────────── 15.10 ──────────── 15.20     do the ends differ?          search.rs
//!                   15.10 like 15.0: go on to the right
//!                            15.15 like 15.20: go on to the left     …        probe.rs makes the runs
//! ```
//!
//! The releases before the change are taken to be alike, and those after it too.

mod probe;
mod range;
mod search;

pub use probe::{BisectOptions, bisect};
pub use range::MinorRange;
pub use search::{Found, Outcome, Rounds};
