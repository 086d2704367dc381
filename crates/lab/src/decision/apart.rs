//! Sides that were measured at different times: every value of one against every value of the
//! other.

use pgclinic_model::document::{Better, DecisionWord};

use super::{DecisionParts, Question, undecided, values, word_of, words};
use crate::statistics::noise::Noise;
use crate::statistics::{Estimate, hodges_lehmann, student};

pub(super) fn measured(question: &Question<'_>) -> DecisionParts {
    let sign = match question.metric.better {
        Better::Lower => -1.0,
        Better::Higher => 1.0,
    };
    let logarithms = |side: &[(u32, f64)]| -> Option<Vec<f64>> {
        let side = values(side);
        let above_zero = side.iter().all(|value| *value > 0.0);
        above_zero.then(|| side.iter().map(|value| sign * value.ln()).collect())
    };
    let (Some(baseline), Some(candidate)) = (
        logarithms(&question.baseline),
        logarithms(&question.candidate),
    ) else {
        return undecided(
            "values of zero have no ratio; measured at different times, they are not compared"
                .into(),
        );
    };
    let floor = question.noise.as_ref().map_or(0.0, Noise::spread);
    let (one, other) = (baseline.len(), candidate.len());
    let Some((estimate, method)) = interval(&baseline, &candidate, floor, question.alpha) else {
        return undecided(format!(
            "runs: {one} against {other}, which cannot tell a difference from noise"
        ));
    };
    let wider = interval(&baseline, &candidate, floor, 2.0 * question.alpha);
    let word = word_of(
        question,
        estimate.interval,
        wider.map(|(wider, _)| wider.interval),
    );
    let percent = words::percentage(question.alpha);
    let mut basis = format!(
        "runs: {one} against {other}, measured at different times, {method}; errs in {percent} % of cases at most, \
         if nothing else changed in between"
    );
    if word == DecisionWord::Undecided {
        basis.push_str(". More runs of either side narrow it");
    }
    DecisionParts {
        word,
        times: Some(estimate.value.exp()),
        interval: Some(estimate.interval.map(f64::exp)),
        is_counted: false,
        basis,
        more_minutes: None,
    }
}

fn interval(
    baseline: &[f64],
    candidate: &[f64],
    floor: f64,
    alpha: f64,
) -> Option<(Estimate, &'static str)> {
    let ranks = hodges_lehmann::unpaired(baseline, candidate, alpha);
    ranks
        .map(|estimate| (estimate, "Hodges-Lehmann by exact ranks"))
        .or_else(|| {
            let welch = student::unpaired(baseline, candidate, floor, alpha)?;
            Some((
                welch,
                "means by Welch, their spread not below that of control runs",
            ))
        })
}
