//! The command that makes the same plan again.

use crate::cell::Axis;
use crate::experiment::{Experiment, Matrix};
use crate::plan::Plan;

/// `pgclinic lab run NAME …` with everything that is not as the experiment has it.
pub fn again(experiment: &dyn Experiment, plan: &Plan) -> String {
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
    words.extend(arms(&plan.matrix, &usual));
    words.extend(
        plan.matrix
            .axes
            .iter()
            .filter_map(|axis| only(axis, &usual)),
    );
    words.extend(yours(plan));
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

fn arms(matrix: &Matrix, usual: &Matrix) -> Option<String> {
    let names = |matrix: &Matrix| -> Vec<String> {
        matrix.arms.iter().map(|arm| arm.name.clone()).collect()
    };
    let (chosen, usual) = (names(matrix), names(usual));
    (chosen != usual).then(|| format!("--arm {}", chosen.join(",")))
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

/// Safe to paste into a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=,._-+/:".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Made, plan};
    use crate::plan::PlanOptions;

    #[test]
    fn only_what_is_unusual_is_said() {
        assert_eq!(
            again(&Made, &plan(3)),
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
        let words = again(&Made, &plan);
        assert!(
            words.contains("--blocks 2")
                && words.ends_with("--only maintenance_io_concurrency=10,50"),
            "{words}"
        );
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    }
}
