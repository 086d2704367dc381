//! What is handed out: a Debian package and an archive for everybody else, with the script that
//! verifies and installs it. Both hold the program, its manual pages, completions and licences.

use std::path::{Path, PathBuf};

use crate::repository;
use crate::shell::{self, at};
use crate::task::Outcome;

/// Below `packaging/`.
const INSTALL: &str = "install.sh";
/// As in `packaging/debian/control`.
const MAINTAINER: &str = "The pgclinic authors <authors@pgclinic.invalid>";
const SUMS: &str = "SHA256SUMS";
/// Shell, and where its completions go.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/pgclinic"),
    ("zsh", "share/zsh/vendor-completions/_pgclinic"),
    ("fish", "share/fish/vendor_completions.d/pgclinic.fish"),
];

/// What was made.
pub(super) struct Packages {
    pub(super) folder: PathBuf,
    pub(super) archive: PathBuf,
    pub(super) deb: Option<PathBuf>,
}

/// Makes all of it beside the program.
pub(super) fn make(binary: &Path) -> Result<Packages, String> {
    let folder = binary.parent().ok_or("the program has no directory")?;
    let name = format!("pgclinic-{}-linux-{}", version(), std::env::consts::ARCH);
    let tree = folder.join(&name);
    remove(&tree)?;
    lay_out(binary, &tree)?;
    let archive = folder.join(format!("{name}.tar.gz"));
    let mut tar = shell::command("tar", &["--sort=name", "--owner=0", "--group=0", "-C"]);
    tar.arg(folder).arg("-czf").arg(&archive).arg(&name);
    shell::capture(&mut tar)?;
    let deb = debian_package(folder, &tree)?;
    remove(&tree)?;
    let script = repository::root().join("packaging").join(INSTALL);
    std::fs::copy(&script, folder.join(INSTALL)).map_err(at(&script))?;
    let packages = Packages {
        folder: folder.to_path_buf(),
        archive,
        deb,
    };
    packages.write_sums()?;
    Ok(packages)
}

impl Packages {
    /// The files that are handed out.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let deb = self.deb.as_deref();
        std::iter::once(self.archive.as_path()).chain(deb)
    }

    fn write_sums(&self) -> Outcome {
        let mut sha256sum = shell::command("sha256sum", &[]);
        sha256sum.current_dir(&self.folder);
        sha256sum.args(self.files().filter_map(Path::file_name));
        let sums = self.folder.join(SUMS);
        std::fs::write(&sums, shell::capture(&mut sha256sum)?).map_err(at(&sums))
    }
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// With the number of the packaging.
fn debian_version() -> String {
    format!("{}-1", version())
}

/// What Debian's tools read; what changed stands in the project's own changelog.
fn debian_changelog() -> Result<String, String> {
    let mut git = shell::command("git", &["log", "-1", "--format=%cD"]);
    let date = shell::capture(&mut git)?;
    Ok(format!(
        "pgclinic ({}) unstable; urgency=medium\n\n  * Release {}: see changelog.gz.\n\n -- {MAINTAINER}  {}\n",
        debian_version(),
        version(),
        date.trim()
    ))
}

fn remove(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(folder)(error)),
        _ => Ok(()),
    }
}

/// Everything in its place below a prefix such as `/usr`.
fn lay_out(binary: &Path, tree: &Path) -> Outcome {
    copy(binary, &tree.join("bin/pgclinic"))?;
    let pages = tree.join("share/man/man1");
    shell::capture(shell::command(&binary.to_string_lossy(), &["man", "--to"]).arg(&pages))?;
    for (name, path) in COMPLETIONS {
        let words = ["completions", name];
        let script = shell::capture(&mut shell::command(&binary.to_string_lossy(), &words))?;
        write(&tree.join(path), &script)?;
    }
    let documents = tree.join("share/doc/pgclinic");
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&repository::root().join(name), &documents.join(name))?;
    }
    Ok(())
}

fn parent_of(path: &Path) -> Outcome {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(at(folder))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    parent_of(to)?;
    std::fs::copy(from, to).map(drop).map_err(at(from))
}

fn write(path: &Path, text: &str) -> Outcome {
    parent_of(path)?;
    std::fs::write(path, text).map_err(at(path))
}

/// Nothing where this machine cannot make one.
fn debian_package(folder: &Path, tree: &Path) -> Result<Option<PathBuf>, String> {
    let Ok(architecture) = shell::capture(&mut shell::command("dpkg", &["--print-architecture"]))
    else {
        println!("SKIPPED: dpkg is not installed, and no Debian package was made");
        return Ok(None);
    };
    let architecture = architecture.trim();
    let root = folder.join("debian");
    remove(&root)?;
    std::fs::create_dir_all(root.join("DEBIAN")).map_err(at(&root))?;
    let usr = root.join("usr");
    shell::capture(shell::command("cp", &["-a"]).arg(tree).arg(&usr))?;
    let documents = usr.join("share/doc/pgclinic");
    write(&documents.join("changelog.Debian"), &debian_changelog()?)?;
    let compress = "find usr/share/man -name '*.1' -exec gzip -9n {} + && \
         cd usr/share/doc/pgclinic && mv CHANGELOG.md changelog && rm LICENSE-* && \
         gzip -9n changelog changelog.Debian && cd - >/dev/null && \
         chmod -R u=rwX,go=rX .";
    shell::capture(shell::command("sh", &["-c", compress]).current_dir(&root))?;
    let packaging = repository::root().join("packaging/debian");
    copy(&packaging.join("copyright"), &documents.join("copyright"))?;
    let overrides = usr.join("share/lintian/overrides/pgclinic");
    copy(&packaging.join("lintian-overrides"), &overrides)?;
    let control = std::fs::read_to_string(packaging.join("control")).map_err(at(&packaging))?;
    let control = control
        .replace("VERSION", &debian_version())
        .replace("ARCHITECTURE", architecture)
        .replace("SIZE", &kilobytes(&usr)?);
    write(&root.join("DEBIAN/control"), &control)?;
    let sums = "find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums";
    shell::capture(shell::command("sh", &["-c", sums]).current_dir(&root))?;
    let deb = folder.join(format!("pgclinic_{}_{architecture}.deb", debian_version()));
    let mut build = shell::command("dpkg-deb", &["-z3", "--root-owner-group", "--build"]);
    shell::capture(build.arg(&root).arg(&deb))?;
    remove(&root)?;
    Ok(Some(deb))
}

fn kilobytes(folder: &Path) -> Result<String, String> {
    let text = shell::capture(shell::command("du", &["-sk", "--apparent-size"]).arg(folder))?;
    let size = text.split_whitespace().next();
    Ok(size.ok_or("du says nothing")?.to_owned())
}
