//! The rehearsal: a real cluster is filled, copied, hurt, checked, mended and started hurt, and
//! everything that was expected is compared with what happened.
//!
//! ```text
//! master (healthy, stopped) ─► bench copy ─► hurt ─► check ─► undo = first bytes? ─► hurt again
//!     ▲                                                                                  │
//!     └────────────── refresh: changed files are copied anew ◄── server reads everything ┘
//! ```

pub(crate) mod bench_copy;
pub(crate) mod blind;
pub(crate) mod crew;
pub(crate) mod injury_set;
pub(crate) mod judge;
pub(crate) mod loss;
pub(crate) mod master;
pub(crate) mod matrix;
pub(crate) mod oracle;
pub(crate) mod readings;
pub(crate) mod rehearsal;
mod salvage_options;
pub(crate) mod scenario;
pub(crate) mod start;
