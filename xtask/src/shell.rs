//! Other programs: run, watch, report what they said when they failed.

use std::path::Path;
use std::process::{Command, Output};

use crate::repository;
use crate::task::Outcome;

/// `program` with `words`, working in the repository's root.
pub(crate) fn command(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).current_dir(repository::root());
    command
}

/// One test of the test program of a package, in a release build, with what it prints.
pub(crate) fn test_of_package(package: &str, test: &str) -> Command {
    let words = ["test", "--release", "-p", package, "--test", "it", test];
    command("cargo", &[&words[..], &["--", "--nocapture"]].concat())
}

/// Runs with the terminal shared; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command
        .status()
        .map_err(|error| cannot_start(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", line(command)))
    }
}

/// Runs, keeps stdout and stderr; any exit code is an answer.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command
        .output()
        .map_err(|error| cannot_start(command, &error))
}

/// Runs and gives stdout; an exit code other than 0 is an error that carries what was printed.
pub(crate) fn capture(command: &mut Command) -> Result<String, String> {
    let output = output(command)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{} ended with {}\n{}",
            line(command),
            output.status,
            both(&output)
        ))
    }
}

/// Stdout, then stderr.
pub(crate) fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The command as a person would type it, for messages.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// Turns a failed file operation into a sentence.
pub(crate) fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start {}: {error}", line(command))
}
