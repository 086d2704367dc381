//! Only `surgery` opens a file of a cluster for writing; who else writes any file says which.

use super::code::crate_lines;
use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "only-surgery-writes",
    why: "reading never changes a byte",
    check,
};

const NEEDLES: &[&str] = &[
    "File::create",
    "File::options",
    "OpenOptions::new",
    "fs::write",
    "fs::remove_",
    "fs::rename",
    "fs::copy",
    "fs::create_dir",
    "fs::hard_link",
    "fs::set_permissions",
    "DirBuilder",
    ".set_len(",
    "unix::fs::symlink",
    "unix::fs::chown",
];

/// Who may write, and what for.
const WRITERS: &[(&str, &str)] = &[
    ("crates/surgery/", "the cluster, behind a journal"),
    (
        "crates/servers/",
        "clusters of its own and the cache of fetched servers",
    ),
    ("crates/spill/", "sorted runs in a temporary folder"),
    (
        "crates/salvage/src/salvage/folder.rs",
        "what a salvage writes, in a folder outside of any cluster",
    ),
    (
        "crates/lab/",
        "folders of experiments, and clusters of its own",
    ),
    ("crates/testkit/", "scratch folders of tests"),
    ("crates/cli/src/output.rs", "the report that --output names"),
    (
        "crates/cli/src/drill/",
        "scratch copies and the report of the drill",
    ),
    (
        "crates/cli/src/server_copy.rs",
        "settings of a copy that a server reads, which is removed again",
    ),
    (
        "crates/cli/src/commands/drill",
        "scratch copies and the report of the drill",
    ),
    (
        "crates/cli/src/commands/generate_docs.rs",
        "the generated pages of docs",
    ),
    (
        "crates/cli/src/commands/demo.rs",
        "the cluster that the program carries, in a new directory",
    ),
    (
        "crates/cli/src/commands/watch/background.rs",
        "how far a scrub has come, in the directory of states",
    ),
    ("crates/cli/src/commands/man.rs", "manual pages"),
];

fn check(tree: &Tree) -> Vec<Complaint> {
    let foreign = crate_lines(tree)
        .filter(|(path, _, _)| !WRITERS.iter().any(|(writer, _)| path.starts_with(writer)));
    let hits = foreign.filter_map(|(path, number, line)| {
        let needle = NEEDLES.iter().find(|needle| line.contains(*needle))?;
        Some(Complaint::line(path, number, format!("{needle} may write")))
    });
    hits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_is_not_listed_is_seen() {
        let text = "    std::fs::write(path, bytes)?;\n";
        let tree = Tree::of(&[
            ("crates/source/src/folder.rs", text),
            ("crates/surgery/src/writer.rs", text),
        ]);
        assert_eq!(
            check(&tree),
            [Complaint::line(
                "crates/source/src/folder.rs",
                1,
                "fs::write may write"
            )]
        );
    }

    #[test]
    fn tests_may_write() {
        let text = "#[cfg(test)]\nmod tests {\n    std::fs::write(path, bytes)?;\n}\n";
        let tree = Tree::of(&[
            ("crates/source/src/folder.rs", text),
            ("crates/source/tests/suite.rs", text),
        ]);
        assert_eq!(check(&tree), []);
    }
}
