//! Targets that are looked at while they pass by: packed archives at level `pages`, and a running
//! server over the network.

mod archives;
mod databases_of_server;
mod files_of_server;
mod server;

pub(crate) use archives::check_archives;
pub(crate) use server::check_server;

use pgclinic_check::CheckOptions;
use pgclinic_spill::Limit;

/// How many pages that looked wrong are kept.
fn suspects_max(options: &CheckOptions, block_bytes: u32) -> usize {
    let bytes = options.memory.limit(Limit::StreamSuspects, options.threads);
    usize::try_from(bytes / u64::from(block_bytes.max(1)))
        .unwrap_or(usize::MAX)
        .max(1)
}

/// The text is the URL of a server.
pub(crate) fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}
