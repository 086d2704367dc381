//! Debian's source package of PostgreSQL 15, for its test suites: fetched and unpacked once, its
//! test library built.
//!
//! apt works in folders of its own here, so that the machine's package lists stay as they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipe::Unmade;
use super::workshop::Workshop;
use crate::apt::{apt, make_folders, sources};
use crate::postgres;
use crate::shell::{self, at};
use crate::task::Outcome;

const PACKAGE: &str = "postgresql-15";
const HEADERS: &str = "postgresql-server-dev-15";

/// Modules of the server that the regression suite loads beside its own.
const CONTRIB: [&str; 2] = ["refint.so", "autoinc.so"];

/// What was unpacked and built.
pub(super) struct Debian {
    /// The source tree.
    pub(super) source: PathBuf,
    /// `regress.so` and its companions.
    pub(super) libraries: PathBuf,
}

/// The package, fetched now if it is not there.
pub(super) fn ensure(shop: &Workshop) -> Result<Debian, Unmade> {
    let home = shop.folder().join("debian");
    if !home.exists() {
        for program in ["apt-get", "dpkg-deb", "tar", "bzip2", "gcc"] {
            if !has(program) {
                return Err(Unmade::Lacking(format!("{program} is not installed")));
            }
        }
        let part = shop.folder().join("debian.part");
        if part.exists() {
            std::fs::remove_dir_all(&part).map_err(at(&part))?;
        }
        fetch(&part)?;
        unpack(&part)?;
        build(shop, &part)?;
        std::fs::rename(&part, &home).map_err(at(&home))?;
    }
    Ok(Debian {
        source: home.join("source"),
        libraries: home.join("libraries"),
    })
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn fetch(home: &Path) -> Result<(), Unmade> {
    make_folders(home)?;
    let sources = sources();
    if sources.is_empty() {
        return Err(Unmade::Lacking(
            "this is no Debian with package sources".into(),
        ));
    }
    let file = home.join("sources.d/corpus.sources");
    std::fs::write(&file, sources).map_err(at(&file))?;
    shell::capture(apt(home, "apt-get").args(["-q", "update"]))?;
    let versions = versions(home)?;
    // Headers of another minor may promise what the installed server does not have.
    for words in [&["source", "--download-only"][..], &["download"]] {
        let package = if words.len() == 2 { PACKAGE } else { HEADERS };
        let got = versions.iter().any(|version| {
            let mut get = apt(home, "apt-get");
            get.arg("-q")
                .args(words)
                .arg(format!("{package}={version}"));
            shell::capture(&mut get).is_ok()
        });
        if !got {
            return Err(Unmade::Lacking(format!("{package} cannot be had")));
        }
    }
    Ok(())
}

/// The versions on offer, the installed one first.
fn versions(home: &Path) -> Result<Vec<String>, String> {
    let shown = shell::capture(apt(home, "apt-cache").args(["showsrc", PACKAGE]))?;
    let offered = shown
        .lines()
        .filter_map(|line| line.strip_prefix("Version: "));
    let mut versions: Vec<String> = offered.map(str::to_string).collect();
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${Version}", PACKAGE]);
    let installed = shell::capture(&mut query).unwrap_or_default();
    versions.sort_by_key(|version| *version != installed);
    Ok(versions)
}

fn unpack(home: &Path) -> Outcome {
    let packages = home.join("packages");
    for entry in std::fs::read_dir(&packages).map_err(at(&packages))? {
        let path = entry.map_err(at(&packages))?.path();
        let name = path.to_string_lossy().into_owned();
        if name.ends_with(".orig.tar.bz2") {
            let source = home.join("source");
            std::fs::create_dir(&source).map_err(at(&source))?;
            let mut tar = Command::new("tar");
            tar.args(["--strip-components=1", "--no-same-owner", "-xjf"])
                .arg(&path);
            shell::capture(tar.arg("-C").arg(&source))?;
        } else if name.ends_with(".deb") {
            let mut unpack = Command::new("dpkg-deb");
            shell::capture(unpack.arg("-x").arg(&path).arg(home.join("headers")))?;
        }
    }
    Ok(())
}

fn build(shop: &Workshop, home: &Path) -> Result<(), Unmade> {
    let libraries = home.join("libraries");
    std::fs::create_dir(&libraries).map_err(at(&libraries))?;
    let include = home.join("headers/usr/include/postgresql");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fPIC", "-shared", "-w", "-o"])
        .arg(libraries.join("regress.so"))
        .arg("-I")
        .arg(include.join("15/server"))
        .arg("-I")
        .arg(&include)
        .arg(home.join("source/src/test/regress/regress.c"));
    shell::capture(&mut gcc)?;
    let installed = shop.fifteen()?.folder().join("../lib");
    for name in CONTRIB {
        let from = installed.join(name);
        std::fs::copy(&from, libraries.join(name)).map_err(at(&from))?;
    }
    // The suites are read by the servers' user.
    shell::capture(Command::new("chmod").args(["-R", "a+rX"]).arg(home))?;
    if postgres::user_id() == Some(0) {
        shell::capture(Command::new("chown").args(["-R", "root:root"]).arg(home))?;
    }
    Ok(())
}
