//! Every test of every member.

use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "test",
    summary: "runs every test of every member; more words go to cargo test",
    in_ci: Some(&[]),
    run,
};

fn run(words: &[String]) -> Outcome {
    shell::run(shell::command("cargo", &["test", "--workspace"]).args(words))
}
