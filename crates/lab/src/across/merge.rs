//! One plan that ran on several machines: more blocks, each whole on its machine.

use std::collections::BTreeMap;

use pgclinic_diagnose::document::ExperimentDocument;

use super::{Difference, Group, Recorded, differences};
use crate::analysis::{About, Machine, document};
use crate::error::{Error, Result};
use crate::experiment::Experiment;

/// The document of all machines together. Raw files are named as `machines/<name>/runs/…`, which is where the caller
/// puts copies of the folders.
///
/// # Errors
/// When the folders do not hold the same plan, or their servers differ.
pub fn merge(
    experiment: &dyn Experiment,
    folders: &[Recorded<'_>],
    about: &About,
) -> Result<ExperimentDocument> {
    let Some((first, others)) = folders.split_first() else {
        return Err(Error::Refused("there is nothing to merge".into()));
    };
    for other in others {
        same(first, other)?;
    }
    each_run_once(folders)?;
    let names = unique_names(folders);
    let machines = folders.iter().zip(&names).map(|(folder, name)| Machine {
        name,
        prefix: name,
        results: folder.results,
    });
    let machines: Vec<Machine<'_>> = machines.collect();
    let mut merged = document(experiment, first.plan, &machines, about);
    merged.remarks.push(format!(
        "merged from {} folders: differences are taken inside blocks, so that machines of different speed do not blur them",
        folders.len()
    ));
    Ok(merged)
}

/// Refuses the same run in two folders: one is the other, or a copy of it, and its runs would count twice.
pub(super) fn each_run_once(folders: &[Recorded<'_>]) -> Result<()> {
    let mut seen: BTreeMap<(&str, u64, u64), &str> = BTreeMap::new();
    for folder in folders {
        for result in folder.results {
            // No two runs of two machines begin in one second and take the same time to the nanosecond.
            let identity = (
                result.cell.id.as_str(),
                result.started,
                result.elapsed_s.to_bits(),
            );
            if let Some(other) = seen.insert(identity, folder.name) {
                return Err(Error::Refused(format!(
                    "{other} and {} hold the same run, {}: a folder and its copy count once",
                    folder.name, result.cell.id
                )));
            }
        }
    }
    Ok(())
}

fn same(first: &Recorded<'_>, other: &Recorded<'_>) -> Result<()> {
    if first.plan.hash != other.plan.hash {
        return Err(Error::Refused(format!(
            "{} holds the plan {} and {} the plan {}: only runs of one plan can be merged; lab compare compares two",
            first.name, first.plan.hash, other.name, other.plan.hash
        )));
    }
    let found = differences(first, other);
    match found
        .iter()
        .find(|difference| difference.group != Group::Machine && !is_a_path(difference))
    {
        Some(difference) => Err(Error::Refused(format!(
            "{} and {} differ in more than the machine: {difference}",
            first.name, other.name
        ))),
        None => Ok(()),
    }
}

/// Where programs lie belongs to the machine; their version and build are held against each other for themselves.
fn is_a_path(difference: &Difference) -> bool {
    difference.what.starts_with("server_programs")
}

/// The name of each folder, made different and fit for a folder's name.
pub fn unique_names(folders: &[Recorded<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for folder in folders {
        let last = folder
            .name
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let keep = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        };
        let plain: String = last.trim_start_matches('.').chars().map(keep).collect();
        let base = if plain.is_empty() {
            "machine".to_owned()
        } else {
            plain
        };
        let mut name = base.clone();
        for number in 2.. {
            if !names.contains(&name) {
                break;
            }
            name = format!("{base}-{number}");
        }
        names.push(name);
    }
    names
}
