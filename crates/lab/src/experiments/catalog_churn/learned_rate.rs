//! The rate at which relations are created in a person's own cluster, as cycles of a workload.

use crate::plan::LeftOut;
use crate::table_profile::{TableShape, told};

/// The value of the axis rate.
pub(super) const LEARNED: &str = "learned";

/// Cycles a second that are run: below, a run takes minutes to make a few; above, no session makes
/// so many.
const CYCLES_MIN: f64 = 0.25;
const CYCLES_MAX: f64 = 200.0;

/// Relations created a second, or why that is not known.
#[derive(Debug, Clone)]
pub(super) struct LearnedRate(Result<f64, String>);

impl LearnedRate {
    /// As the WAL beside the table told.
    pub(super) fn of(shape: &TableShape) -> Self {
        let known = shape.rates().and_then(|rates| {
            let created = rates.relations_created_a_second();
            created.ok_or_else(|| "the files of pg_class are as new as the last commit".to_owned())
        });
        Self(known.and_then(|created| {
            if created > 0.0 {
                Ok(created)
            } else {
                Err("no relation was created in the WAL that was read".to_owned())
            }
        }))
    }

    /// Cycles a second that create as many, where one creates so many; within what is run.
    pub(super) fn cycles(&self, relations: f64) -> Option<f64> {
        let cycles = self.wanted(relations)?;
        Some(cycles.clamp(CYCLES_MIN, CYCLES_MAX))
    }

    /// The same, whatever that is.
    fn wanted(&self, relations: f64) -> Option<f64> {
        let created = self.0.as_ref().ok()?;
        Some(created / relations.max(1.0))
    }

    /// It can be run with cycles that create so many relations.
    pub(super) fn fits(&self, relations: f64) -> bool {
        let wanted = self.wanted(relations);
        wanted.is_some_and(|wanted| (CYCLES_MIN..=CYCLES_MAX).contains(&wanted))
    }

    /// Words where another rate was run than the one that was learned.
    pub(super) fn doubt(&self, relations: f64) -> Option<String> {
        let wanted = self.wanted(relations).filter(|_| !self.fits(relations))?;
        Some(format!(
            "the learned rate is {} cycles a second, and between {CYCLES_MIN} and {CYCLES_MAX} are run",
            told(wanted)
        ))
    }

    /// What of it is not run with these workloads, each with the relations that a cycle creates.
    pub(super) fn left_out(&self, workloads: &[(&str, f64)]) -> Vec<LeftOut> {
        let created = match &self.0 {
            Ok(created) => told(*created),
            Err(why) => {
                let what = format!("rate={LEARNED}");
                let why = why.clone();
                return vec![LeftOut { what, why }];
            }
        };
        let unfit = workloads
            .iter()
            .filter(|(_, relations)| !self.fits(*relations));
        let left_out = |(workload, relations): &(&str, f64)| LeftOut {
            what: format!("rate={LEARNED} at workload={workload}"),
            why: format!(
                "{created} relations created a second are {} cycles, and between {CYCLES_MIN} and {CYCLES_MAX} are run",
                told(self.wanted(*relations).unwrap_or_default())
            ),
        };
        unfit.map(left_out).collect()
    }

    /// What the value stands for, with these workloads.
    pub(super) fn words(&self, workloads: &[(&str, f64)]) -> Option<String> {
        let created = self.0.as_ref().ok()?;
        let cycles = |(workload, relations): &(&str, f64)| {
            let cycles = self.cycles(*relations).filter(|_| self.fits(*relations))?;
            Some(format!("{} cycles of {workload}", told(cycles)))
        };
        let cycles: Vec<String> = workloads.iter().filter_map(cycles).collect();
        (!cycles.is_empty()).then(|| {
            format!(
                "the rate {LEARNED} is that of your cluster: {} relations created a second, as many as {} create",
                told(*created),
                cycles.join(" or ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKLOADS: [(&str, f64); 2] = [("reporting", 9.0), ("shop", 32.0)];

    #[test]
    fn relations_a_second_are_cycles_a_second() {
        let learned = LearnedRate(Ok(18.0));
        assert_eq!(learned.cycles(9.0), Some(2.0));
        assert!(learned.left_out(&WORKLOADS).is_empty());
        assert_eq!(
            learned.words(&WORKLOADS).expect("a rate"),
            "the rate learned is that of your cluster: 18.0 relations created a second, as many as 2.0 cycles of \
             reporting or 0.6 cycles of shop create"
        );
    }

    #[test]
    fn a_rate_that_no_run_can_have_is_told_with_its_workload() {
        let learned = LearnedRate(Ok(4.5));
        let left_out = learned.left_out(&WORKLOADS);
        let [shop] = left_out.as_slice() else {
            panic!("{left_out:?}")
        };
        assert_eq!(shop.what, "rate=learned at workload=shop");
        assert_eq!(
            shop.why,
            "4.5 relations created a second are 0.1 cycles, and between 0.25 and 200 are run"
        );
        assert_eq!(learned.cycles(32.0), Some(CYCLES_MIN));
        let doubt = learned.doubt(32.0).expect("another rate is run");
        assert!(
            doubt.starts_with("the learned rate is 0.1 cycles"),
            "{doubt}"
        );
        assert_eq!(learned.doubt(9.0), None);
    }

    #[test]
    fn what_is_not_known_is_told_with_its_reason() {
        let learned = LearnedRate(Err("pg_wal holds no WAL".to_owned()));
        let left_out = learned.left_out(&WORKLOADS);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].why, "pg_wal holds no WAL");
        assert!(!learned.fits(9.0) && learned.cycles(9.0).is_none());
        assert_eq!(learned.words(&WORKLOADS), None);
    }
}
