//! Runs whose server is not the one of their arm's first run: somebody has gone on in the folder
//! with another PostgreSQL.

use std::collections::BTreeMap;

use super::Machine;
use crate::cell::{Cell, RunResult};

/// Facts that tell one server from another.
const OF_A_SERVER: [&str; 6] = [
    "server_version",
    "server_programs",
    "server_url",
    "build.options",
    "build.flags",
    "build.compiler",
];

/// By the id of the run, what is not as in the first run of its arm: `server_version (17.2, 17.5)`.
pub(super) fn mixed(machine: &Machine<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (arm, first) in &firsts(machine.results) {
        for result in machine.results {
            if arm_of(&result.cell) == *arm && has_server(result) {
                let other = differences(first, result);
                if !other.is_empty() {
                    found.insert(result.cell.id.clone(), other.join(", "));
                }
            }
        }
    }
    found
}

/// The same in sentences, one for each difference.
pub(super) fn remarks(machines: &[Machine<'_>]) -> Vec<String> {
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for machine in machines {
        for (id, what) in mixed(machine) {
            ids.entry(what).or_default().push(machine.id(&id));
        }
    }
    let sentence = |(what, ids): (String, Vec<String>)| {
        let runs = if ids.len() == 1 { "run" } else { "runs" };
        format!(
            "{} {runs} had another server than the first run of the arm, {what}: {}. Their arms are a mixture",
            ids.len(),
            ids.join(", ")
        )
    };
    ids.into_iter().map(sentence).collect()
}

/// Arm, the same as the value of an axis, machine: two folders that are compared hold their arms as
/// values of an axis, and one that was merged has its machines in the ids of its runs.
type ArmOf = (String, String, String);

fn arm_of(cell: &Cell) -> ArmOf {
    let machine = cell.id.rsplit_once('/').map_or("", |(machine, _)| machine);
    let arm = cell.at("arm").to_owned();
    (cell.arm.clone(), arm, machine.to_owned())
}

fn has_server(result: &RunResult) -> bool {
    result.environment.contains_key("server_version")
}

/// The earliest run of each arm that had a server.
fn firsts(results: &[RunResult]) -> BTreeMap<ArmOf, &RunResult> {
    let mut firsts: BTreeMap<ArmOf, &RunResult> = BTreeMap::new();
    for result in results.iter().filter(|result| has_server(result)) {
        let first = firsts.entry(arm_of(&result.cell)).or_insert(result);
        if result.started < first.started {
            *first = result;
        }
    }
    firsts
}

fn differences(first: &RunResult, other: &RunResult) -> Vec<String> {
    let value = |result: &RunResult, name: &str| {
        let value = result.environment.get(name);
        value.cloned().unwrap_or_else(|| "not known".to_owned())
    };
    let both = OF_A_SERVER.map(|name| (name, value(first, name), value(other, name)));
    let differing = both.into_iter().filter(|(_, one, other)| one != other);
    differing
        .map(|(name, one, other)| format!("{name} ({one}, {other})"))
        .collect()
}
