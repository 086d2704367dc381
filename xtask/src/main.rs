//! The project's chores: one file per task in `tasks/`, one line in its register.
//!
//! `cargo xtask` lists them; `cargo xtask ci` runs those that belong to continuous integration, in
//! order.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that a person watches in a terminal"
)]
#![allow(
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "chores over the project's own files: what goes wrong panics"
)]

mod apt;
mod args;
mod postgres;
mod repository;
mod shell;
mod task;
mod tasks;

use std::process::ExitCode;

use task::{Outcome, Task};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        None => {
            print!("{}", overview());
            Ok(())
        }
        Some((name, rest)) => run(name, rest),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, rest: &[String]) -> Outcome {
    let task = find(name).ok_or_else(|| format!("no task is called {name}\n\n{}", overview()))?;
    (task.run)(rest)
}

fn find(name: &str) -> Option<&'static Task> {
    tasks::TASKS.iter().find(|task| task.name == name)
}

fn overview() -> String {
    let mut text = String::from("usage: cargo xtask TASK [ARGUMENTS]\n\n");
    for task in tasks::TASKS {
        text.push_str(&format!("  {:<12} {}\n", task.name, task.summary));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_names_are_unique_and_listed() {
        for task in tasks::TASKS {
            let same = tasks::TASKS.iter().filter(|other| other.name == task.name);
            assert_eq!(same.count(), 1, "{} stands twice", task.name);
            assert!(overview().contains(task.summary));
        }
    }
}
