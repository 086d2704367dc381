//! From the values of two sides to a verdict in plain words.
//!
//! ```text
//! counted and clear (counted.rs)      ─► better, worse, equivalent: no interval needed
//! ratios inside blocks, at the looks  ─► interval within the margin ─► equivalent
//!   (statistics::{paired, stopping})     interval clear of 1        ─► better, worse
//!                                        else                       ─► undecided, and how many minutes more
//! ```
//!
//! `how.rs` says by what the interval was made.

mod apart;
mod comparison;
mod counted;
mod how;
pub mod words;

pub(crate) use comparison::decisive;
pub use comparison::{
    CardTone, Comparison, Withheld, along_an_axis, on_metrics, with_the_first_arm,
};
use counted::{Counted, Sides};
use pgclinic_model::document::{Better, DecisionCard, DecisionWord, Effect, MetricSummary};

use crate::statistics::noise::Noise;
use crate::statistics::quantile::median;
use crate::statistics::stopping::{Judged, Look, Spending, judge, looks, next};
use crate::statistics::{Interval, equivalence, needed, paired, student};

/// What a decision is made of.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// What is measured.
    pub metric: &'a MetricSummary,
    /// What is held against what.
    pub comparison: &'a Comparison,
    /// (block, value) of the baseline.
    pub baseline: Vec<(u32, f64)>,
    /// (block, value) of the candidate.
    pub candidate: Vec<(u32, f64)>,
    /// Values of control runs of the baseline.
    pub controls: Vec<f64>,
    /// What control runs say of the noise, at the baseline's place where there are enough of them
    /// there.
    pub noise: Option<Noise>,
    /// Blocks that were planned, over all machines.
    pub blocks: u32,
    /// Whether the run ends where it has decided.
    pub spending: Spending,
    /// Values of one block belong together; otherwise the sides were measured at different times.
    pub are_paired: bool,
    /// This decision may err this often.
    pub alpha: f64,
    /// Ratios this close to 1 do not matter.
    pub margin: f64,
    /// What one more block takes.
    pub minutes_a_block: f64,
}

/// The verdict and what it is made of, before it is put into words.
struct DecisionParts {
    word: DecisionWord,
    /// How many times better.
    times: Option<f64>,
    interval: Option<Interval>,
    is_counted: bool,
    basis: String,
    more_minutes: Option<f64>,
}

/// Whether the answer leans on an interval, and so may be wrong by chance: there are runs of both
/// sides, and what they gave is not simply counted.
pub fn leans_on_an_interval(question: &Question<'_>) -> bool {
    match medians(question) {
        (Some(baseline), Some(candidate)) => counted(question, baseline, candidate).is_none(),
        _ => false,
    }
}

/// Decides. What was published and the ids of the runs are for the caller to add.
pub fn decide(question: &Question<'_>) -> DecisionCard {
    let sides = medians(question);
    let verdict = match sides {
        (Some(baseline), Some(candidate)) => counted(question, baseline, candidate)
            .unwrap_or_else(|| measured(question, baseline, candidate)),
        _ => without_runs(question),
    };
    let effect = sides.0.zip(sides.1).map(|(baseline, candidate)| Effect {
        times: verdict.times,
        times_interval: verdict.interval.map(|i| [i.low, i.high]),
        baseline,
        candidate,
        confidence: (!verdict.is_counted).then_some(1.0 - question.alpha),
    });
    DecisionCard {
        word: verdict.word,
        headline: headline(question, &verdict, effect.as_ref()),
        metric: question.metric.name.clone(),
        baseline: question.comparison.baseline.clone(),
        candidate: question.comparison.candidate.clone(),
        effect,
        basis: verdict.basis,
        apply: if question.comparison.is_backed_by(verdict.word) {
            question.comparison.apply.clone()
        } else {
            Vec::new()
        },
        more_minutes: verdict.more_minutes,
        published: None,
        runs: Vec::new(),
    }
}

fn medians(question: &Question<'_>) -> (Option<f64>, Option<f64>) {
    let of = |side: &[(u32, f64)]| median(&values(side));
    (of(&question.baseline), of(&question.candidate))
}

fn values(side: &[(u32, f64)]) -> Vec<f64> {
    side.iter().map(|(_, value)| *value).collect()
}

fn without_runs(question: &Question<'_>) -> DecisionParts {
    let comparison = question.comparison;
    undecided(
        match (question.baseline.is_empty(), question.candidate.is_empty()) {
            (true, true) => "neither side has a run with a result".to_owned(),
            (true, false) => format!("{} has no run with a result", comparison.baseline.arm),
            _ => format!("{} has no run with a result", comparison.candidate.arm),
        },
    )
}

fn undecided(basis: String) -> DecisionParts {
    DecisionParts {
        word: DecisionWord::Undecided,
        times: None,
        interval: None,
        is_counted: false,
        basis,
        more_minutes: None,
    }
}

/// How many times better `candidate` is than `baseline`.
pub fn times_better(better: Better, baseline: f64, candidate: f64) -> Option<f64> {
    let ratio = match better {
        Better::Lower => baseline / candidate,
        Better::Higher => candidate / baseline,
    };
    (baseline > 0.0 && candidate > 0.0).then_some(ratio)
}

fn counted(question: &Question<'_>, baseline: f64, candidate: f64) -> Option<DecisionParts> {
    let mut equal = values(&question.baseline);
    equal.extend(&question.controls);
    let sides = Sides {
        baseline: &equal,
        candidate: &values(&question.candidate),
        noise_times: question.noise.as_ref().map(Noise::times),
    };
    let times = times_better(question.metric.better, baseline, candidate);
    let (word, basis) = match sides.compare() {
        Counted::Unclear => return None,
        Counted::Apart { .. } if question.metric.timing => return None,
        Counted::Same => (
            DecisionWord::Equivalent,
            "counted: every run gave the same".to_owned(),
        ),
        Counted::Apart { within } => {
            let within = words::value(within, &question.metric.unit);
            let basis = format!("counted: runs of the same side differ by {within} at most");
            (clear_word(question, times, baseline, candidate), basis)
        }
    };
    Some(DecisionParts {
        word,
        times,
        interval: None,
        is_counted: true,
        basis,
        more_minutes: None,
    })
}

/// The verdict on a difference that is there.
fn clear_word(
    question: &Question<'_>,
    times: Option<f64>,
    baseline: f64,
    candidate: f64,
) -> DecisionWord {
    let margin = equivalence::bounds(question.margin);
    if times.is_some_and(|times| margin.contains(times.ln())) {
        return DecisionWord::Equivalent;
    }
    let is_better = match question.metric.better {
        Better::Lower => candidate < baseline,
        Better::Higher => candidate > baseline,
    };
    if is_better {
        DecisionWord::Better
    } else {
        DecisionWord::Worse
    }
}

/// Differences inside blocks, positive for better.
struct Differences<'a> {
    values: Vec<f64>,
    /// Logarithms of ratios, where all values are above zero.
    are_ratios: bool,
    /// Of logarithms of ratios only.
    noise: Option<&'a Noise>,
}

fn differences<'a>(question: &'a Question<'_>) -> Differences<'a> {
    let ratios = paired::log_ratios(&question.baseline, &question.candidate);
    let are_ratios = ratios.is_some();
    let pairs =
        ratios.unwrap_or_else(|| paired::differences(&question.baseline, &question.candidate));
    let sign = match question.metric.better {
        Better::Lower => -1.0,
        Better::Higher => 1.0,
    };
    let signed = pairs.differences.iter().map(|difference| sign * difference);
    Differences {
        values: signed.collect(),
        are_ratios,
        noise: question.noise.as_ref().filter(|_| are_ratios),
    }
}

fn measured(question: &Question<'_>, baseline: f64, candidate: f64) -> DecisionParts {
    if !question.are_paired {
        return apart::measured(question);
    }
    let found = differences(question);
    let are_ratios = found.are_ratios;
    let looks = looks(question.blocks, question.alpha, question.spending);
    let interval = |part: &[f64], alpha: f64| paired::interval(part, found.noise, alpha);
    let Some(judged) = judge(&found.values, &looks, &interval) else {
        let times = times_better(question.metric.better, baseline, candidate);
        return DecisionParts {
            times,
            ..too_early(question, &found.values, &looks)
        };
    };
    let (value, all) = (judged.estimate.value, judged.estimate.interval);
    let word = word_of(question, all, are_ratios.then_some(judged.wider_alpha));
    let open = word == DecisionWord::Undecided;
    DecisionParts {
        word,
        times: are_ratios.then(|| value.exp()),
        interval: are_ratios.then(|| all.map(f64::exp)),
        is_counted: false,
        basis: how::basis(question, &found, &looks, &judged),
        more_minutes: open
            .then(|| more_minutes(question, &found, &judged))
            .flatten(),
    }
}

/// The verdict on an interval of differences, positive for better; `wider_alpha` is the one made
/// with twice the alpha, where differences are logarithms of ratios.
fn word_of(question: &Question<'_>, all: Interval, wider_alpha: Option<Interval>) -> DecisionWord {
    if wider_alpha.is_some_and(|interval| equivalence::holds(interval, question.margin)) {
        DecisionWord::Equivalent
    } else if all.low > 0.0 {
        DecisionWord::Better
    } else if all.high < 0.0 {
        DecisionWord::Worse
    } else {
        DecisionWord::Undecided
    }
}

fn too_early(question: &Question<'_>, differences: &[f64], looks: &[Look]) -> DecisionParts {
    let done = differences.len();
    let mut verdict = match next(looks, done) {
        Some(look) => undecided(format!(
            "{done} of {} blocks have both sides; the first look is after {}",
            question.blocks, look.blocks
        )),
        None if done < 2 => undecided(format!(
            "{done} block{} with both sides cannot tell a difference from noise",
            if done == 1 { "" } else { "s" }
        )),
        None => undecided("the looks contradict each other: the machine was not the same".into()),
    };
    let wanted = next(looks, done).map_or(3, |look| usize::try_from(look.blocks).unwrap_or(3));
    verdict.more_minutes = minutes(question, wanted.saturating_sub(done));
    verdict
}

fn more_minutes(question: &Question<'_>, found: &Differences<'_>, judged: &Judged) -> Option<f64> {
    // The margin is one of ratios; other differences lie within none.
    let margin = if found.are_ratios {
        equivalence::bounds(question.margin)
    } else {
        Interval::between(0.0, 0.0)
    };
    let done = found.values.len();
    let (scatter, _) = student::scatter(&found.values, found.noise)?;
    let all = needed::blocks(
        judged.estimate.value,
        (scatter, done),
        margin,
        question.alpha,
    )?;
    minutes(question, all.max(done + 1) - done)
}

fn minutes(question: &Question<'_>, blocks: usize) -> Option<f64> {
    let blocks = f64::from(u32::try_from(blocks).ok()?);
    (question.minutes_a_block > 0.0).then_some(blocks * question.minutes_a_block)
}

fn headline(question: &Question<'_>, verdict: &DecisionParts, effect: Option<&Effect>) -> String {
    let Comparison {
        subject,
        conditions,
        ..
    } = question.comparison;
    let found = match verdict.word {
        DecisionWord::Undecided => return open_question(question, verdict),
        DecisionWord::Better | DecisionWord::Worse => how_much(question, verdict, effect),
        DecisionWord::Equivalent
            if verdict.is_counted && verdict.times.is_none_or(|t| t == 1.0) =>
        {
            "the same".to_owned()
        }
        DecisionWord::Equivalent => {
            format!("the same within {} %", words::percentage(question.margin))
        }
    };
    let advice = question.comparison.advice(verdict.word);
    format!("{advice}: {subject} {found}{conditions}")
}

fn how_much(question: &Question<'_>, verdict: &DecisionParts, effect: Option<&Effect>) -> String {
    let (metric, words) = (question.metric, words::comparatives(question.metric));
    let ratio = verdict.times.filter(|times| words::is_ratio(*times));
    match (ratio, effect) {
        (Some(times), _) => words::difference(times, verdict.interval, words),
        (None, Some(effect)) => {
            let was = words::value(effect.baseline, &metric.unit);
            match effect.candidate {
                0.0 => format!("none instead of {was}"),
                now => format!("{} instead of {was}", words::value(now, &metric.unit)),
            }
        }
        (None, None) => String::new(),
    }
}

fn open_question(question: &Question<'_>, verdict: &DecisionParts) -> String {
    let Comparison {
        subject,
        conditions,
        ..
    } = question.comparison;
    let so_far = match verdict.interval {
        Some(interval) if words::is_telling(interval) => {
            let range = words::range(interval, words::comparatives(question.metric));
            format!("{subject} {range}{conditions}")
        }
        Some(_) => {
            let [now, instead] = [&question.baseline, &question.candidate]
                .map(|side| words::spread(&values(side), &question.metric.unit));
            format!(
                "{subject} {now} now, {instead} instead{conditions}: too far apart, or too few runs, to tell"
            )
        }
        None => format!("{subject}{conditions}: {}", verdict.basis),
    };
    let more = verdict
        .more_minutes
        .map(|minutes| format!("; {} may tell", words::more_time(minutes)));
    let open = question.comparison.open(&so_far);
    format!("{open}{}", more.unwrap_or_default())
}

#[cfg(test)]
mod tests;
