//! Very many damaged pages of real clusters: what comes back by structure and checksum alone, what
//! comes back from WAL and a backup, and that none of it is wrong.

use crate::args::Args;
use crate::shell;
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "healed-pages",
    summary: "damages --pages N (100000) pages: flipped bits without evidence, and pages with WAL and a backup; says which share comes back; none wrong",
    in_ci: None,
    run,
};

/// Package, test, and the variable with the number of pages.
const TESTS: [(&str, &str, &str); 2] = [
    (
        "pgclinic-surgery",
        "corrected_pages::a_flipped_bit_never_makes_another_page",
        "PGCLINIC_FLIPPED_PAGES",
    ),
    (
        "pgclinic-cluster",
        "block_history::many::of_many_changed_pages_none_comes_back_wrong",
        "PGCLINIC_RECOVERED_PAGES",
    ),
];

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let pages = args.number("--pages", 100_000)?;
    args.finish()?;
    for (package, test, variable) in TESTS {
        let mut command = shell::test_of_package(package, test);
        shell::run(command.env(variable, pages.to_string()))?;
    }
    Ok(())
}
