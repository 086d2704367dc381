//! Package registries are reached through their clients, so no file names their hosts.

use super::{Complaint, Rule};
use crate::repository::Tree;

pub(super) const RULE: Rule = Rule {
    name: "no-registry-hosts",
    why: "mirrors are the user's choice; clients know where to ask",
    check,
};

// In pieces, so that this file does not find itself.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("repo1.maven", ".org"),
    concat!("pypi", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("deb.debian", ".org"),
];

fn check(tree: &Tree) -> Vec<Complaint> {
    let texts = tree
        .texts()
        .filter(|(path, _)| !path.ends_with("Cargo.lock"));
    let lines = texts.flat_map(|(path, text)| {
        text.lines()
            .enumerate()
            .map(move |(at, line)| (path, at + 1, line))
    });
    let hits = lines.filter_map(|(path, number, line)| {
        let host = HOSTS.iter().find(|host| line.contains(*host))?;
        Some(Complaint::line(path, number, format!("names {host}")))
    });
    hits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_seen_outside_the_lock_file() {
        let line = format!("https://{}/x\n", HOSTS[2]);
        let found = check(&Tree::of(&[("Cargo.lock", &line), ("a.md", &line)]));
        assert_eq!(
            found,
            [Complaint::line("a.md", 1, format!("names {}", HOSTS[2]))]
        );
    }
}
