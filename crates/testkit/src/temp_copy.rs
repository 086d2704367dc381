//! A copy of a seed for one test: hurt it, start it, throw it away.

use std::path::PathBuf;

use pgclinic_servers::{Installation, Result, Scratch, Server, StartOptions, copy_cluster};

use crate::scratch::new_scratch;
use crate::seeds::Seeded;

/// A cluster of its own, removed on drop. Drop a [`Server`] on it first.
#[derive(Debug)]
pub struct TempCopy {
    /// The data directory.
    pub pgdata: PathBuf,
    /// The folders of its tablespaces.
    pub tablespaces: Vec<PathBuf>,
    installation: Installation,
    _scratch: Scratch,
}

/// Copies a seed, tablespace included.
pub fn copy_of(seeded: &Seeded) -> TempCopy {
    make_copy(seeded)
        .unwrap_or_else(|error| panic!("a copy of {}: {error}", seeded.pgdata.display()))
}

fn make_copy(seeded: &Seeded) -> Result<TempCopy> {
    let scratch = new_scratch()?;
    let copied = copy_cluster(&seeded.pgdata, scratch.path())?;
    Ok(TempCopy {
        pgdata: copied.pgdata,
        tablespaces: copied.tablespaces,
        installation: seeded.installation.clone(),
        _scratch: scratch,
    })
}

impl TempCopy {
    /// Starts the server that made the seed on this copy; a hurt copy may refuse.
    pub fn start(&self) -> Result<Server> {
        self.start_with(&StartOptions::default())
    }

    /// The same with other settings.
    pub fn start_with(&self, options: &StartOptions) -> Result<Server> {
        Server::start(&self.installation, &crate::run_as(), &self.pgdata, options)
    }
}
