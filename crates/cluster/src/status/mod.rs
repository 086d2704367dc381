//! The status logs (`pg_xact`, `pg_multixact`, `pg_commit_ts`) as files: which pages there are,
//! which there must be, and which are missing.

mod files;
mod gaps;
mod limits;
mod multixact_walk;
mod pages;
mod zeros;

pub use files::StatusFile;
pub use gaps::{Gap, gaps, lost_status_files};
pub use limits::{Span, StatusLimits, limits_of_checkpoint, status_limits};
pub use multixact_walk::{Membership, for_each_membership, for_each_offset};
pub use pages::StatusPages;
pub use zeros::{ZeroedStatus, forget_zeroed_status, zeroed_status};
