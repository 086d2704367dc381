//! The experiment's comparisons, decided.

use pgclinic_diagnose::document::{DecisionCard, RunSummary, RunWord, Side};

use super::{Design, Study, figures, noise};
use crate::decision::{Comparison, Question, decide};
use crate::published;

/// Sides without a result say why they have none, by what became of their runs.
pub(super) fn all(study: &Study<'_>, runs: &[RunSummary]) -> Vec<DecisionCard> {
    let mut cards = Vec::new();
    for comparison in &study.comparisons {
        let Some(mut card) = card(study, comparison) else {
            continue;
        };
        let sides = [&comparison.candidate, &comparison.baseline];
        let why = sides.into_iter().find_map(|side| why_not(runs, side));
        if let Some(why) = why.filter(|_| card.effect.is_none()) {
            card.headline = comparison.open(&why);
        }
        cards.push(card);
    }
    cards
}

/// Why no run of this side has a result; `None` when one has, or its turn did not come.
fn why_not(runs: &[RunSummary], side: &Side) -> Option<String> {
    let same =
        |(axis, value): (&String, &String)| side.point.get(axis).is_none_or(|own| own == value);
    let mut own = runs
        .iter()
        .filter(|run| run.arm == side.arm && run.point.iter().all(same))
        .peekable();
    if own.clone().any(|run| run.outcome == RunWord::Done) {
        return None;
    }
    let first = own.find(|run| run.why.is_some())?;
    let why = first.why.as_deref().unwrap_or_default();
    let word = match first.outcome {
        RunWord::Skipped => "was skipped",
        RunWord::Empty => "gave nothing",
        _ => "failed",
    };
    Some(format!("{} {word}: {why}", side.arm))
}

/// One card. `None` where the experiment has no such metric.
fn card(study: &Study<'_>, comparison: &Comparison) -> Option<DecisionCard> {
    let metric = study
        .plan
        .metrics
        .iter()
        .find(|metric| metric.name == comparison.metric)?;
    let summary = figures::metric(metric);
    let observations = &study.observations;
    let values = |side: &Side| observations.values(&metric.name, &side.arm, &side.point);
    let baseline = &comparison.baseline;
    let question = Question {
        metric: &summary,
        comparison,
        baseline: values(baseline),
        candidate: values(&comparison.candidate),
        controls: observations.controls(&metric.name, &baseline.arm, &baseline.point),
        noise: noise::floor(observations, &metric.name),
        blocks: study.blocks,
        are_paired: study.design == Design::Blocks,
        alpha: alpha(study),
        margin: study.judge.margin,
        minutes_a_block: minutes_a_block(study),
    };
    let mut card = decide(&question);
    card.published = published::answer(&study.plan.experiment, &summary, &card);
    for side in [&comparison.baseline, &comparison.candidate] {
        card.runs.extend(
            observations
                .at(&side.arm, &side.point)
                .map(|one| one.run.clone()),
        );
    }
    Some(card)
}

/// The right to err is shared among the cards of a page, so that more cards do not mean more errors.
fn alpha(study: &Study<'_>) -> f64 {
    let cards = u32::try_from(study.comparisons.len().max(1)).unwrap_or(u32::MAX);
    study.judge.alpha / f64::from(cards)
}

fn minutes_a_block(study: &Study<'_>) -> f64 {
    let mut blocks: Vec<u32> = study.observations.0.iter().map(|one| one.block).collect();
    blocks.dedup();
    let seconds: f64 = study.observations.0.iter().map(|one| one.elapsed_s).sum();
    let count = u32::try_from(blocks.len().max(1)).unwrap_or(u32::MAX);
    seconds / 60.0 / f64::from(count)
}
