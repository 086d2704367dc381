//! One plan that ran on several machines: more blocks, each whole on its machine.

use std::collections::BTreeMap;

use pgclinic_model::document::ExperimentDocument;

use super::{Difference, Group, Recorded, differences};
use crate::analysis::{About, Machine, document};
use crate::cell::{Cell, RunResult};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::runner::Unreadable;

/// The document of all machines together. Raw files are named as `machines/<name>/runs/…`, which is
/// where the caller puts copies of the folders.
///
/// Machines may have run different numbers of blocks, as where the budget of one did not hold them
/// all: each is held to its own, and the decision counts the blocks of all. Which blocks are
/// dropped follows from the time that runs take and not from what they measured, so that nothing
/// has to be thrown away for it.
///
/// # Errors
/// When the folders do not hold the same plan, or their servers differ.
pub fn merge(
    experiment: &dyn Experiment,
    folders: &[Recorded<'_>],
    about: &About,
) -> Result<ExperimentDocument> {
    let plan = common_plan(folders)?;
    let names = unique_names(folders);
    let machines = folders.iter().zip(&names).map(|(folder, name)| Machine {
        name,
        prefix: name,
        plan: folder.plan,
        results: folder.results,
    });
    let machines: Vec<Machine<'_>> = machines.collect();
    let mut merged = document(experiment, plan, &machines, about);
    merged.remarks.push(format!(
        "merged from {} directories: differences are taken inside blocks, so that machines of different speed do not blur them",
        folders.len()
    ));
    merged.remarks.extend(blocks_differ(folders, &names));
    let unreadable = folders.iter().flat_map(Recorded::unreadable_words);
    merged.remarks.extend(unreadable);
    Ok(merged)
}

/// Folders of one plan as one side of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Joined {
    /// The plan with the blocks of all machines, one behind the other; ids of runs begin with the
    /// machine's name.
    pub plan: Plan,
    /// The results of all machines, numbered in the same way.
    pub results: Vec<RunResult>,
    /// What was measured and cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// One folder as it is, or those of several machines in a row.
///
/// # Errors
/// When the folders do not hold the same plan, or their servers differ.
pub fn joined(folders: &[Recorded<'_>]) -> Result<Joined> {
    let mut all = Joined {
        plan: common_plan(folders)?.clone(),
        results: Vec::new(),
        unreadable: Vec::new(),
    };
    if let [one] = folders {
        all.results = one.results.to_vec();
        all.unreadable = one.unreadable.to_vec();
        return Ok(all);
    }
    all.plan.cells.clear();
    all.plan.matrix.blocks = 0;
    // Only spare runs that were made are taken over, and they are runs like the others now.
    all.plan.spare_from = None;
    for (folder, name) in folders.iter().zip(unique_names(folders)) {
        let first = all.plan.matrix.blocks;
        let moved = |cell: &Cell| Cell {
            id: format!("{name}/{}", cell.id),
            block: cell.block.saturating_add(first),
            ..cell.clone()
        };
        all.plan.cells.extend(folder.cells().map(moved));
        let results = folder.results.iter().map(|result| RunResult {
            cell: moved(&result.cell),
            ..result.clone()
        });
        all.results.extend(results);
        all.unreadable.extend(folder.unreadable.iter().cloned());
        all.plan.matrix.blocks = first.saturating_add(folder.plan.matrix.blocks);
    }
    Ok(all)
}

/// The plan of all folders, once it is known that they hold the same one and no run twice. Where
/// one of them has spare blocks it is theirs, as runs may have ended when they had decided.
fn common_plan<'a>(folders: &[Recorded<'a>]) -> Result<&'a Plan> {
    let Some((first, others)) = folders.split_first() else {
        return Err(Error::Refused("there is nothing to merge".into()));
    };
    for other in others {
        same(first, other)?;
    }
    each_run_once(folders)?;
    let with_spare = folders
        .iter()
        .find(|folder| folder.plan.spare_from.is_some());
    Ok(with_spare.unwrap_or(first).plan)
}

/// A sentence where the machines were to run different numbers of blocks.
fn blocks_differ(folders: &[Recorded<'_>], names: &[String]) -> Option<String> {
    let blocks = || folders.iter().map(|folder| folder.plan.planned_blocks());
    if blocks().min() == blocks().max() {
        return None;
    }
    let of_each = names.iter().zip(blocks());
    let of_each: Vec<String> = of_each
        .map(|(name, blocks)| format!("{name} {blocks}"))
        .collect();
    Some(format!(
        "the machines ran different numbers of blocks ({}): each is held to its own, and all of their runs count",
        of_each.join(", ")
    ))
}

/// Refuses the same run in two folders: one is the other, or a copy of it, and its runs would count
/// twice.
pub(super) fn each_run_once(folders: &[Recorded<'_>]) -> Result<()> {
    let mut seen: BTreeMap<(&str, u64, u64), &str> = BTreeMap::new();
    for folder in folders {
        for result in folder.results {
            // A folder that was merged has its machines in front.
            let id = &result.cell.id;
            let id = id.rsplit_once('/').map_or(id.as_str(), |(_, id)| id);
            // No two runs of two machines begin in one second and take the same time to the
            // nanosecond.
            let identity = (id, result.started, result.elapsed_s.to_bits());
            if let Some(other) = seen.insert(identity, folder.name) {
                return Err(Error::Refused(format!(
                    "{other} and {} hold the same run, {id}: a directory and its copy count once",
                    folder.name
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

/// Where programs lie belongs to the machine; their version and build are held against each other
/// for themselves.
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
