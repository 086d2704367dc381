//! The table in order: one line a task with its seconds; the first failure ends it and shows its
//! output.

use std::io::Write;
use std::time::Instant;

use crate::args::Args;
use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "ci",
    summary: "runs the tasks of continuous integration in order",
    in_ci: None,
    run,
};

fn run(words: &[String]) -> Outcome {
    Args::new(words).finish()?;
    for task in super::TASKS {
        if let Some(arguments) = task.in_ci {
            step(task, arguments)?;
        }
    }
    Ok(())
}

/// Each task is a process of its own, so that its output can be kept back until it matters.
fn step(task: &Task, arguments: &[&str]) -> Outcome {
    print!("{:<12} ", task.name);
    std::io::stdout()
        .flush()
        .map_err(|error| format!("stdout: {error}"))?;
    let program = std::env::current_exe().map_err(|error| format!("cannot find xtask: {error}"))?;
    let mut command = shell::command(&program.to_string_lossy(), &[task.name]);
    let start = Instant::now();
    let output = shell::output(command.args(arguments))?;
    let word = if output.status.success() {
        "ok"
    } else {
        "FAILED"
    };
    println!("{word:<6} {:>7.1} s", start.elapsed().as_secs_f64());
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{} failed\n{}", task.name, shell::both(&output)))
    }
}
