//! The register of experiments: each is one file here, named after its question, and one line
//! below.

use pgclinic_format::registry;

use crate::experiment::Experiment;

registry! {
    /// Every experiment, in the order of `lab list`.
    pub static EXPERIMENTS: [Experiment] = [
        duplicate_inserts::DUPLICATE_INSERTS,
        catalog_churn::CATALOG_CHURN,
        uuid_keys::UUID_KEYS,
        checksum_cost::CHECKSUM_COST,
        toast_compression::TOAST_COMPRESSION,
        lock_contention::LockContention,
        jit_memory::JitMemory,
        connection_memory::ConnectionMemory,
        async_io::ASYNC_IO,
        filesystem::FILESYSTEM,
        large_object_dump::LARGE_OBJECT_DUMP,
        analyze_prefetch::ANALYZE_PREFETCH,
        oauth_login::OAUTH_LOGIN,
    ];
}

/// The experiment of this name.
pub fn experiment_named(name: &str) -> Option<&'static dyn Experiment> {
    EXPERIMENTS
        .iter()
        .copied()
        .find(|experiment| experiment.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PlanOptions};

    /// A person waits for it: this is what the scale promises.
    const QUICK_S: f64 = 8.0 * 60.0;

    #[test]
    fn the_quick_scale_takes_a_few_minutes() {
        for experiment in EXPERIMENTS {
            let plan = Plan::make(*experiment, None, &PlanOptions::default()).expect("a plan");
            let (name, seconds) = (experiment.name(), plan.cost.seconds);
            assert!(
                seconds <= QUICK_S,
                "{name} takes {:.1} minutes",
                seconds / 60.0
            );
        }
    }

    #[test]
    fn combinations_that_nobody_asks_are_told_and_are_no_plan_alone() {
        let experiment = experiment_named("connection-memory").expect("it is registered");
        let mut options = PlanOptions::default();
        let whole = Plan::make(experiment, None, &options).expect("a plan");
        let told: Vec<&str> = whole
            .left_out
            .iter()
            .map(|left| left.what.as_str())
            .collect();
        assert_eq!(told, ["35 of 60 combinations"]);
        options.arms = vec!["idle".to_owned()];
        options.only = vec![("huge-pages".to_owned(), vec!["on".to_owned()])];
        let refused = Plan::make(experiment, None, &options).expect_err("nothing to run");
        assert!(
            refused.to_string().contains("none of these arms"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_decided_is_also_run() {
        for experiment in EXPERIMENTS {
            let plan = Plan::make(*experiment, None, &PlanOptions::default()).expect("a plan");
            for card in experiment.comparisons(&plan.matrix) {
                for side in [&card.baseline, &card.candidate] {
                    let is_run = plan
                        .cells
                        .iter()
                        .any(|cell| cell.arm == side.arm && cell.point == side.point);
                    assert!(is_run, "{}: {side:?}", experiment.name());
                }
            }
        }
    }
}
