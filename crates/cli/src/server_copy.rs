//! A copy of a cluster that a real server may have: started, read, changed, and removed again.

use std::path::{Path, PathBuf};

use pgclinic_servers::{
    Installation, RunAs, Scratch, Server, StartOptions, Wanted, copy_cluster, find,
};

use crate::exit::Failure;

/// The copy, in a directory of its own that is removed on drop.
pub(crate) struct ServerCopy {
    /// The data directory.
    pub(crate) pgdata: PathBuf,
    /// Of the cluster's major.
    pub(crate) installation: Installation,
    run_as: RunAs,
    _scratch: Scratch,
}

impl ServerCopy {
    /// Copies the cluster into `base`, by default the cache.
    pub(crate) fn make(
        pgdata: &Path,
        base: Option<&Path>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let wanted = Wanted {
            major: Some(major_of(pgdata)?),
            ..Wanted::default()
        };
        let installation = find(&wanted, say)?;
        Self::of(installation, pgdata, base, say)
    }

    /// The same for this server.
    pub(crate) fn of(
        installation: Installation,
        pgdata: &Path,
        base: Option<&Path>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let run_as = RunAs::new(None)?;
        let scratch = Scratch::new(&run_as, base)?;
        say("copying the cluster");
        let copied = copy_cluster(pgdata, scratch.path())?;
        for folder in copied.tablespaces.iter().chain([&copied.pgdata]) {
            own_tree(folder, &run_as)?;
        }
        Ok(ServerCopy {
            pgdata: copied.pgdata,
            installation,
            run_as,
            _scratch: scratch,
        })
    }

    /// Starts its server.
    pub(crate) fn start(&self, options: &StartOptions) -> pgclinic_servers::Result<Server> {
        Server::start(&self.installation, &self.run_as, &self.pgdata, options)
    }
}

/// The major in `PG_VERSION`.
pub(crate) fn major_of(pgdata: &Path) -> Result<u16, Failure> {
    let path = pgdata.join("PG_VERSION");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let major = text.trim().parse();
    major.map_err(|_| {
        Failure::new(format!(
            "{} names no major: {:?}",
            path.display(),
            text.trim()
        ))
    })
}

/// A server takes only what is its user's own.
fn own_tree(folder: &Path, run_as: &RunAs) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Failure::new(format!("cannot list {path}: {error}"))
    };
    let own = |path: &Path| run_as.own(path).map_err(Failure::new);
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        own(&folder)?;
        for entry in std::fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let kind = entry.file_type().map_err(failed(&folder))?;
            match kind {
                kind if kind.is_dir() => open.push(entry.path()),
                // A link leads to a folder that is owned by itself.
                kind if kind.is_symlink() => {}
                _ => own(&entry.path())?,
            }
        }
    }
    Ok(())
}
