//! The packages as somebody would use them: the script installs below a prefix and refuses a
//! damaged archive, and dpkg installs and removes the Debian package in a root of its own.

use std::path::Path;

use super::packages::Packages;
use crate::shell::{self, at};
use crate::task::Outcome;
use crate::{apt, postgres, repository};

/// What must be there, below the prefix.
const FILES: [&str; 4] = [
    "bin/pgclinic",
    "share/bash-completion/completions/pgclinic",
    "share/zsh/vendor-completions/_pgclinic",
    "share/fish/vendor_completions.d/pgclinic.fish",
];

/// Where programs lie in a root of Debian.
const IN_DEBIAN: &str = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Tries all of them; in a fresh Debian of this release too.
pub(super) fn all(packages: &Packages, release: Option<&str>) -> Outcome {
    let scratch = postgres::scratch("packages")?;
    script(packages, scratch.path())?;
    println!("install.sh: installs, removes, and refuses a damaged archive");
    let Some(deb) = &packages.deb else {
        return Ok(());
    };
    if postgres::user_id() == Some(0) {
        let root = scratch.path().join("root");
        nothing_installed(&root)?;
        debian(deb, &root)?;
        println!("the Debian package: installs and can be removed");
    }
    if let Some(release) = release {
        fresh_debian(packages, release, &scratch.path().join("debian"))?;
        println!("Debian {release}: the package and install.sh work, and so does pgclinic demo");
    }
    lintian(deb)
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
    are_there(&prefix, "share/man/man1/pgclinic-check.1")?;
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

fn nothing_installed(root: &Path) -> Outcome {
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        let folder = database.join(folder);
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    std::fs::write(database.join("status"), "").map_err(at(&database))
}

/// Nothing but what every Debian has.
fn fresh_debian(packages: &Packages, release: &str, root: &Path) -> Outcome {
    let mut make = shell::command("debootstrap", &["--variant=minbase", release]);
    shell::capture(make.arg(root).args(apt::mirror()))?;
    if let Some(deb) = &packages.deb {
        debian(deb, root)?;
    }
    let handed = root.join("handed");
    std::fs::create_dir(&handed).map_err(at(&handed))?;
    for name in [
        "install.sh".as_ref(),
        "SHA256SUMS".as_ref(),
        packages.archive.as_path(),
    ] {
        let from = packages.folder.join(name);
        let name = from.file_name().unwrap_or_default();
        std::fs::copy(&from, handed.join(name)).map_err(at(&from))?;
    }
    let as_somebody_would =
        "sh /handed/install.sh && pgclinic demo && sh /handed/install.sh --uninstall";
    let mut chroot = shell::command("chroot", &[]);
    chroot.arg(root).args(["sh", "-ec", as_somebody_would]);
    let said = shell::capture(chroot.env_clear().env("PATH", IN_DEBIAN))?;
    let is_removed = !root.join("usr/local/bin/pgclinic").exists();
    if is_removed && said.contains("The cluster is as it was.") {
        Ok(())
    } else {
        Err(format!("in Debian {release}: {said}"))
    }
}

fn debian(deb: &Path, root: &Path) -> Outcome {
    let dpkg = || {
        let mut command = shell::command("dpkg", &["--log=/dev/null"]);
        command.arg(format!("--root={}", root.display()));
        command
    };
    shell::capture(dpkg().arg("-i").arg(deb))?;
    are_there(&root.join("usr"), "share/man/man1/pgclinic-check.1.gz")?;
    let mut run = shell::command("chroot", &[]);
    run.arg(root).args(["/usr/bin/pgclinic", "--version"]);
    shell::capture(run.env_clear().env("PATH", IN_DEBIAN))?;
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
