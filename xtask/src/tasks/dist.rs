//! One static binary that runs where nothing is installed, tried in an empty chroot, and the
//! packages in which it is handed out.

mod packages;
mod try_packages;

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::shell::at;
use crate::task::{Outcome, Task};
use crate::{postgres, repository, shell};

pub(crate) const TASK: Task = Task {
    name: "dist",
    summary: "builds target/dist/pgclinic, one static file, and its packages, and tries all of them; --pgclinic BIN packs that program; --debian RELEASE tries them in a fresh Debian too, by debootstrap",
    in_ci: Some(&[]),
    run,
};

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let given = args.value("--pgclinic")?;
    let debian = args.value("--debian")?;
    args.finish()?;
    if let Some(binary) = given {
        return packed(&PathBuf::from(binary), debian.as_deref());
    }
    let binary = build()?;
    linked_statically(&binary)?;
    let size = std::fs::metadata(&binary).map_err(at(&binary))?.len();
    println!(
        "{} ({:.1} MiB, static)",
        binary.display(),
        size as f64 / f64::from(1 << 20)
    );
    match postgres::user_id() {
        Some(0) => try_in_chroot(&binary)?,
        _ => println!("not tried in a chroot: that needs root"),
    }
    packed(&binary, debian.as_deref())
}

fn packed(binary: &Path, debian: Option<&str>) -> Outcome {
    let packages = packages::make(binary)?;
    for file in packages.files() {
        println!("{}", file.display());
    }
    try_packages::all(&packages, debian)
}

/// Naming the target keeps build scripts and macros, which run here, out of the static linking.
fn build() -> Result<PathBuf, String> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let words = [
        "build",
        "--release",
        "-p",
        "pgclinic-cli",
        "--target",
        &triple,
    ];
    let mut cargo = shell::command("cargo", &words);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    if let Some(version) = version() {
        cargo.env("PGCLINIC_VERSION", version);
    }
    shell::run(&mut cargo)?;

    let built = repository::target().join(&triple).join("release/pgclinic");
    let folder = repository::target().join("dist");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let binary = folder.join("pgclinic");
    std::fs::copy(&built, &binary).map_err(at(&built))?;
    Ok(binary)
}

/// The version with the commit and its date; nothing outside of a clone.
fn version() -> Option<String> {
    let mut git = shell::command("git", &["log", "-1", "--format=%h, %cs"]);
    let commit = shell::capture(&mut git).ok()?;
    Some(format!("{} ({})", env!("CARGO_PKG_VERSION"), commit.trim()))
}

fn linked_statically(binary: &Path) -> Outcome {
    let text = shell::both(&shell::output(shell::command("ldd", &[]).arg(binary))?);
    if text.contains("statically linked") || text.contains("not a dynamic executable") {
        return Ok(());
    }
    Err(format!("{} needs libraries:\n{text}", binary.display()))
}

fn try_in_chroot(binary: &Path) -> Outcome {
    let folder = postgres::scratch("chroot")?;
    let outcome = try_in(folder.path(), binary);
    println!(
        "tried in an empty chroot: {}",
        if outcome.is_ok() { "works" } else { "FAILS" }
    );
    outcome
}

fn try_in(root: &Path, binary: &Path) -> Outcome {
    let inside = root.join("pgclinic");
    std::fs::copy(binary, &inside).map_err(at(&inside))?;
    answers(root, &["--version"], "pgclinic")?;
    answers(root, &["explain", "lower-beyond-upper"], "pd_lower")?;
    match postgres::Tools::find() {
        None => println!("no cluster was checked in the chroot: PostgreSQL is not installed"),
        Some(tools) => {
            tools.new_cluster(&root.join("pgdata"))?;
            answers(root, &["check", "/pgdata", "--progress", "none"], "HEALTHY")?;
        }
    }
    Ok(())
}

fn answers(root: &Path, words: &[&str], expected: &str) -> Outcome {
    let mut chroot = shell::command("chroot", &[]);
    chroot
        .arg(root)
        .arg("/pgclinic")
        .args(words)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin");
    let text = shell::capture(&mut chroot)?;
    if text.contains(expected) {
        Ok(())
    } else {
        Err(format!(
            "{} does not say {expected}:\n{text}",
            words.join(" ")
        ))
    }
}
