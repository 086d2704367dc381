//! One PostgreSQL on this machine: a folder of programs and the version they name themselves.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// The majors whose files are known.
pub const MAJORS: RangeInclusive<u16> = 13..=18;

/// Programs without which a folder is no installation.
const NEEDED: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// A complete PostgreSQL: its programs and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The folder that holds `postgres`.
    pub bindir: PathBuf,
    /// 13 to 18.
    pub major: u16,
    /// As `postgres --version` says it, without the packager's remark: `15.14`.
    pub version: String,
}

impl Installation {
    /// The installation in `bindir`, after asking `postgres --version`. Refuses incomplete folders
    /// and other majors.
    pub fn at(bindir: impl Into<PathBuf>) -> Result<Self> {
        let bindir = bindir.into();
        if let Some(missing) = NEEDED.iter().find(|name| !bindir.join(name).is_file()) {
            let why = format!("{missing} is missing");
            return Err(Error::NotAnInstallation { bindir, why });
        }
        let version = ask_version(&bindir)?;
        match parse_major(&version) {
            Some(major) if MAJORS.contains(&major) => Ok(Self {
                bindir,
                major,
                version,
            }),
            _ => Err(Error::Unsupported { version }),
        }
    }

    /// The installation in or below `folder`: its programs, the folder that holds `bin`, a Debian
    /// tree, an unpacked Python wheel. Of several majors the newest.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let found = places_in(folder);
        let mut refused = None;
        for bindir in found {
            match Self::at(bindir) {
                Ok(installation) => return Ok(installation),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        // Its complaint names what a folder of programs lacks.
        refused.map_or_else(|| Self::at(folder), Err)
    }

    /// The path of a program such as `pg_amcheck`, or `None` when this installation does not have
    /// it.
    pub fn tool(&self, name: &str) -> Option<PathBuf> {
        let path = self.bindir.join(name);
        path.is_file().then_some(path)
    }

    /// Major and minor as numbers, for finding the newest; a beta counts as minor 0.
    pub(crate) fn order(&self) -> (u16, u16) {
        let minor = self
            .version
            .split_once('.')
            .and_then(|(_, minor)| minor.parse().ok());
        (self.major, minor.unwrap_or(0))
    }
}

/// Where `postgres` lies in `folder`, the likeliest place first.
fn places_in(folder: &Path) -> Vec<PathBuf> {
    let mut places = vec![folder.to_path_buf(), folder.join("bin")];
    for major in MAJORS.rev() {
        places.push(folder.join(format!("usr/lib/postgresql/{major}/bin")));
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut wheels: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join("pginstall/bin")))
        .collect();
    wheels.sort();
    places.push(folder.join("pginstall/bin"));
    places.extend(wheels);
    places.retain(|place| place.join("postgres").is_file());
    places
}

/// What a program of another system says here, and what helps.
fn foreign(said: &str) -> &'static str {
    if said.contains("GLIBC_") || said.contains("error while loading shared libraries") {
        ". It belongs to another system; `cargo xtask servers --adopt DIR` makes the servers of a Debian tree run here"
    } else {
        ""
    }
}

fn ask_version(bindir: &Path) -> Result<String> {
    let failed = |why: String| Error::NotAnInstallation {
        bindir: bindir.to_path_buf(),
        why,
    };
    let answer = Command::new(bindir.join("postgres"))
        .arg("--version")
        .output();
    let answer = answer.map_err(|error| failed(format!("postgres --version: {error}")))?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    parse_version(&text).ok_or_else(|| {
        let said = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
        failed(format!(
            "postgres --version said {:?} {said:?}{}",
            text.trim(),
            foreign(&said)
        ))
    })
}

/// `15.14` out of `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn parse_version(text: &str) -> Option<String> {
    let rest = text.trim().strip_prefix("postgres (PostgreSQL) ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// 18 out of `18.1` and out of `18beta2`.
fn parse_major(version: &str) -> Option<u16> {
    let end = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packagers_and_betas_name_their_version_in_other_ways() {
        let debian = "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n";
        assert_eq!(parse_version(debian).as_deref(), Some("15.14"));
        assert_eq!(parse_major("18beta2"), Some(18));
        assert_eq!(parse_version("postgres: command not found"), None);
        assert_eq!(parse_major("devel"), None);
    }

    #[test]
    fn a_program_of_a_newer_system_names_the_way_out() {
        assert!(foreign("libc.so.6: version `GLIBC_2.38' not found").contains("--adopt"));
        assert_eq!(foreign("Killed"), "");
    }

    #[test]
    fn an_empty_folder_is_refused_with_the_missing_program() {
        let error = Installation::at("/nonexistent").unwrap_err().to_string();
        assert!(error.contains("/nonexistent: initdb is missing"), "{error}");
    }
}
