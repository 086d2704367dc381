//! In what two experiments differ beside their results.
//!
//! Facts that vary within one of them are no difference between them. The rest falls into groups, each of which would
//! explain a difference by itself.

use std::collections::BTreeMap;
use std::fmt;

use super::Recorded;
use crate::analysis::constant;
use crate::cell::Arm;

/// What would explain a difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// Version and build of the servers.
    Server,
    /// Settings of the servers.
    Settings,
    /// What the arms are told apart by.
    Arms,
    /// Sizes: scale and axes with one value.
    Sizes,
    /// Processor, memory, disk, kernel, mount options.
    Machine,
}

impl Group {
    /// In the words of a refusal.
    pub fn name(self) -> &'static str {
        match self {
            Group::Server => "server",
            Group::Settings => "settings",
            Group::Arms => "arms",
            Group::Sizes => "sizes",
            Group::Machine => "machine",
        }
    }
}

/// One thing that is not the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Which kind of thing.
    pub group: Group,
    /// Its name: `server_version`.
    pub what: String,
    /// Its two values.
    pub values: [String; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.values;
        write!(f, "{} ({one}, {other})", self.what)
    }
}

/// Everything that is not the same, sorted by group and name.
pub fn differences(one: &Recorded<'_>, other: &Recorded<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    let scales = [one.plan.scale.name(), other.plan.scale.name()].map(str::to_owned);
    note(Group::Sizes, "scale", scales, &mut found);
    for arm in &one.plan.matrix.arms {
        let same = other
            .plan
            .matrix
            .arms
            .iter()
            .find(|other| other.name == arm.name);
        if let Some(same) = same {
            arms(arm, same, &mut found);
        }
    }
    facts(one, other, &mut found);
    found.sort_by(|a, b| (a.group, &a.what).cmp(&(b.group, &b.what)));
    found
}

fn note(group: Group, what: &str, values: [String; 2], found: &mut Vec<Difference>) {
    let [one, other] = &values;
    if one != other {
        found.push(Difference {
            group,
            what: what.to_owned(),
            values,
        });
    }
}

fn arms(one: &Arm, other: &Arm, found: &mut Vec<Difference>) {
    let name = &one.name;
    let version = |arm: &Arm| arm.version.clone().unwrap_or_else(|| "any".into());
    note(
        Group::Server,
        &format!("version of {name}"),
        [version(one), version(other)],
        found,
    );
    note(
        Group::Arms,
        &format!("initdb of {name}"),
        [one.initdb.join(" "), other.initdb.join(" ")],
        found,
    );
    maps(
        Group::Settings,
        &format!(" of {name}"),
        &one.settings,
        &other.settings,
        found,
    );
    maps(
        Group::Arms,
        &format!(" of {name}"),
        &one.parameters,
        &other.parameters,
        found,
    );
}

type Facts = BTreeMap<String, String>;

fn maps(group: Group, of: &str, one: &Facts, other: &Facts, found: &mut Vec<Difference>) {
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let value = |facts: &Facts| facts.get(name).cloned().unwrap_or_else(|| "not set".into());
        note(
            group,
            &format!("{name}{of}"),
            [value(one), value(other)],
            found,
        );
    }
}

/// Facts that all runs of each side agree on, and that both sides know.
fn facts(one: &Recorded<'_>, other: &Recorded<'_>, found: &mut Vec<Difference>) {
    let (ours, theirs) = (constant(one.results.iter()), constant(other.results.iter()));
    for (name, value) in &ours {
        if let Some(another) = theirs.get(name).filter(|_| !is_fleeting(name)) {
            note(
                group_of(name),
                name,
                [value.clone(), another.clone()],
                found,
            );
        }
    }
}

/// Facts that differ from run to run by nature, even where one run alone has them.
fn is_fleeting(name: &str) -> bool {
    const FLEETING: [&str; 9] = [
        "port",
        "pid",
        "folder",
        "load",
        "steal",
        "read_bytes",
        "free",
        "time",
        "socket",
    ];
    let last = name.rsplit(['.', ' ']).next().unwrap_or(name);
    FLEETING.iter().any(|word| last.contains(word))
}

fn group_of(name: &str) -> Group {
    if name.starts_with("setting.") {
        Group::Settings
    } else if name.starts_with("server") || name.starts_with("build") {
        Group::Server
    } else {
        Group::Machine
    }
}
