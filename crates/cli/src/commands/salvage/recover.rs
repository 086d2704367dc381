//! `--recover`: a real server recovers a copy of the cluster, and the copy is salvaged.

use std::path::Path;
use std::time::Duration;

use pgclinic_servers::{StartOptions, StopMode};

use crate::exit::Failure;
use crate::server_copy::ServerCopy;
use crate::stillness::Stillness;

/// Recovery may have much to do.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// Copies the cluster into `base`, by default the cache, and lets a server of its major recover the
/// copy and shut it down. The files must stand still until they are copied: a copy of files that
/// move is not one of any moment, and recovery makes no sense of it.
pub(super) fn recover(
    pgdata: &Path,
    base: Option<&Path>,
    still: &Stillness,
    say: &mut dyn FnMut(&str),
) -> Result<ServerCopy, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::new(format!("--recover: {error}"));
    let copy = ServerCopy::make(pgdata, base, say).map_err(|error| failure(&error.0))?;
    still.holds()?;
    say("recovering the copy");
    let options = StartOptions {
        timeout: PATIENCE,
        ..StartOptions::default()
    };
    let options = options.with("max_prepared_transactions", "1000");
    let mut server = copy.start(&options).map_err(|error| failure(&error))?;
    server
        .stop(StopMode::Fast)
        .map_err(|error| failure(&error))?;
    drop(server);
    Ok(copy)
}
