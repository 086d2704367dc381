//! Debian's newer releases, unpacked beside the machine's own: their servers run from outside,
//! without chroot.
//!
//! apt, told that nothing is installed, gives every package that the servers need, the C library
//! included. A program names its loader by an absolute path and finds libraries where the loader
//! looks; both are changed to the folder's own with `patchelf`, so that a program there is started
//! like any other, by anybody, and starts its sisters likewise.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Supply, programs};
use crate::apt::{apt, make_folders, source_of};
use crate::shell::{self, at};
use crate::task::Outcome;

pub(super) const TRIXIE: Supply = Supply {
    name: "debian-trixie",
    what: "PostgreSQL 17 of Debian trixie, with LZ4 and JIT",
    on_request: false,
    needs: &["apt-get", "dpkg-deb"],
    make: |folder| make(folder, "trixie", &["postgresql-17"]),
};

pub(super) const SID: Supply = Supply {
    name: "debian-sid",
    what: "PostgreSQL 18 of Debian sid, with LZ4, JIT, io_uring and psql's OAuth",
    on_request: false,
    needs: &["apt-get", "dpkg-deb"],
    make: |folder| {
        make(
            folder,
            "sid",
            &["postgresql-18", "postgresql-18-jit", "libpq-oauth"],
        )
    },
};

fn make(folder: &Path, release: &str, packages: &[&str]) -> Outcome {
    let workshop = folder.join("apt");
    make_folders(&workshop)?;
    let source = source_of(release).ok_or("this is no Debian with package sources")?;
    write(&workshop.join("sources.d/servers.sources"), &source)?;
    // An empty list of installed packages: everything that is needed comes along.
    write(&workshop.join("status"), "")?;
    shell::capture(quiet(&workshop).arg("update"))?;
    let mut install = quiet(&workshop);
    install
        .args([
            "--yes",
            "--download-only",
            "--no-install-recommends",
            "install",
            "patchelf",
        ])
        .args(packages);
    shell::capture(&mut install)?;
    let archives = workshop.join("cache/archives");
    for package in files_in(&archives)? {
        if package
            .extension()
            .is_some_and(|extension| extension == "deb")
        {
            let mut unpack = Command::new("dpkg-deb");
            shell::capture(unpack.arg("-x").arg(&package).arg(folder))?;
        }
    }
    std::fs::remove_dir_all(&workshop).map_err(at(&workshop))?;
    adopt(folder)
}

fn quiet(workshop: &Path) -> Command {
    let mut command = apt(workshop, "apt-get");
    let status = workshop.join("status");
    command
        .args(["-q", "-o"])
        .arg(format!("Dir::State::status={}", status.display()))
        // The lists of an unstable release on a mirror that stands still are old.
        .args(["-o", "Acquire::Check-Valid-Until=false"]);
    command
}

/// Makes the servers in a Debian tree (of `debootstrap` too) run from outside. Twice does no harm.
pub(super) fn adopt(root: &Path) -> Outcome {
    let root = root.canonicalize().map_err(at(root))?;
    let servers = folders_in(&root.join("usr/lib/postgresql"))?;
    if servers.is_empty() {
        return Err(format!("{}: no usr/lib/postgresql in it", root.display()));
    }
    let libraries = libraries(&root)?;
    let loader = find_in(&libraries, "ld-linux")
        .ok_or_else(|| format!("{}: no loader in it", libraries.display()))?;
    let patchelf = Patchelf {
        root: &root,
        libraries: &libraries,
        loader: &loader,
    };
    for server in servers {
        for program in files_in(&server.join("bin"))? {
            // Some are links to scripts.
            if is_elf(&program) {
                patchelf.change(&program, true)?;
            }
        }
    }
    // A library with a search path of its own does not use the program's.
    for library in files_in(&libraries)? {
        if is_elf(&library) && patchelf.has_search_path(&library)? {
            patchelf.change(&library, false)?;
        }
    }
    Ok(())
}

struct Patchelf<'a> {
    root: &'a Path,
    libraries: &'a Path,
    loader: &'a Path,
}

impl Patchelf<'_> {
    /// The machine's `patchelf`, else the one in the tree, which runs by the tree's own loader.
    fn command(&self) -> Result<Command, String> {
        let own = self.root.join("usr/bin/patchelf");
        if own.exists() {
            let mut command = Command::new(self.loader);
            command.arg("--library-path").arg(self.libraries).arg(own);
            return Ok(command);
        }
        if programs::has("patchelf") {
            return Ok(Command::new("patchelf"));
        }
        Err("patchelf is not installed, neither here nor in the folder".into())
    }

    fn change(&self, file: &Path, is_program: bool) -> Outcome {
        let mut command = self.command()?;
        if is_program {
            command.arg("--set-interpreter").arg(self.loader);
        }
        // The older kind of search path, which holds for the libraries of libraries too.
        command
            .args(["--force-rpath", "--set-rpath"])
            .arg(self.libraries)
            .arg(file);
        shell::capture(&mut command).map(drop)
    }

    fn has_search_path(&self, file: &Path) -> Result<bool, String> {
        let output = shell::output(self.command()?.arg("--print-rpath").arg(file))?;
        Ok(output.status.success() && !output.stdout.trim_ascii().is_empty())
    }
}

/// `usr/lib/x86_64-linux-gnu`, whatever the machine is called.
fn libraries(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("usr/lib");
    folders_in(&folder)?
        .into_iter()
        .find(|path| path.join("libc.so.6").exists())
        .ok_or_else(|| format!("{}: no C library below it", folder.display()))
}

fn find_in(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let starts = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    files_in(folder).ok()?.into_iter().find(starts)
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    let read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    !is_link && read.is_ok() && magic == *b"\x7fELF"
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    entries(folder, |path| path.is_file())
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    entries(folder, |path| path.is_dir())
}

fn entries(folder: &Path, wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| wanted(path))
        .collect();
    found.sort();
    Ok(found)
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text).map_err(at(path))
}
