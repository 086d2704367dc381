//! Which PostgreSQL to use: the named one, else an installed one, else a fetched one.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::cache::{cache_folder, make_folder, trusted_folders};
use crate::error::{Error, Result};
use crate::fetch::fetch;
use crate::installation::{Installation, MAJORS};

/// The major that is fetched when none is asked for.
const DEFAULT_MAJOR: u16 = 18;

/// What to look for. The default is any installed one, the newest first, else a fetched 18.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The installation in this folder ([`Installation::in_folder`]) and no other.
    pub bindir: Option<PathBuf>,
    /// This major, 13 to 18.
    pub major: Option<u16>,
    /// This minor of `major`; then an installed other minor does not do.
    pub minor: Option<u16>,
    /// Where fetched ones are kept; by default `postgresql` in [`cache_folder`].
    pub cache: Option<PathBuf>,
}

/// Finds, and where necessary fetches, a PostgreSQL. `progress` hears one line per slow step.
pub fn find(wanted: &Wanted, progress: &mut dyn FnMut(&str)) -> Result<Installation> {
    if let Some(bindir) = &wanted.bindir {
        return given(bindir, wanted.major);
    }
    if let Some(major) = wanted.major
        && !MAJORS.contains(&major)
    {
        return Err(Error::Unsupported {
            version: major.to_string(),
        });
    }
    if let Some(found) = newest(installed(), wanted) {
        return Ok(found);
    }
    fetched(wanted, progress)
}

/// What [`find`] gives as long as nothing has to be fetched.
pub fn here(wanted: &Wanted) -> Option<Installation> {
    newest(installed(), wanted).or_else(|| newest(in_caches(wanted), wanted))
}

/// What was fetched before.
fn in_caches(wanted: &Wanted) -> Vec<Installation> {
    let known = match &wanted.cache {
        Some(folder) => vec![folder.clone()],
        None => trusted_folders()
            .iter()
            .map(|folder| folder.join("postgresql"))
            .collect(),
    };
    known.iter().flat_map(|cache| in_cache(cache)).collect()
}

/// Finds a fetched PostgreSQL in the cache, or fetches it, even when one is installed.
pub fn fetched(wanted: &Wanted, progress: &mut dyn FnMut(&str)) -> Result<Installation> {
    if let Some(found) = newest(in_caches(wanted), wanted) {
        return Ok(found);
    }
    let cache = match &wanted.cache {
        Some(folder) => folder.clone(),
        None => cache_folder()?.join("postgresql"),
    };
    // One download serves all who wait for it, in this process and in others.
    let _lock = lock_for_fetching(&cache)?;
    if let Some(found) = newest(in_cache(&cache), wanted) {
        return Ok(found);
    }
    fetch(
        &cache,
        wanted.major.unwrap_or(DEFAULT_MAJOR),
        wanted.minor,
        progress,
    )
}

fn lock_for_fetching(cache: &Path) -> Result<File> {
    make_folder(cache, 0o755)?;
    let path = cache.join("fetch.lock");
    let lock = File::create(&path).map_err(Error::io("create", &path))?;
    lock.lock().map_err(Error::io("lock", &path))?;
    Ok(lock)
}

/// The complete installations of 13-18 in the places where packages put them, the newest first.
pub fn installed() -> Vec<Installation> {
    let mut folders: Vec<PathBuf> = MAJORS
        .flat_map(|major| {
            [
                format!("/usr/lib/postgresql/{major}/bin"),
                format!("/usr/pgsql-{major}/bin"),
            ]
        })
        .map(PathBuf::from)
        .collect();
    folders.push(PathBuf::from("/usr/local/pgsql/bin"));
    folders.extend(
        std::env::var_os("PATH")
            .iter()
            .flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>()),
    );
    let mut found: Vec<Installation> = Vec::new();
    for folder in folders {
        // A link in PATH leads to the folder that also holds the libraries and contrib's programs.
        let Some(bindir) = folder
            .join("postgres")
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.parent()?.to_path_buf()))
        else {
            continue;
        };
        if found.iter().all(|known| known.bindir != bindir) {
            found.extend(Installation::at(bindir));
        }
    }
    found.sort_by_key(|installation| std::cmp::Reverse(installation.order()));
    found
}

/// A folder of `cargo xtask servers` by its name, when it is there as a whole.
pub fn made_folder(name: &str) -> Option<PathBuf> {
    let mut folders = trusted_folders();
    for folder in &mut folders {
        folder.push("servers");
        folder.push(name);
    }
    folders
        .into_iter()
        .find(|folder| folder.join("complete").is_file())
}

/// What `cargo xtask servers` made, in the order of the folders' names: distributions' newer
/// releases and Python wheels.
pub fn made() -> Vec<Installation> {
    let complete = |folder: &PathBuf| folder.join("complete").is_file();
    let mut folders: Vec<PathBuf> = trusted_folders()
        .iter()
        .flat_map(|cache| {
            std::fs::read_dir(cache.join("servers"))
                .into_iter()
                .flatten()
        })
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(complete)
        .collect();
    folders.sort();
    folders
        .iter()
        .filter_map(|folder| Installation::in_folder(folder).ok())
        .collect()
}

/// Every PostgreSQL of 13-18 that can be used without fetching: installed, made, and fetched
/// before.
pub fn everywhere() -> Vec<Installation> {
    let mut found = installed();
    found.extend(made());
    let caches = trusted_folders();
    let mut fetched: Vec<Installation> = caches
        .iter()
        .flat_map(|cache| in_cache(&cache.join("postgresql")))
        .collect();
    fetched.sort_by_key(|installation| std::cmp::Reverse(installation.order()));
    found.extend(fetched);
    found
}

fn given(bindir: &Path, major: Option<u16>) -> Result<Installation> {
    let found = Installation::in_folder(bindir)?;
    match major {
        Some(major) if major != found.major => {
            let why = format!("it holds version {}, but {major} is wanted", found.version);
            Err(Error::NotAnInstallation {
                bindir: found.bindir,
                why,
            })
        }
        _ => Ok(found),
    }
}

fn in_cache(cache: &Path) -> Vec<Installation> {
    let Ok(entries) = std::fs::read_dir(cache) else {
        return Vec::new();
    };
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    // A folder whose name does not start with a digit is a download that was interrupted.
    let complete = folders.filter(|path| {
        path.file_name().is_some_and(|name| {
            name.as_encoded_bytes()
                .first()
                .is_some_and(u8::is_ascii_digit)
        })
    });
    complete
        .filter_map(|path| Installation::at(path.join("bin")).ok())
        .collect()
}

fn newest(found: Vec<Installation>, wanted: &Wanted) -> Option<Installation> {
    let fits = |installation: &Installation| {
        let (major, minor) = installation.order();
        wanted.major.unwrap_or(major) == major && wanted.minor.unwrap_or(minor) == minor
    };
    found
        .into_iter()
        .filter(fits)
        .max_by_key(Installation::order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_outside_13_to_18_is_refused_before_anything_is_fetched() {
        let wanted = Wanted {
            major: Some(12),
            ..Wanted::default()
        };
        let error = find(&wanted, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("PostgreSQL 12 is not supported"), "{error}");
    }

    #[test]
    fn the_newest_minor_wins_by_number_not_by_letter() {
        let one = |version: &str| Installation {
            bindir: PathBuf::from(version),
            major: 15,
            version: version.to_owned(),
        };
        let found = newest(vec![one("15.9"), one("15.14")], &Wanted::default()).expect("two fit");
        assert_eq!(found.version, "15.14");
        let exact = Wanted {
            major: Some(15),
            minor: Some(9),
            ..Wanted::default()
        };
        assert_eq!(
            newest(vec![one("15.9"), one("15.14")], &exact)
                .expect("one fits")
                .version,
            "15.9"
        );
    }
}
