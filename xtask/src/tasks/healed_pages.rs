//! Bits flipped on many pages of a real cluster: what comes back by structure and checksum alone,
//! and that none of it is wrong.

use crate::args::Args;
use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "healed-pages",
    summary: "flips bits on --pages N (100000) pages and says which share comes back; none wrong",
    in_ci: None,
    run,
};

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let pages = args.number("--pages", 100_000)?;
    args.finish()?;
    let test = "corrected_pages::a_flipped_bit_never_makes_another_page";
    let words = [
        "test",
        "--release",
        "-p",
        "pgclinic-surgery",
        "--test",
        "it",
        test,
        "--",
        "--nocapture",
    ];
    let mut command = shell::command("cargo", &words);
    shell::run(command.env("PGCLINIC_FLIPPED_PAGES", pages.to_string()))
}
