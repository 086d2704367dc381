//! In what two experiments differ beside their results.
//!
//! Facts are held against each other where both have a run: arm by arm and point by point, so that
//! what belongs to an arm or to the value of an axis is no difference between the two. A fact that
//! only one side knows is a difference. Each difference belongs to a cause, of which one is the
//! question and two have no answer:
//!
//! ```text
//! server     version, programs and build are one cause, as is what a version has as its defaults
//! settings   each setting
//! arms       initdb's arguments; each parameter
//! load       who makes it, and how
//! sizes      scale
//! machine    processor; the file system with its disk; every other fact for itself
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Recorded;
use crate::cell::{Arm, RunResult};

/// What would explain a difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// Version and build of the servers.
    Server,
    /// Settings of the servers.
    Settings,
    /// What the arms are told apart by.
    Arms,
    /// Who makes the load, and how.
    Load,
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
            Group::Load => "load",
            Group::Sizes => "sizes",
            Group::Machine => "machine",
        }
    }
}

/// One thing that is not the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Difference {
    /// Which kind of thing.
    pub group: Group,
    /// What changed, so that this is as it is: differences of one cause are one.
    pub cause: String,
    /// Its name: `server_version`, `jit of plain`.
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

/// Everything that is not the same, sorted by group, cause and name.
pub fn differences(one: &Recorded<'_>, other: &Recorded<'_>) -> Vec<Difference> {
    let mut found = BTreeSet::new();
    let scales = [one.plan.scale.name(), other.plan.scale.name()].map(str::to_owned);
    note(Group::Sizes, "scale", "scale", scales, &mut found);
    let arms_of_both = one.plan.matrix.arms.iter().filter_map(|arm| {
        let same = other.plan.arm(&arm.name)?;
        Some((arm, same))
    });
    for (arm, same) in arms_of_both {
        arms(arm, same, &mut found);
    }
    facts(one, other, &mut found);
    found.into_iter().collect()
}

fn note(
    group: Group,
    cause: &str,
    what: &str,
    values: [String; 2],
    found: &mut BTreeSet<Difference>,
) {
    let [one, other] = &values;
    if one != other {
        found.insert(Difference {
            group,
            cause: cause.to_owned(),
            what: what.to_owned(),
            values,
        });
    }
}

fn arms(one: &Arm, other: &Arm, found: &mut BTreeSet<Difference>) {
    let name = &one.name;
    let version = |arm: &Arm| arm.version.clone().unwrap_or_else(|| "any".into());
    note(
        Group::Server,
        SERVER,
        &format!("version of {name}"),
        [version(one), version(other)],
        found,
    );
    note(
        Group::Arms,
        "initdb",
        &format!("initdb of {name}"),
        [one.initdb.join(" "), other.initdb.join(" ")],
        found,
    );
    maps(Group::Settings, name, &one.settings, &other.settings, found);
    maps(Group::Arms, name, &one.parameters, &other.parameters, found);
}

type Facts = BTreeMap<String, String>;

fn maps(group: Group, arm: &str, one: &Facts, other: &Facts, found: &mut BTreeSet<Difference>) {
    for name in names(one, other) {
        let value = |facts: &Facts| facts.get(name).cloned().unwrap_or_else(|| "not set".into());
        let what = format!("{name} of {arm}");
        note(group, name, &what, [value(one), value(other)], found);
    }
}

fn names<'a>(one: &'a Facts, other: &'a Facts) -> BTreeSet<&'a String> {
    one.keys().chain(other.keys()).collect()
}

/// The same arm at the same point.
type CellKey = (String, BTreeMap<String, String>);

/// Facts of the places where both sides have a run that had a server.
fn facts(one: &Recorded<'_>, other: &Recorded<'_>, found: &mut BTreeSet<Difference>) {
    let (ours, theirs) = (by_place(one.results), by_place(other.results));
    let mut of_arms: BTreeMap<Difference, BTreeSet<&str>> = BTreeMap::new();
    for (place, facts) in &ours {
        if let Some(others) = theirs.get(place) {
            for difference in of_place(facts, others) {
                of_arms.entry(difference).or_default().insert(&place.0);
            }
        }
    }
    let arms: BTreeSet<&str> = ours
        .keys()
        .filter(|place| theirs.contains_key(*place))
        .map(|place| place.0.as_str())
        .collect();
    for (difference, own) in of_arms {
        // What every arm has alike needs no name of an arm.
        if own == arms {
            found.insert(difference);
            continue;
        }
        let of = own.into_iter().collect::<Vec<_>>().join(", ");
        found.insert(Difference {
            what: format!("{} of {of}", difference.what),
            ..difference
        });
    }
}

/// Facts of each place; where runs of one place say different things, all of them.
fn by_place(results: &[RunResult]) -> BTreeMap<CellKey, Facts> {
    let mut values: BTreeMap<CellKey, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let with_server = results
        .iter()
        .filter(|result| result.environment.contains_key("server_version"));
    for result in with_server {
        let place = (result.cell.arm.clone(), result.cell.point.clone());
        let facts = values.entry(place).or_default();
        for (name, value) in &result.environment {
            facts.entry(name.clone()).or_default().insert(value.clone());
        }
    }
    let joined = |(place, facts): (CellKey, BTreeMap<String, BTreeSet<String>>)| {
        let facts = facts.into_iter().map(|(name, values)| {
            let values: Vec<String> = values.into_iter().collect();
            (name, values.join(" and "))
        });
        (place, facts.collect())
    };
    values.into_iter().map(joined).collect()
}

fn of_place(one: &Facts, other: &Facts) -> Vec<Difference> {
    let version = |facts: &Facts| facts.get("server_version").cloned();
    let is_ours = |facts: &Facts| facts.contains_key("server_programs");
    let other_version = version(one) != version(other) && is_ours(one) && is_ours(other);
    let moved = one.get("file_system.source") != other.get("file_system.source");
    let mut found = BTreeSet::new();
    for name in names(one, other)
        .into_iter()
        .filter(|name| !is_fleeting(name))
    {
        let is_lacking = !one.contains_key(name) || !other.contains_key(name);
        let setting = name.strip_prefix("setting.");
        let (group, cause) = match setting {
            // Only what is not shipped is recorded, and each version ships its own.
            Some(_) if is_lacking && other_version => (Group::Server, SERVER),
            Some(setting) => (Group::Settings, setting),
            None => group_of(name, moved),
        };
        let value = |facts: &Facts| match (facts.get(name), setting) {
            (Some(value), _) => value.clone(),
            (None, Some(_)) => "as shipped".to_owned(),
            (None, None) => "not known".to_owned(),
        };
        note(group, cause, name, [value(one), value(other)], &mut found);
    }
    found.into_iter().collect()
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
    let is_setting = name.starts_with("setting.");
    // What was found in memory belongs to the data of the run.
    name.starts_with("warm.") || (!is_setting && FLEETING.iter().any(|word| last.contains(word)))
}

/// Version, programs and build change together.
const SERVER: &str = "server";

/// The group and the cause; on another file system everything of its disk is another one.
fn group_of(name: &str, moved: bool) -> (Group, &str) {
    let family = name.split('.').next().unwrap_or(name);
    match family {
        "build" => (Group::Server, SERVER),
        "load" => (Group::Load, name),
        "cpu" => (Group::Machine, "cpu"),
        "file_system" => (Group::Machine, "file_system"),
        "disk" if moved => (Group::Machine, "file_system"),
        _ if name.starts_with("server") => (Group::Server, SERVER),
        _ => (Group::Machine, name),
    }
}
