//! What is held against what, and how the answer is to be said.

use std::collections::BTreeMap;

use pgclinic_model::document::{DecisionWord, Side};

use crate::cell::{Arm, Axis};
use crate::experiment::{Experiment, Matrix};

/// Whether a card advises, or tells what something costs that one may want all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CardTone {
    /// `do not choose B instead of A: the read 1.3 times slower`.
    #[default]
    Choice,
    /// `the price of data checksums: WAL a transaction 1.3 times larger`.
    Price,
}

/// Why a comparison gives no advice, whatever its figures are: something must be shown first that
/// was not, or was shown not to be there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Withheld {
    /// [`DecisionWord::Undecided`], or [`DecisionWord::Equivalent`] where nothing needs to be done.
    pub word: DecisionWord,
    /// What stands in the headline behind the colon.
    pub why: String,
}

/// One comparison of a decision card.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// Which of the experiment's metrics decides.
    pub metric: String,
    /// What is there now.
    pub baseline: Side,
    /// What might be chosen instead.
    pub candidate: Side,
    /// What a person would do, as a command: `raise maintenance_io_concurrency from 10 to 50`. Of a
    /// price: what has it, `data checksums`.
    pub action: String,
    /// Which of the two it is.
    pub voice: CardTone,
    /// What gets better or worse by it: `ANALYZE`.
    pub subject: String,
    /// Under which conditions, with a comma or a preposition in front: ` on this disk, cold`. May
    /// be empty.
    pub conditions: String,
    /// Settings or statements, one a line.
    pub apply: Vec<String>,
}

impl Comparison {
    /// The beginning of a headline that ends in a colon.
    pub(super) fn advice(&self, word: DecisionWord) -> String {
        let action = &self.action;
        match (self.voice, word) {
            (CardTone::Choice, DecisionWord::Better) => action.clone(),
            (CardTone::Choice, DecisionWord::Worse) => format!("do not {action}"),
            (CardTone::Choice, DecisionWord::Equivalent) => format!("no need to {action}"),
            (CardTone::Choice, DecisionWord::Undecided) => format!("whether to {action} is open"),
            (CardTone::Price, DecisionWord::Worse) => format!("the price of {action}"),
            (CardTone::Price, DecisionWord::Better) => format!("there is no price of {action}"),
            (CardTone::Price, DecisionWord::Equivalent) => {
                format!("no price of {action} that matters")
            }
            (CardTone::Price, DecisionWord::Undecided) => format!("the price of {action} is open"),
        }
    }

    /// Whether a verdict is a reason to do it.
    pub(super) fn is_backed_by(&self, word: DecisionWord) -> bool {
        match self.voice {
            CardTone::Choice => word == DecisionWord::Better,
            CardTone::Price => matches!(word, DecisionWord::Better | DecisionWord::Equivalent),
        }
    }

    /// The headline of a question that cannot be answered yet.
    pub(crate) fn open(&self, why: &str) -> String {
        format!("{}: {why}", self.advice(DecisionWord::Undecided))
    }

    /// The headline of a decision that is not made by figures.
    pub(crate) fn headline(&self, withheld: &Withheld) -> String {
        format!("{}: {}", self.advice(withheld.word), withheld.why)
    }

    /// Moves both sides to these values of axes, where the matrix has them.
    pub fn at(&mut self, point: &[(&str, &str)], matrix: &Matrix) {
        for (name, value) in point {
            let axis = matrix.axes.iter().find(|axis| axis.name == *name);
            if axis.is_some_and(|axis| axis.values.iter().any(|other| other == value)) {
                for side in [&mut self.baseline, &mut self.candidate] {
                    side.point.insert((*name).to_owned(), (*value).to_owned());
                }
            }
        }
        self.conditions = conditions(&self.candidate.point);
    }
}

/// ` (clients 1536)`, or nothing.
fn conditions(point: &BTreeMap<String, String>) -> String {
    let parts: Vec<String> = point
        .iter()
        .map(|(axis, value)| format!("{axis} {value}"))
        .collect();
    match parts.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}

/// Every other arm against the first, where the load is highest: numeric axes at their last value,
/// words at their first. `subject` is what the metric says in words, `apply` what to do when an arm
/// is best.
pub fn with_the_first_arm(
    matrix: &Matrix,
    metric: &str,
    subject: &str,
    apply: &dyn Fn(&Arm) -> String,
) -> Vec<Comparison> {
    let Some((first, others)) = matrix.arms.split_first() else {
        return Vec::new();
    };
    let point: BTreeMap<String, String> = matrix.axes.iter().filter_map(decisive).collect();
    let side = |arm: &Arm| Side {
        arm: arm.name.clone(),
        point: point.clone(),
    };
    let compare = |arm: &Arm| Comparison {
        metric: metric.to_owned(),
        baseline: side(first),
        candidate: side(arm),
        action: format!("choose {} instead of {}", arm.name, first.name),
        voice: CardTone::Choice,
        subject: subject.to_owned(),
        conditions: conditions(&point),
        apply: apply(arm).lines().map(str::to_owned).collect(),
    };
    others.iter().map(compare).collect()
}

/// The same for several metrics of an experiment, the most important first.
pub fn on_metrics(matrix: &Matrix, experiment: &dyn Experiment, names: &[&str]) -> Vec<Comparison> {
    let advice = |arm: &Arm| experiment.advice(arm);
    let metrics = experiment.metrics();
    let named = |name: &&str| metrics.iter().find(|metric| metric.name == *name);
    let chosen = names.iter().filter_map(named);
    let cards =
        chosen.flat_map(|metric| with_the_first_arm(matrix, &metric.name, &metric.words, &advice));
    cards.collect()
}

/// The value of an axis at which an experiment decides when it does not say.
pub(crate) fn decisive(axis: &Axis) -> Option<(String, String)> {
    let are_numbers = axis.values.iter().all(|value| value.parse::<f64>().is_ok());
    let value = if are_numbers {
        axis.values.last()
    } else {
        axis.values.first()
    };
    value.map(|value| (axis.name.clone(), value.clone()))
}

/// One arm against itself, an axis at `to` instead of `from`, the other axes where
/// [`with_the_first_arm`] has them. `None` where the matrix has no such arm, axis or value.
pub fn along_an_axis(
    matrix: &Matrix,
    arm: &str,
    axis: &str,
    [from, to]: [&str; 2],
) -> Option<[Side; 2]> {
    let found = matrix.axes.iter().find(|other| other.name == axis)?;
    let has = |value: &str| found.values.iter().any(|other| other == value);
    let is_there = matrix.arms.iter().any(|other| other.name == arm) && has(from) && has(to);
    let point: BTreeMap<String, String> = matrix.axes.iter().filter_map(decisive).collect();
    let side = |value: &str| {
        let mut point = point.clone();
        point.insert(axis.to_owned(), value.to_owned());
        Side {
            arm: arm.to_owned(),
            point,
        }
    };
    is_there.then(|| [side(from), side(to)])
}
