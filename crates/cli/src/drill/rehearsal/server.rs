//! What a server says of the damaged copy: one of the cluster's major is started on a second copy,
//! so that nothing that it writes counts, and reads everything.

use std::path::Path;
use std::time::Duration;

use pgclinic_model::document::{RehearsalServer, ServerAnswer};
use pgclinic_servers::{StartOptions, StopMode, Wanted as WantedServer, here};

use super::{Asking, Wanted};
use crate::drill::master;
use crate::drill::oracle::{Heard, fatal_lines, read_everything};
use crate::drill::readings::{self, without_pages};
use crate::exit::Failure;
use crate::server_copy::{ServerCopy, major_of};

/// A statement on a damaged page may run for ever; a large table takes its time too.
const PATIENCE: Duration = Duration::from_secs(600);

/// What it says, or why nobody asked.
pub(super) fn asked(
    pgdata: &Path,
    wanted: &Wanted<'_>,
    scratch: &Path,
    tell: &mut dyn FnMut(&str),
) -> RehearsalServer {
    answer(pgdata, wanted, scratch, tell).unwrap_or_else(|failure| RehearsalServer {
        not_asked: Some(failure.0),
        ..RehearsalServer::default()
    })
}

fn answer(
    pgdata: &Path,
    wanted: &Wanted<'_>,
    scratch: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<RehearsalServer, Failure> {
    if wanted.server == Asking::Never {
        return Err(Failure::new("--no-server"));
    }
    let major = major_of(pgdata)?;
    let found = here(&WantedServer {
        major: Some(major),
        ..WantedServer::default()
    });
    let installation = found.ok_or_else(|| {
        Failure::new(format!(
            "no PostgreSQL {major} is installed on this machine"
        ))
    })?;
    tell(&format!(
        "a server {} reads a second copy",
        installation.version
    ));
    let mut readings = readings::of(&master::open(pgdata)?);
    readings.retain(|own| wanted.database.is_none_or(|name| own.database == name));
    without_pages(&mut readings);
    let version = installation.version.clone();
    let copy = ServerCopy::of(installation, pgdata, Some(scratch), tell)?;
    // Libraries of the original's machine may be missing on this one.
    let options = StartOptions {
        timeout: PATIENCE,
        ..StartOptions::default()
    };
    let options = options.with("shared_preload_libraries", "");
    let mut heard = Heard::default();
    match copy.start(&options) {
        Ok(mut server) => {
            read_everything(&server, &readings, PATIENCE, &mut heard);
            let _the_copy_is_removed = server.stop(StopMode::Immediate);
        }
        Err(error) => {
            heard.answer = ServerAnswer {
                messages: fatal_lines(&error.to_string()),
                ..ServerAnswer::default()
            };
        }
    }
    Ok(RehearsalServer {
        version: Some(version),
        not_asked: None,
        answer: heard.answer,
    })
}
