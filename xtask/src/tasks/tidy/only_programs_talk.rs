//! Only programs print, exit, and read the environment and the clock; elsewhere these are
//! parameters.

use super::code::crate_lines;
use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "only-programs-talk",
    why: "same input, same bytes out",
    check,
};

/// A hidden input or output, and the places that own it.
struct Hidden {
    what: &'static str,
    needles: &'static [&'static str],
    owners: &'static [&'static str],
}

const HIDDEN: &[Hidden] = &[
    Hidden {
        what: "prints",
        needles: &["println!(", "print!(", "eprintln!(", "eprint!(", "dbg!("],
        // A build script talks to cargo.
        owners: &["crates/cli/src/main.rs", "crates/cli/build.rs"],
    },
    Hidden {
        what: "exits",
        needles: &["process::exit(", "process::abort("],
        owners: &["crates/cli/src/main.rs"],
    },
    Hidden {
        what: "reads the environment",
        needles: &[
            "env::var",
            "env::args",
            "env::current_dir",
            "env::temp_dir",
            "env::home_dir",
        ],
        owners: &[
            "crates/cli/src/main.rs",
            "crates/cli/build.rs",
            "crates/servers/",
            "crates/testkit/",
        ],
    },
    Hidden {
        what: "reads the clock",
        needles: &["SystemTime::now", "Instant::now"],
        owners: &[
            "crates/cli/",
            "crates/servers/",
            "crates/testkit/",
            "crates/lab/",
            "crates/watch/",
        ],
    },
];

fn check(tree: &Tree) -> Vec<Complaint> {
    crate_lines(tree)
        .flat_map(|(path, number, line)| {
            let mine = HIDDEN
                .iter()
                .filter(move |hidden| !hidden.owners.iter().any(|owner| path.starts_with(owner)));
            let hit = mine
                .filter(move |hidden| hidden.needles.iter().any(|needle| line.contains(needle)));
            hit.map(move |hidden| Complaint::line(path, number, hidden.what))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_owners_may() {
        let text = "fn f() {\n    println!(\"x\");\n    let t = Instant::now();\n}\n";
        let tree = Tree::of(&[
            ("crates/cli/src/main.rs", text),
            ("crates/check/src/walk.rs", text),
        ]);
        assert_eq!(
            check(&tree),
            [
                Complaint::line("crates/check/src/walk.rs", 2, "prints"),
                Complaint::line("crates/check/src/walk.rs", 3, "reads the clock"),
            ]
        );
    }
}
