//! The experiment's comparisons, decided.

use pgclinic_model::document::{DecisionCard, MetricSummary, RunSummary, RunWord, Side};

use super::{Design, Study, figures, noise};
use crate::decision::{Comparison, Question, Withheld, decide, leans_on_an_interval};
use crate::published;
use crate::statistics::stopping::Spending;

/// Sides without a result say why they have none, by what became of their runs.
pub(super) fn all(study: &Study<'_>, runs: &[RunSummary]) -> Vec<DecisionCard> {
    let mut cards = Vec::new();
    let alpha = alpha(study);
    for (place, comparison) in study.comparisons.iter().enumerate() {
        let withheld = study.withheld.get(place).and_then(Option::as_ref);
        let Some(metric) = metric(study, comparison) else {
            continue;
        };
        let question = question(study, comparison, &metric, alpha);
        let mut card = card(&question, withheld, study);
        let sides = [&comparison.candidate, &comparison.baseline];
        let why = sides.into_iter().find_map(|side| why_not(runs, side));
        if let Some(why) = why.filter(|_| card.effect.is_none() && withheld.is_none()) {
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

/// What a comparison measures. `None` where the experiment has no such metric.
fn metric(study: &Study<'_>, comparison: &Comparison) -> Option<MetricSummary> {
    let mut metrics = study.plan.metrics.iter();
    let found = metrics.find(|metric| metric.name == comparison.metric);
    found.map(figures::metric)
}

fn question<'a>(
    study: &Study<'_>,
    comparison: &'a Comparison,
    metric: &'a MetricSummary,
    alpha: f64,
) -> Question<'a> {
    let observations = &study.observations;
    let values = |side: &Side| observations.values(&metric.name, &side.arm, &side.point);
    let Side { arm, point } = &comparison.baseline;
    Question {
        metric,
        comparison,
        baseline: values(&comparison.baseline),
        candidate: values(&comparison.candidate),
        controls: observations.controls(&metric.name, arm, point),
        noise: noise::at(observations, &metric.name, arm, point),
        blocks: study.blocks,
        spending: match study.plan.spare_from {
            Some(_) => Spending::Early,
            None => Spending::Late,
        },
        are_paired: study.design == Design::Blocks,
        alpha,
        margin: study.judge.margin,
        minutes_a_block: minutes_a_block(study),
    }
}

/// One card with what was published and its runs.
fn card(question: &Question<'_>, withheld: Option<&Withheld>, study: &Study<'_>) -> DecisionCard {
    let mut card = decide(question);
    if let Some(withheld) = withheld {
        card = without_advice(card, question.comparison, withheld);
    }
    card.published = published::answer(&study.plan.experiment, question.metric, &card);
    for side in [
        &question.comparison.baseline,
        &question.comparison.candidate,
    ] {
        let runs = study.observations.at(&side.arm, &side.point);
        card.runs.extend(runs.map(|one| one.run.clone()));
    }
    card
}

/// A card whose figures must not advise: they stand with the runs.
fn without_advice(
    card: DecisionCard,
    comparison: &Comparison,
    withheld: &Withheld,
) -> DecisionCard {
    DecisionCard {
        word: withheld.word,
        headline: comparison.headline(withheld),
        basis: withheld.why.clone(),
        effect: None,
        apply: Vec::new(),
        more_minutes: None,
        ..card
    }
}

/// The right to err is shared among the cards of a page, so that more cards do not mean more
/// errors. What is counted, or was not run at all, cannot err by chance and takes no share.
fn alpha(study: &Study<'_>) -> f64 {
    let takes_a_share = |comparison: &&Comparison| {
        metric(study, comparison).is_some_and(|metric| {
            leans_on_an_interval(&question(study, comparison, &metric, study.judge.alpha))
        })
    };
    let cards = study.comparisons.iter().filter(takes_a_share).count();
    let cards = u32::try_from(cards.max(1)).unwrap_or(u32::MAX);
    study.judge.alpha / f64::from(cards)
}

fn minutes_a_block(study: &Study<'_>) -> f64 {
    let mut blocks: Vec<u32> = study.observations.0.iter().map(|one| one.block).collect();
    blocks.dedup();
    let seconds: f64 = study.observations.0.iter().map(|one| one.elapsed_s).sum();
    let count = u32::try_from(blocks.len().max(1)).unwrap_or(u32::MAX);
    seconds / 60.0 / f64::from(count)
}
