//! The command that makes the same plan again.

use std::path::PathBuf;

use crate::cell::{Arm, Axis, FOLDER};
use crate::experiment::{Experiment, Matrix};
use crate::plan::Plan;
use crate::prepared_folder::PreparedFolder;
use crate::runner::{KeptSite, quoted};

/// `pgclinic lab run NAME …` with everything that is not as the experiment has it, on the servers
/// and places of `site`.
pub fn again(experiment: &dyn Experiment, plan: &Plan, site: Option<&KeptSite>) -> String {
    let usual = experiment.matrix(plan.scale);
    let mut words = vec![
        "pgclinic lab run".to_owned(),
        name(plan),
        format!("--scale {}", plan.scale.name()),
        format!("--seed {}", plan.seed),
    ];
    let blocks = plan.planned_blocks();
    if blocks != usual.blocks {
        words.push(format!("--blocks {blocks}"));
    }
    if let (Some(_), Some(budget)) = (plan.spare_from, plan.budget_s) {
        words.push(format!("--minutes {}", budget / 60.0));
    }
    words.extend(arms(experiment, &plan.matrix, &usual));
    words.extend(
        plan.matrix
            .axes
            .iter()
            .filter_map(|axis| only(axis, &usual)),
    );
    words.extend(yours(plan));
    words.extend(site.map(KeptSite::words).unwrap_or_default());
    words.join(" ")
}

/// What was brought; where it lies is not recorded.
fn yours(plan: &Plan) -> Vec<String> {
    let shape = plan.yours.shape.as_ref();
    let learned =
        shape.map(|shape| format!("--learn-from PGDATA --relation {}", quoted(&shape.table)));
    let ddl = plan.yours.ddl.as_ref().map(|_| "--ddl FILE.sql".to_owned());
    let traffic = (!plan.yours.traffic.is_empty()).then(|| "--traffic FILE.csv".to_owned());
    learned.into_iter().chain(ddl).chain(traffic).collect()
}

/// What is typed: a name of the register, or the file of an experiment of one's own.
fn name(plan: &Plan) -> String {
    match plan.own {
        None => plan.experiment.clone(),
        Some(_) => quoted(&format!("{}.toml", plan.experiment)),
    }
}

/// Folders, with the names of their arms, where the arms are folders; else the names of those that
/// were chosen.
fn arms(experiment: &dyn Experiment, matrix: &Matrix, usual: &Matrix) -> Vec<String> {
    let names = |matrix: &Matrix| -> Vec<String> {
        matrix.arms.iter().map(|arm| arm.name.clone()).collect()
    };
    let folders = folders(experiment, matrix);
    if !folders.is_empty() {
        let folder = |(name, folder): (&String, &PreparedFolder)| {
            let folder = format!("{name}={}", folder.path.display());
            format!("--folder {}", quoted(&folder))
        };
        return names(matrix).iter().zip(&folders).map(folder).collect();
    }
    let (chosen, usual) = (names(matrix), names(usual));
    let differs = (chosen != usual).then(|| format!("--arm {}", chosen.join(",")));
    differs.into_iter().collect()
}

/// The folders that the arms are made from; none where they are no folders.
fn folders(experiment: &dyn Experiment, matrix: &Matrix) -> Vec<PreparedFolder> {
    let prepared = |arm: &Arm| {
        let path = arm.parameters.get(FOLDER)?;
        Some(PreparedFolder {
            name: Some(arm.name.clone()),
            path: PathBuf::from(path),
        })
    };
    let folders: Option<Vec<PreparedFolder>> = matrix.arms.iter().map(prepared).collect();
    let folders = folders.unwrap_or_default();
    match experiment.arms_in(&folders) {
        Some(_) => folders,
        None => Vec::new(),
    }
}

fn only(axis: &Axis, usual: &Matrix) -> Option<String> {
    let same = usual.axes.iter().find(|other| other.name == axis.name);
    let differs = same.is_none_or(|same| same.values != axis.values);
    differs.then(|| {
        format!(
            "--only {}",
            quoted(&format!("{}={}", axis.name, axis.values.join(",")))
        )
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::analysis::tests::{Made, plan};
    use crate::experiments::experiment_named;
    use crate::plan::PlanOptions;
    use crate::servers_of_arms::SiteOptions;

    #[test]
    fn only_what_is_unusual_is_said() {
        assert_eq!(
            again(&Made, &plan(3), None),
            "pgclinic lab run analyze-prefetch --scale quick --seed 3"
        );
        let options = PlanOptions {
            blocks: Some(2),
            arms: vec!["14".into(), "13".into()],
            only: vec![(
                "maintenance_io_concurrency".into(),
                vec!["10".into(), "50".into()],
            )],
            ..PlanOptions::default()
        };
        let plan = Plan::make(&Made, None, &options).expect("a plan");
        let words = again(&Made, &plan, None);
        assert!(
            words.contains("--blocks 2")
                && words.ends_with("--only maintenance_io_concurrency=10,50"),
            "{words}"
        );
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    }

    #[test]
    fn folders_and_servers_are_said_so_that_the_same_plan_comes_again() {
        let (one, other) = (tempfile::tempdir(), tempfile::tempdir());
        let folders = [one, other].map(|folder| folder.expect("a directory"));
        let experiment = experiment_named("filesystem").expect("it is registered");
        let prepared = |folder: &TempDir| PreparedFolder {
            name: None,
            path: folder.path().into(),
        };
        let options = PlanOptions {
            folders: folders.iter().map(prepared).collect(),
            ..PlanOptions::default()
        };
        let plan = Plan::make(experiment, None, &options).expect("a plan");
        let site = KeptSite::of(&SiteOptions {
            servers: vec!["/opt/pg 17".into()],
            major: Some(17),
            ..SiteOptions::default()
        });
        let words = again(experiment, &plan, Some(&site.expect("a site")));
        let [first, second] = plan.matrix.arms.as_slice() else {
            panic!("{:?}", plan.matrix.arms);
        };
        let [one, other] = folders.each_ref().map(|one| one.path().display());
        let (first, second) = (&first.name, &second.name);
        let end = format!(
            "--folder {first}={one} --folder {second}={other} --server '/opt/pg 17' --pg 17"
        );
        assert!(words.ends_with(&end) && !words.contains("--arm"), "{words}");
    }
}
