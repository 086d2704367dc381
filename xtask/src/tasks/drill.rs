//! The whole exercise on a real PostgreSQL, as a person runs it.

use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "drill",
    summary: "runs the release drill, which must exit 0; more words go to it",
    in_ci: Some(&[]),
    run,
};

fn run(words: &[String]) -> Outcome {
    let drill = [
        "run",
        "--release",
        "-p",
        "pgclinic-cli",
        "--",
        "drill",
        "--progress",
        "plain",
    ];
    shell::run(shell::command("cargo", &drill).args(words))
}
