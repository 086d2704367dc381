//! Formatting. `cargo fmt` does not see modules that a macro declares, so `rustfmt` gets the file
//! list.

use std::collections::BTreeSet;

use crate::args::Args;
use crate::task::{Outcome, Task};
use crate::{repository, shell};

pub(crate) const TASK: Task = Task {
    name: "fmt",
    summary: "checks the formatting of every Rust file; --fix writes it",
    in_ci: Some(&[]),
    run,
};

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let fix = args.flag("--fix");
    args.finish()?;

    let mut rustfmt = shell::command("rustfmt", &["--edition", "2024"]);
    if !fix {
        rustfmt.args(["--check", "-l"]);
    }
    let exists = |path: &String| path.ends_with(".rs") && repository::root().join(path).exists();
    rustfmt.args(repository::paths()?.into_iter().filter(exists));

    let output = shell::output(&mut rustfmt)?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "not formatted; `cargo xtask fmt --fix` mends it\n{}",
        each_once(&shell::both(&output))
    ))
}

/// A file is named once for itself and once for each module that leads to it.
fn each_once(text: &str) -> String {
    let lines: BTreeSet<&str> = text.lines().collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::each_once;

    #[test]
    fn a_file_is_named_once() {
        assert_eq!(each_once("b.rs\na.rs\nb.rs\n"), "a.rs\nb.rs");
    }
}
