//! The folder that the corpus is kept in, and the tools that recipes share.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipe::Unmade;
use crate::postgres::{Server, Tools, as_server_user, user_id};
use crate::shell::{self, at};
use crate::task::Outcome;

/// The cache of the corpus.
pub(super) struct Workshop {
    folder: PathBuf,
    cache: PathBuf,
}

impl Workshop {
    /// In the first of the usual caches that can be used.
    pub(super) fn open() -> Result<Self, String> {
        let own = format!("/var/tmp/pgclinic-{}", user_id().unwrap_or_default());
        let mut refused = String::new();
        for cache in ["/var/cache/pgclinic", "/var/tmp/pgclinic", own.as_str()] {
            let cache = PathBuf::from(cache);
            let folder = cache.join("corpus");
            match std::fs::create_dir_all(&folder).map_err(at(&folder)) {
                Ok(()) if is_writable(&folder) => return Ok(Self { folder, cache }),
                Ok(()) => refused = format!("{} is not ours to write in", folder.display()),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Where the recipes' folders lie.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The installation of 15, which alone brings the test drivers along.
    pub(super) fn fifteen(&self) -> Result<Tools, Unmade> {
        Tools::of_major(15).ok_or_else(|| Unmade::Lacking("no PostgreSQL 15 is installed".into()))
    }

    /// Any installed PostgreSQL.
    pub(super) fn installed(&self) -> Result<Tools, Unmade> {
        Tools::find().ok_or_else(|| Unmade::Lacking("no PostgreSQL is installed".into()))
    }

    /// The PostgreSQL whose programs lie in this folder, or any installed one.
    pub(super) fn chosen(&self, folder: Option<&str>) -> Result<Tools, Unmade> {
        let Some(folder) = folder else {
            return self.installed();
        };
        let none = || Unmade::Failed(format!("{folder} holds no initdb"));
        Tools::at(PathBuf::from(folder)).ok_or_else(none)
    }

    /// The newest server of `major` that the tests have fetched.
    pub(super) fn fetched(&self, major: u32) -> Result<Tools, Unmade> {
        let folder = self.cache.join("postgresql");
        let entries = std::fs::read_dir(&folder).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let minor = |name: &str| {
            let (own, minor) = name.split_once('.')?;
            (own.parse() == Ok(major)).then(|| minor.parse::<u32>().ok())?
        };
        let newest = names.filter_map(|name| Some((minor(&name)?, name))).max();
        newest
            .and_then(|(_, name)| Tools::at(folder.join(name).join("bin")))
            .ok_or_else(|| {
                Unmade::Lacking(format!(
                    "no PostgreSQL {major} was fetched; the tests do that"
                ))
            })
    }
}

fn is_writable(folder: &Path) -> bool {
    let probe = folder.join(format!("probe-{}", std::process::id()));
    std::fs::create_dir(&probe).is_ok() && std::fs::remove_dir(&probe).is_ok()
}

/// Copies a stopped cluster, owners and links included.
pub(super) fn copy(from: &Path, to: &Path) -> Outcome {
    shell::capture(Command::new("cp").arg("-a").arg(from).arg(to)).map(drop)
}

/// Runs a script in a database; a statement that fails is an error.
pub(super) fn sql(server: &Server<'_>, database: &str, script: &str) -> Outcome {
    let mut psql = server.client("psql");
    psql.args([
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "postgres",
        "-d",
        database,
    ]);
    psql.args(["-o", "/dev/null", "-c", script]);
    shell::capture(&mut psql).map(drop)
}

/// Runs a script that lies where the servers' user can read it; statements may fail.
pub(super) fn sql_file(server: &Server<'_>, database: &str, file: &Path) -> Outcome {
    let mut psql = server.client("psql");
    psql.args([
        "-X",
        "-q",
        "-U",
        "postgres",
        "-o",
        "/dev/null",
        "-d",
        database,
        "-f",
    ]);
    shell::output(psql.arg(file)).map(drop)
}

/// Makes a folder that the servers' user owns.
pub(super) fn folder_of_server(path: &Path) -> Outcome {
    shell::capture(as_server_user(Path::new("/bin/mkdir")).arg("-p").arg(path)).map(drop)
}
