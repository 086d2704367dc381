//! `--recover`: a real server recovers a copy of the cluster, and the copy is salvaged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_servers::{
    RunAs, Scratch, Server, StartOptions, StopMode, Wanted, copy_cluster, find,
};

use crate::exit::Failure;
use crate::stillness::Stillness;

/// Recovery may have much to do.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// A copy of a cluster that its own server recovered and shut down; removed on drop.
pub(super) struct Recovered {
    /// The data directory.
    pub(super) pgdata: PathBuf,
    _scratch: Scratch,
}

/// Copies the cluster into `base`, by default the cache, and lets a server of its major recover the
/// copy. The files must stand still until they are copied: a copy of files that move is not one of
/// any moment, and recovery makes no sense of it.
pub(super) fn recover(
    pgdata: &Path,
    base: Option<&Path>,
    still: &Stillness,
    say: &mut dyn FnMut(&str),
) -> Result<Recovered, Failure> {
    let failure = |error: pgclinic_servers::Error| Failure::new(format!("--recover: {error}"));
    let wanted = Wanted {
        major: Some(major_of(pgdata)?),
        ..Wanted::default()
    };
    let installation = find(&wanted, say).map_err(failure)?;
    let run_as = RunAs::new(None).map_err(failure)?;
    let scratch = Scratch::new(&run_as, base).map_err(failure)?;
    say("copying the cluster");
    let copied = copy_cluster(pgdata, scratch.path()).map_err(failure)?;
    still.holds()?;
    for folder in copied.tablespaces.iter().chain([&copied.pgdata]) {
        own_tree(folder, &run_as)?;
    }
    say("recovering the copy");
    let options = StartOptions {
        timeout: PATIENCE,
        ..StartOptions::default()
    };
    let options = options.with("max_prepared_transactions", "1000");
    let mut server =
        Server::start(&installation, &run_as, &copied.pgdata, &options).map_err(failure)?;
    server.stop(StopMode::Fast).map_err(failure)?;
    Ok(Recovered {
        pgdata: copied.pgdata,
        _scratch: scratch,
    })
}

fn major_of(pgdata: &Path) -> Result<u16, Failure> {
    let path = pgdata.join("PG_VERSION");
    let text = super::read_text(&path)?;
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
    let own = |path: &Path| {
        let owned = run_as.own(path);
        owned.map_err(|error| Failure::new(format!("--recover: {error}")))
    };
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
