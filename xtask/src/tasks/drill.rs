//! The whole exercise on a real PostgreSQL, as a person runs it.

use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "drill",
    summary: "runs the release drill, all of it unless words choose a part; must exit 0; more words go to it",
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
    let mut command = shell::command("cargo", &drill);
    if !words.iter().any(|word| chooses(word)) {
        command.arg("--all");
    }
    shell::run(command.args(words))
}

/// The word says by itself what is rehearsed.
fn chooses(word: &str) -> bool {
    ["--all", "--injury", "--blind", "--ward"]
        .iter()
        .any(|option| word.starts_with(option))
}
