//! The packages as somebody would use them: the script installs below a prefix and refuses a
//! damaged archive, and dpkg installs and removes the Debian package in a root of its own.

use std::path::{Path, PathBuf};

use super::packages::Packages;
use crate::shell::{self, at};
use crate::task::Outcome;
use crate::{postgres, repository};

/// What must be there, below the prefix.
const FILES: [&str; 4] = [
    "bin/pgclinic",
    "share/bash-completion/completions/pgclinic",
    "share/zsh/vendor-completions/_pgclinic",
    "share/fish/vendor_completions.d/pgclinic.fish",
];

/// A manual page, as the archive has it and as Debian wants it.
const PAGE: &str = "share/man/man1/pgclinic-check.1";
const PAGE_OF_DEBIAN: &str = "share/man/man1/pgclinic-check.1.gz";

/// Tries all of them.
pub(super) fn all(packages: &Packages) -> Outcome {
    let scratch = postgres::scratch("packages")?;
    script(packages, scratch.path())?;
    println!("install.sh: installs, removes, and refuses a damaged archive");
    let Some(deb) = &packages.deb else {
        return Ok(());
    };
    if postgres::user_id() == Some(0) {
        debian(deb, &scratch.path().join("root"))?;
        println!("the Debian package: installs and can be removed in an empty root");
    }
    in_a_small_debian(packages, deb)?;
    lintian(deb)
}

/// A Debian of nothing but its essential packages, made once and kept: there the package meets the
/// real dpkg, with its database and its directories, and the archive a real shell.
fn in_a_small_debian(packages: &Packages, deb: &Path) -> Outcome {
    let Some(root) = small_debian()? else {
        return Ok(());
    };
    let inside = |words: &[&str]| {
        let mut command = shell::command("chroot", &[]);
        command.arg(&root).args(words);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        shell::capture(&mut command)
    };
    let folder = root.join("tmp/packages");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let mut brought = vec![deb.to_owned(), packages.archive.clone()];
    brought.extend(["install.sh", "SHA256SUMS"].map(|name| packages.folder.join(name)));
    for from in &brought {
        let name = from.file_name().unwrap_or_default();
        std::fs::copy(from, folder.join(name)).map_err(at(from))?;
    }
    let name = deb.file_name().unwrap_or_default().to_string_lossy();
    inside(&["dpkg", "-i", &format!("/tmp/packages/{name}")])?;
    are_there(&root.join("usr"), PAGE_OF_DEBIAN)?;
    inside(&["pgclinic", "demo"])?;
    inside(&["dpkg", "--purge", "pgclinic"])?;
    inside(&["sh", "/tmp/packages/install.sh"])?;
    are_there(&root.join("usr/local"), PAGE)?;
    inside(&["/usr/local/bin/pgclinic", "--version"])?;
    inside(&["sh", "/tmp/packages/install.sh", "--uninstall"])?;
    std::fs::remove_dir_all(&folder).map_err(at(&folder))?;
    println!("a small Debian: the package and install.sh install, run and can be removed");
    Ok(())
}

/// Its directory; nothing where it cannot be made here, or not in so many seconds.
fn small_debian() -> Result<Option<PathBuf>, String> {
    const SECONDS: &str = "50";
    let skipped = |why: &str| {
        println!("SKIPPED: {why}, and the packages were not tried in a small Debian");
        Ok(None)
    };
    let root = repository::target().join("small-debian");
    if root.join("usr/bin/dpkg").is_file() {
        return Ok(Some(root));
    }
    if postgres::user_id() != Some(0) {
        return skipped("debootstrap needs root");
    }
    let unfinished = repository::target().join("small-debian.unfinished");
    let _none = std::fs::remove_dir_all(&unfinished);
    let mut make = shell::command("timeout", &[SECONDS, "debootstrap", "--variant=minbase"]);
    make.args(["stable"]).arg(&unfinished);
    match make.output() {
        Ok(output) if output.status.success() => {
            std::fs::rename(&unfinished, &root).map_err(at(&root))?;
            Ok(Some(root))
        }
        Ok(output) => {
            let _left = std::fs::remove_dir_all(&unfinished);
            skipped(match output.status.code() {
                Some(124) => "debootstrap takes longer than 50 seconds here",
                Some(127) => "debootstrap is not installed (apt-get install debootstrap)",
                _ => "debootstrap reaches no archive of Debian",
            })
        }
        Err(_) => skipped("there is no timeout to bound debootstrap"),
    }
}

fn script(packages: &Packages, scratch: &Path) -> Outcome {
    let prefix = scratch.join("prefix");
    let install = |folder: &Path, words: &[&str]| {
        let mut command = shell::command("sh", &[]);
        command.arg(folder.join("install.sh")).args(words);
        command.arg("--prefix").arg(&prefix);
        shell::capture(&mut command)
    };
    let text = install(&packages.folder, &[])?;
    if !text.contains("installed pgclinic ") {
        return Err(format!("install.sh says: {text}"));
    }
    are_there(&prefix, PAGE)?;
    install(&packages.folder, &["--uninstall"])?;
    if prefix.join("bin/pgclinic").exists() {
        return Err("install.sh --uninstall leaves the program".into());
    }
    let damaged = scratch.join("damaged");
    std::fs::create_dir_all(&damaged).map_err(at(&damaged))?;
    for name in ["install.sh", "SHA256SUMS"] {
        let from = packages.folder.join(name);
        std::fs::copy(&from, damaged.join(name)).map_err(at(&from))?;
    }
    let mut bytes = std::fs::read(&packages.archive).map_err(at(&packages.archive))?;
    if let Some(byte) = bytes.last_mut() {
        *byte ^= 1;
    }
    let name = packages.archive.file_name().unwrap_or_default();
    std::fs::write(damaged.join(name), bytes).map_err(at(&damaged))?;
    match install(&damaged, &[]) {
        Ok(text) => Err(format!("install.sh takes a damaged archive: {text}")),
        Err(why) if why.contains("nothing was installed") => Ok(()),
        Err(why) => Err(why),
    }
}

fn are_there(prefix: &Path, page: &str) -> Outcome {
    let mut files = FILES.iter().copied().chain([page]);
    match files.find(|file| !prefix.join(file).is_file()) {
        Some(file) => Err(format!("{file} was not installed in {}", prefix.display())),
        None => Ok(()),
    }
}

fn debian(deb: &Path, root: &Path) -> Outcome {
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        let folder = database.join(folder);
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    std::fs::write(database.join("status"), "").map_err(at(&database))?;
    let dpkg = || {
        let mut command = shell::command("dpkg", &["--log=/dev/null"]);
        command.arg(format!("--root={}", root.display()));
        command
    };
    shell::capture(dpkg().arg("-i").arg(deb))?;
    are_there(&root.join("usr"), PAGE_OF_DEBIAN)?;
    let mut run = shell::command("chroot", &[]);
    run.arg(root).args(["/usr/bin/pgclinic", "--version"]);
    shell::capture(run.env_clear().env("PATH", "/usr/sbin:/usr/bin"))?;
    shell::capture(dpkg().args(["-r", "pgclinic"]))?;
    if root.join("usr/bin/pgclinic").exists() {
        return Err("the program is left where the package was removed".into());
    }
    Ok(())
}

fn lintian(deb: &Path) -> Outcome {
    let words = ["--fail-on", "error,warning", "--tag-display-limit", "0"];
    let mut lintian = shell::command("lintian", &words);
    if postgres::user_id() == Some(0) {
        lintian.arg("--allow-root");
    }
    lintian.current_dir(repository::target()).arg(deb);
    match lintian.output() {
        Err(_) => {
            println!(
                "SKIPPED: lintian is not installed, and nobody judged the Debian package (apt-get install lintian)"
            );
            Ok(())
        }
        Ok(output) if output.status.success() => {
            println!("lintian: no error, no warning");
            Ok(())
        }
        Ok(output) => Err(format!("lintian:\n{}", shell::both(&output))),
    }
}
