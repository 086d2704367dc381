//! Clippy over everything, warnings are errors.

use crate::args::Args;
use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "lint",
    summary: "runs clippy over the workspace, warnings are errors",
    in_ci: Some(&[]),
    run,
};

fn run(words: &[String]) -> Outcome {
    Args::new(words).finish()?;
    let words = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    shell::run(&mut shell::command("cargo", &words))
}
