//! Licences, banned crates and sources of all dependencies, held to `deny.toml` without a network.
//!
//! The hosted workflow asks `cargo deny` as well, which knows advisories; its database is out of
//! reach where there is no network, and building it takes longer than the rest of the chores.

use serde_json::Value;

use crate::args::Args;
use crate::repository;
use crate::shell::{self, at};
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "licences",
    summary: "holds the licences, names and sources of all dependencies to deny.toml",
    in_ci: Some(&[]),
    run,
};

const FILE: &str = "deny.toml";
/// Where dependencies come from: a registry, never a repository.
const REGISTRY: &str = "registry+";

fn run(words: &[String]) -> Outcome {
    Args::new(words).finish()?;
    let path = repository::root().join(FILE);
    let text = std::fs::read_to_string(&path).map_err(at(&path))?;
    let rules = Rules::read(&text)?;
    let packages = packages()?;
    let faults: Vec<String> = packages.iter().flat_map(|own| rules.faults(own)).collect();
    if !faults.is_empty() {
        return Err(format!("against {FILE}\n{}", faults.join("\n")));
    }
    println!("{} dependencies keep to {FILE}", packages.len());
    Ok(())
}

/// What this chore takes from `deny.toml`.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
}

/// A dependency that is not ours.
struct Package {
    name: String,
    licence: String,
    source: String,
}

impl Rules {
    fn read(text: &str) -> Result<Self, String> {
        let licences = list(text, "[licenses]", "allow");
        let banned = list(text, "[bans]", "deny");
        if licences.is_empty() || banned.is_empty() {
            return Err(format!("{FILE} lacks [licenses] allow or [bans] deny"));
        }
        Ok(Rules { licences, banned })
    }

    /// What is wrong with a dependency, a line each.
    fn faults(&self, package: &Package) -> Vec<String> {
        let Package {
            name,
            licence,
            source,
        } = package;
        let mut faults = Vec::new();
        if !is_allowed(licence, &self.licences) {
            faults.push(format!("{name}: the licence {licence:?} is not allowed"));
        }
        if self.banned.contains(name) {
            faults.push(format!("{name} is banned"));
        }
        if !source.starts_with(REGISTRY) {
            faults.push(format!("{name} comes from {source}, not from a registry"));
        }
        faults
    }
}

/// The dependencies of all members on this system, as the lock file has them. All of them were
/// fetched by the build of this chore's program or of the tests.
fn packages() -> Result<Vec<Package>, String> {
    let version = shell::capture(&mut shell::command("rustc", &["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say for which system it builds")?;
    let words = [
        "metadata",
        "--format-version=1",
        "--locked",
        "--offline",
        "--filter-platform",
        host,
    ];
    let text = shell::capture(&mut shell::command("cargo", &words))?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let all = metadata["packages"].as_array().cloned().unwrap_or_default();
    let text = |own: &Value, key: &str| own[key].as_str().unwrap_or_default().to_owned();
    let foreign = all.iter().filter(|own| !own["source"].is_null());
    let packages: Vec<Package> = foreign
        .map(|own| Package {
            name: text(own, "name"),
            licence: text(own, "license"),
            source: text(own, "source"),
        })
        .collect();
    if packages.is_empty() {
        return Err("cargo metadata names no dependency".into());
    }
    Ok(packages)
}

/// The quoted words of the array `key` of a section. Comments are no part of it.
fn list(text: &str, section: &str, key: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(line));
    let own = lines
        .skip_while(|line| line.trim() != section)
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    let array = own.skip_while(|line| line.split('=').next().map(str::trim) != Some(key));
    let mut words = Vec::new();
    for line in array {
        words.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
        if line.trim_end().ends_with(']') {
            break;
        }
    }
    words
}

/// Does an SPDX expression leave a choice that the list allows? `/` is an older `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let holds = any(&mut words, allowed);
    holds && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// Terms between `OR`.
fn any(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut holds = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        holds |= all(words, allowed);
    }
    holds
}

/// Terms between `AND`, which binds closer.
fn all(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut holds = term(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        holds &= term(words, allowed);
    }
    holds
}

/// A licence, maybe with an exception, or what stands in brackets.
fn term(words: &mut Words<'_>, allowed: &[String]) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let holds = any(words, allowed);
        return words.next_if_eq(&")").is_some() && holds;
    }
    let Some(mut name) = words.next().map(str::to_owned) else {
        return false;
    };
    if words.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", words.next().unwrap_or_default());
    }
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[licenses]\n# \"GPL-3.0\"\nallow = [\n    \"MIT\", # \"ISC\"\n    \"Apache-2.0\",\n]\nother = [\"X\"]\n\
                        [bans]\nwildcards = \"deny\"\ndeny = [\n    { name = \"openssl\" },\n]\n";

    fn rules() -> Rules {
        Rules::read(TEXT).expect("both lists")
    }

    #[test]
    fn lists_are_read_without_their_comments_and_neighbours() {
        assert_eq!(rules().licences, ["MIT", "Apache-2.0"]);
        assert_eq!(rules().banned, ["openssl"]);
        assert!(Rules::read("[licenses]\nallow = []\n").is_err());
    }

    #[test]
    fn an_expression_must_leave_an_allowed_choice() {
        let is_allowed = |expression: &str| is_allowed(expression, &rules().licences);
        for fine in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/GPL-3.0",
            "(GPL-3.0 OR MIT) AND Apache-2.0",
            "GPL-3.0 AND GPL-2.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(is_allowed(fine), "{fine}");
        }
        for foul in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT",
            "MIT MIT",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(!is_allowed(foul), "{foul}");
        }
    }

    #[test]
    fn licence_name_and_source_are_each_complained_about() {
        let package = Package {
            name: "openssl".into(),
            licence: "GPL-3.0".into(),
            source: "git+https://example.org/openssl".into(),
        };
        assert_eq!(rules().faults(&package).len(), 3);
        let package = Package {
            name: "snap".into(),
            licence: "MIT".into(),
            source: "registry+https://example.org/index".into(),
        };
        assert_eq!(rules().faults(&package), [] as [String; 0]);
    }
}
