//! Real clusters for tests: made once, kept in the cache, copied for each test.
//!
//! ```text
//! server(15) ──► seed(&installation, Checksums::On) ──► copy_of(&seeded) ──► TempCopy
//!                  made once for each version              owned by the test, gone on drop
//! ```
//!
//! For tests only, so what goes wrong panics with a sentence.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    reason = "for tests only, so what goes wrong panics"
)]

mod archives;
mod at_work;
mod backups;
mod checkup;
mod scratch;
mod seeds;
mod standbys;
mod temp_copy;

pub use archives::{Packing, archived};
pub use at_work::{
    CHANGES, Load, busy, clinic, execute, overwrite, started, value, while_it_restarts,
};
pub use backups::{
    Backups, as_primary, base_backup, plain_backup, streamed_backup, with_summaries,
};
pub use checkup::{Quiet, checked, checked_only, directory, open};
pub use scratch::scratch;
pub use seeds::{Seeded, seed};
pub use standbys::{catch_up, standby};
pub use temp_copy::{TempCopy, copy_of};

use pgclinic_servers::{Installation, MAJORS, RunAs, Wanted, fetched, find};

/// A server of this major: an installed one, else a fetched one.
pub fn server(major: u16) -> Installation {
    let wanted = Wanted {
        major: Some(major),
        ..Wanted::default()
    };
    find(&wanted, &mut |_| {})
        .unwrap_or_else(|error| panic!("PostgreSQL {major} for tests: {error}"))
}

/// A fetched server of each major 13-18, so that all of them are built alike.
pub fn all_majors() -> Vec<Installation> {
    let one = |major| {
        let wanted = Wanted {
            major: Some(major),
            ..Wanted::default()
        };
        fetched(&wanted, &mut |_| {})
            .unwrap_or_else(|error| panic!("PostgreSQL {major} for tests: {error}"))
    };
    MAJORS.map(one).collect()
}

/// The user that servers of tests run as.
pub fn run_as() -> RunAs {
    RunAs::new(None).unwrap_or_else(|error| panic!("a user for the servers of tests: {error}"))
}
