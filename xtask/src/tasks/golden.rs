//! Golden texts: the members that keep snapshots are tested with writing switched off.

use crate::args::Args;
use crate::repository::{self, Tree};
use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "golden",
    summary: "compares every printer with its golden texts; --fix writes them anew",
    in_ci: Some(&[]),
    run,
};

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let fix = args.flag("--fix");
    args.finish()?;

    let mut test = shell::command("cargo", &["test", "--quiet"]);
    test.env("INSTA_UPDATE", if fix { "always" } else { "no" })
        .env("INSTA_FORCE_PASS", "0");
    for package in packages(&Tree::read()?) {
        test.args(["-p", &package]);
    }
    shell::run(&mut test)?;
    no_pending()
}

/// The members whose manifests name the snapshot library.
fn packages(tree: &Tree) -> Vec<String> {
    let manifests = tree.texts().filter(|(path, text)| {
        path.starts_with("crates/") && path.ends_with("/Cargo.toml") && text.contains("\ninsta")
    });
    manifests
        .filter_map(|(path, _)| path.split('/').nth(1))
        .map(|name| format!("pgclinic-{name}"))
        .collect()
}

/// A text that was written beside the golden one and never looked at is a failure.
fn no_pending() -> Outcome {
    let words = [
        "-c",
        "safe.directory=*",
        "ls-files",
        "--others",
        "*.snap.new",
    ];
    let pending = shell::capture(&mut shell::command("git", &words))?;
    if pending.is_empty() {
        return Ok(());
    }
    Err(format!(
        "golden texts wait for a decision in {}:\n{pending}",
        repository::root().display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_with_snapshots_run() {
        let tree = Tree::of(&[
            (
                "crates/format/Cargo.toml",
                "[dev-dependencies]\ninsta.workspace = true\n",
            ),
            (
                "crates/spill/Cargo.toml",
                "[dev-dependencies]\nproptest.workspace = true\n",
            ),
        ]);
        assert_eq!(packages(&tree), ["pgclinic-format"]);
    }
}
