//! Facts about servers and machines, sorted into what was equal and what belongs to an arm.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_model::document::{ArmSummary, MachineSummary};

use super::Machine;
use crate::cell::RunResult;
use crate::plan::Plan;

type Facts = BTreeMap<String, String>;

/// What every run of a machine says alike.
pub(super) fn machines(machines: &[Machine<'_>]) -> Vec<MachineSummary> {
    let summary = |machine: &Machine<'_>| MachineSummary {
        name: machine.name.to_owned(),
        environment: constant(machine.results.iter()),
    };
    machines.iter().map(summary).collect()
}

/// What every run of an arm says alike, without what all runs say alike.
pub(super) fn arms(plan: &Plan, machines: &[Machine<'_>]) -> Vec<ArmSummary> {
    let everywhere = constant(machines.iter().flat_map(|machine| machine.results));
    let arms = plan.matrix.arms.iter().map(|arm| {
        let of_arm = || {
            let results = machines.iter().flat_map(|machine| machine.results);
            results.filter(|result| result.cell.arm == arm.name)
        };
        let mut environment = constant(of_arm());
        environment.retain(|name, _| !everywhere.contains_key(name));
        environment.extend(arm.parameters.clone());
        let version = |result: &'_ RunResult| result.environment.get("server_version").cloned();
        let versions: BTreeSet<String> = of_arm().filter_map(version).collect();
        let versions: Vec<String> = versions.into_iter().collect();
        ArmSummary {
            name: arm.name.clone(),
            version: (!versions.is_empty())
                .then(|| format!("PostgreSQL {}", versions.join(" and "))),
            settings: arm.settings.clone(),
            environment,
        }
    });
    arms.collect()
}

/// What a reader must know of machines that are none of their own.
pub(super) fn beneath(machines: &[Machine<'_>]) -> Vec<String> {
    let is_guest = |result: &RunResult| {
        let said = result.environment.get("virtual_machine");
        said.is_some_and(|said| said.starts_with("yes"))
    };
    let guests = machines
        .iter()
        .filter(|machine| machine.results.iter().any(is_guest));
    let names: Vec<&str> = guests.map(|machine| machine.name).collect();
    let sentence = format!(
        "{} a virtual machine: the cache of its host is out of reach. What is cold here may come from the host's memory all the same",
        match names.as_slice() {
            [one] => format!("{one} is"),
            more => format!("{} are each", more.join(", ")),
        }
    );
    (!names.is_empty())
        .then_some(sentence)
        .into_iter()
        .collect()
}

/// Facts that have one and the same value in all results that name them.
fn constant<'a>(results: impl Iterator<Item = &'a RunResult>) -> Facts {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in results.flat_map(|result| &result.environment) {
        values.entry(name).or_default().insert(value);
    }
    let single = values.into_iter().filter_map(|(name, values)| {
        let value = values.first().filter(|_| values.len() == 1)?;
        Some((name.to_owned(), (*value).to_owned()))
    });
    single.collect()
}
