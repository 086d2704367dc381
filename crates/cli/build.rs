//! The version with its commit and date: from whoever builds a package, else from the checkout.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PGCLINIC_VERSION");
    let given = std::env::var("PGCLINIC_VERSION").ok();
    let version = given.unwrap_or_else(of_checkout);
    println!("cargo:rustc-env=PGCLINIC_VERSION={version}");
}

/// Asked again when another commit is checked out or made, and never else.
fn of_checkout() -> String {
    for path in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", path]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["log", "-1", "--format=%h, %cs", "--abbrev=9"]);
    let commit = commit.unwrap_or_else(|| "unknown commit".to_owned());
    format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
}

/// The answer of git about the directory of this package; nothing without git or outside of a
/// checkout.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
