//! Two experiments against each other: the same question, asked twice, with one thing changed.
//!
//! What is not comparable is refused with the name of what differs. Both sides were measured at
//! different times, so that blocks do not help; the page says so.

use std::collections::BTreeSet;

use pgclinic_model::document::ExperimentDocument;

use super::merge::each_run_once;
use super::{Difference, Group, Recorded, differences};
use crate::analysis::{About, Design, Machine, Observation, Observations, Study, compose};
use crate::cell::{Arm, Axis, Cell, RunResult};
use crate::decision::Comparison;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::user_experiment::differing;

/// The axis that the arms of both experiments become.
const ARM: &str = "arm";

/// Compares two folders. `allowed` are groups that the user knows to differ.
///
/// # Errors
/// When the experiments cannot be compared, with what differs, and when one of them is a copy of
/// the other.
pub fn compare(
    one: &Recorded<'_>,
    other: &Recorded<'_>,
    allowed: &[Group],
    about: &About,
) -> Result<ExperimentDocument> {
    each_run_once(&[*one, *other])?;
    let found = differences(one, other);
    same_question(one.plan, other.plan)?;
    one_cause(&found, allowed)?;
    let names = [format!("A: {}", one.name), format!("B: {}", other.name)];
    let plan = joint_plan(one, other, &names)?;
    let results = [
        relabelled(&plan, one, &names[0], 0),
        relabelled(&plan, other, &names[1], one.plan.matrix.blocks),
    ]
    .concat();
    let machine = Machine {
        name: "both",
        prefix: "",
        plan: &plan,
        results: &results,
    };
    let study = Study {
        plan: &plan,
        observations: observations(&results),
        comparisons: comparisons(&plan, &names),
        withheld: Vec::new(),
        design: Design::Apart,
        blocks: plan.matrix.blocks,
        judge: about.judge,
    };
    let remarks = remarks(&found, one, other);
    let question = format!(
        "Does {} differ between {} and {}?",
        plan.experiment, one.name, other.name
    );
    let mut document = compose(&question, &study, &[machine], about, remarks);
    document.machines.clear();
    name_files(&mut document, [one, other], &names);
    Ok(document)
}

fn refused<T>(words: String) -> Result<T> {
    Err(Error::Refused(words))
}

fn same_question(one: &Plan, other: &Plan) -> Result<()> {
    if one.experiment != other.experiment {
        return refused(format!(
            "the experiments differ: {} and {} do not answer the same question",
            one.experiment, other.experiment
        ));
    }
    same_file(one, other)?;
    if one.yours.shape != other.yours.shape {
        return refused(format!(
            "the data differ: {}, {}",
            learned(one),
            learned(other)
        ));
    }
    if one.yours.ddl != other.yours.ddl {
        return refused(
            "the statements of --ddl differ, or only one of the two had some: they did not do the same".into(),
        );
    }
    if one.metrics != other.metrics {
        return refused(
            "the metrics differ: the two were written by different versions of pgclinic".into(),
        );
    }
    if one.scale != other.scale {
        return refused(format!(
            "the scale differs ({}, {}): the same numbers mean other things",
            one.scale.name(),
            other.scale.name()
        ));
    }
    Ok(())
}

/// The files of own experiments ask the same, whatever else stands in them.
fn same_file(one: &Plan, other: &Plan) -> Result<()> {
    let differing = match (&one.own, &other.own) {
        (Some(one), Some(other)) => differing(one, other)?,
        (one, other) if one == other => Vec::new(),
        _ => vec!["only one of the two has one".to_owned()],
    };
    if differing.is_empty() {
        Ok(())
    } else {
        refused(format!(
            "the files of the two experiments differ: {}",
            differing.join("; ")
        ))
    }
}

/// In the words of a refusal.
fn learned(plan: &Plan) -> String {
    let shape = plan.yours.shape.as_ref();
    shape.map_or_else(
        || "one is on data of the experiment's own".to_owned(),
        |shape| {
            let bytes = shape.row_bytes();
            let written = shape.writing.as_ref();
            let written = written.map_or_else(String::new, |writing| format!(", {writing}"));
            format!(
                "one is on the shape of {}, {bytes} bytes a row{written}",
                shape.table
            )
        },
    )
}

/// More than one cause, and no difference could be put down to any of them.
fn one_cause(found: &[Difference], allowed: &[Group]) -> Result<()> {
    let counts = |difference: &&Difference| !allowed.contains(&difference.group);
    let causes = found.iter().filter(counts);
    let causes: BTreeSet<(Group, &str)> = causes
        .map(|difference| (difference.group, difference.cause.as_str()))
        .collect();
    if causes.len() < 2 {
        return Ok(());
    }
    let mut groups: Vec<Group> = causes.iter().map(|(group, _)| *group).collect();
    groups.dedup();
    let of = |group: &Group| {
        let own = causes.iter().filter(|(other, _)| other == group);
        // The first of each cause: what else follows from it says nothing new.
        let words = own.filter_map(|(_, cause)| {
            let mut all = found.iter();
            all.find(|difference| difference.group == *group && difference.cause == *cause)
        });
        let words: Vec<String> = words.map(ToString::to_string).collect();
        format!("{}: {}", group.name(), words.join(", "))
    };
    let words: Vec<String> = groups.iter().map(of).collect();
    refused(format!(
        "more than one thing differs, so that no difference could be put down to any of them: {}. Allow a group \
         by name if you know that it does not matter",
        words.join("; ")
    ))
}

/// The points that both have, with the folders as arms and the arms as one more axis.
fn joint_plan(before: &Recorded<'_>, after: &Recorded<'_>, names: &[String; 2]) -> Result<Plan> {
    let (one, other) = (before.plan, after.plan);
    let arms = one
        .matrix
        .arms
        .iter()
        .filter(|arm| other.arm(&arm.name).is_some());
    let arms: Vec<String> = arms.map(|arm| arm.name.clone()).collect();
    if arms.is_empty() {
        return refused(format!(
            "the arms differ: {} has {}, the other has {}",
            names[0],
            arm_names(one),
            arm_names(other)
        ));
    }
    let mut axes = vec![Axis {
        name: ARM.into(),
        values: arms,
        ..Axis::default()
    }];
    for axis in &one.matrix.axes {
        let same = other.matrix.axes.iter().find(|same| same.name == axis.name);
        let both = axis
            .values
            .iter()
            .filter(|value| same.is_some_and(|same| same.values.contains(value)));
        let both: Vec<String> = both.cloned().collect();
        if both.is_empty() {
            return refused(format!(
                "the axis {} differs: no value is in both",
                axis.name
            ));
        }
        axes.push(Axis {
            values: both,
            ..axis.clone()
        });
    }
    if let Some(axis) = other
        .matrix
        .axes
        .iter()
        .find(|axis| one.matrix.axes.iter().all(|same| same.name != axis.name))
    {
        return refused(format!("only one of the two has the axis {}", axis.name));
    }
    let mut plan = one.clone();
    plan.matrix.axes = axes;
    plan.matrix.arms = names.iter().map(|name| Arm::new(name, name)).collect();
    plan.matrix.blocks = one.matrix.blocks.max(other.matrix.blocks);
    plan.cells.clear();
    plan.left_out.clear();
    // Only spare runs that were made are taken over.
    plan.spare_from = None;
    plan.hash = format!("{}, {}", one.hash, other.hash);
    for (source, name, letter) in [(before, &names[0], "A"), (after, &names[1], "B")] {
        let cells = source
            .cells()
            .filter_map(|cell| joint_cell(&plan, cell, name, letter));
        let cells: Vec<Cell> = cells.collect();
        plan.cells.extend(cells);
    }
    Ok(plan)
}

fn arm_names(plan: &Plan) -> String {
    let names: Vec<&str> = plan
        .matrix
        .arms
        .iter()
        .map(|arm| arm.name.as_str())
        .collect();
    names.join(", ")
}

/// The cell in the joint plan; `None` where only one of the two has its place.
fn joint_cell(plan: &Plan, cell: &Cell, name: &str, letter: &str) -> Option<Cell> {
    let mut point = cell.point.clone();
    point.insert(ARM.into(), cell.arm.clone());
    let is_there = plan.matrix.axes.iter().all(|axis| {
        point
            .get(&axis.name)
            .is_some_and(|value| axis.values.contains(value))
    });
    is_there.then(|| Cell {
        id: format!("{letter}-{}", cell.id),
        arm: name.to_owned(),
        point,
        ..cell.clone()
    })
}

fn relabelled(plan: &Plan, side: &Recorded<'_>, name: &str, first_block: u32) -> Vec<RunResult> {
    let letter = name.get(..1).unwrap_or(name);
    let results = side.results.iter().filter_map(|result| {
        let cell = joint_cell(plan, &result.cell, name, letter)?;
        let block = cell.block.saturating_add(first_block);
        Some(RunResult {
            cell: Cell { block, ..cell },
            ..result.clone()
        })
    });
    results.collect()
}

fn observations(results: &[RunResult]) -> Observations {
    let done = results.iter().filter(|result| result.is_done());
    let all = done.map(|result| Observation {
        run: result.cell.id.clone(),
        arm: result.cell.arm.clone(),
        point: result.cell.point.clone(),
        block: result.cell.block,
        is_control: result.cell.is_control,
        metrics: result.metrics.clone(),
        elapsed_s: result.elapsed_s,
    });
    Observations(all.collect())
}

/// B against A for every arm, the axes where experiments decide when they do not say.
fn comparisons(plan: &Plan, names: &[String; 2]) -> Vec<Comparison> {
    let Some(metric) = plan.metrics.first() else {
        return Vec::new();
    };
    let arms = plan
        .matrix
        .axes
        .first()
        .map(|axis| axis.values.clone())
        .unwrap_or_default();
    let all = arms.iter().flat_map(|arm| {
        let made =
            crate::decision::with_the_first_arm(&plan.matrix, &metric.name, &metric.words, &|_| {
                String::new()
            });
        made.into_iter().map(move |mut comparison| {
            comparison.at(&[(ARM, arm)], &plan.matrix);
            comparison
        })
    });
    let named = all.map(|comparison| Comparison {
        action: format!("prefer {} to {}", names[1], names[0]),
        ..comparison
    });
    named.collect()
}

fn remarks(found: &[Difference], one: &Recorded<'_>, other: &Recorded<'_>) -> Vec<String> {
    let mut remarks = vec![
        "the two were not run side by side: what changed between them besides the below is part of the difference".to_owned(),
    ];
    if found.is_empty() {
        remarks.push(
            "nothing that was recorded differs: this is how much the machine differs from itself"
                .into(),
        );
    }
    remarks.extend(
        found
            .iter()
            .map(|difference| format!("{}: {difference}", difference.group.name())),
    );
    let merged = [one, other].into_iter().filter(|side| is_merged(side.plan));
    remarks.extend(merged.map(|side| {
        format!(
            "{} was merged from several machines: their runs are taken together, so that their differences in speed blur its values",
            side.name
        )
    }));
    remarks.extend(one.unreadable_words());
    remarks.extend(other.unreadable_words());
    if one.plan.seed != other.plan.seed {
        remarks.push(format!(
            "the seeds differ ({}, {}): the data are alike, not the same",
            one.plan.seed, other.plan.seed
        ));
    }
    remarks
}

/// A plan of several machines has their names in its runs.
fn is_merged(plan: &Plan) -> bool {
    plan.cells.iter().any(|cell| cell.id.contains('/'))
}

/// Raw files stay in their own folders: they are named with the folder in front.
fn name_files(document: &mut ExperimentDocument, sides: [&Recorded<'_>; 2], names: &[String; 2]) {
    for run in &mut document.runs {
        let (side, letter) = if run.arm == names[0] {
            (sides[0], "A-")
        } else {
            (sides[1], "B-")
        };
        run.machine = side.name.to_owned();
        let folder = side.place.trim_end_matches('/');
        let own = format!("runs/{}/", run.id);
        let id = run.id.strip_prefix(letter).unwrap_or(&run.id);
        let inside = match id.rsplit_once('/') {
            Some((machine, id)) => format!("{folder}/machines/{machine}/runs/{id}/"),
            None => format!("{folder}/runs/{id}/"),
        };
        for file in &mut run.files {
            *file = file.replacen(&own, &inside, 1);
        }
    }
}
