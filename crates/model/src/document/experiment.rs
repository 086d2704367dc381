//! `pgclinic.lab/1`: an experiment's runs, what they show, and the decision.
//!
//! Every number that a report shows stands here; a report computes nothing. A line, an effect and
//! a card name the runs behind them, and a run names its raw files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Tool;

/// Which way a metric is good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Seconds, bytes.
    Lower,
    /// Transactions a second.
    Higher,
}

/// The end of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionWord {
    /// The candidate is better than the baseline.
    Better,
    /// The candidate is worse.
    Worse,
    /// They differ by less than the margin that the user named.
    Equivalent,
    /// The runs so far do not tell.
    Undecided,
}

impl DecisionWord {
    /// `better`, `worse`, `equivalent` or `undecided`.
    pub fn name(self) -> &'static str {
        match self {
            DecisionWord::Better => "better",
            DecisionWord::Worse => "worse",
            DecisionWord::Equivalent => "equivalent",
            DecisionWord::Undecided => "undecided",
        }
    }
}

/// What became of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunWord {
    /// It has its numbers.
    Done,
    /// It broke.
    Failed,
    /// It ran and there was nothing to measure, as when the window was spent connecting.
    Empty,
    /// The server lacks what it needs.
    Skipped,
    /// Its turn did not come: interrupted, or beyond the budget.
    NotRun,
}

impl RunWord {
    /// `done`, `failed`, `empty`, `skipped` or `not run`.
    pub fn name(self) -> &'static str {
        match self {
            RunWord::Done => "done",
            RunWord::Failed => "failed",
            RunWord::Empty => "empty",
            RunWord::Skipped => "skipped",
            RunWord::NotRun => "not run",
        }
    }
}

/// What was planned.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PlanSummary {
    /// Two folders with one hash hold runs of one plan.
    pub hash: String,
    /// Shuffles the blocks and seeds every other draw.
    pub seed: u64,
    /// `smallest`, `quick` or `published`.
    pub scale: String,
    /// Complete blocks.
    pub blocks: u32,
    /// Share of wrong decisions that is accepted: 0.05.
    pub alpha: f64,
    /// Ratios between `1 - margin` and `1 + margin` are equivalent.
    pub margin: f64,
}

/// One machine that ran a part of the plan.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MachineSummary {
    /// Host name, or what the user called it.
    pub name: String,
    /// Versions, kernel, processor, mounts: what is equal for all arms.
    pub environment: BTreeMap<String, String>,
}

/// One arm: what is compared.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ArmSummary {
    /// As the plan names it.
    pub name: String,
    /// `PostgreSQL 15.6`; null where none ran.
    pub version: Option<String>,
    /// Settings that the plan gave it.
    pub settings: BTreeMap<String, String>,
    /// What its servers said of themselves.
    pub environment: BTreeMap<String, String>,
}

/// What is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MetricSummary {
    /// `wall_s`.
    pub name: String,
    /// `time of an ANALYZE`.
    pub words: String,
    /// `s`, `bytes`, `tps`; empty for a pure number.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// It depends on the machine's speed.
    pub timing: bool,
}

/// What is varied along a curve.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AxisSummary {
    /// `clients`.
    pub name: String,
    /// Empty for a pure number.
    pub unit: String,
    /// In the order of the plan; a curve is drawn to scale where all are numbers.
    pub values: Vec<String>,
}

/// One measured value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Dot {
    /// Id of the run.
    pub run: String,
    /// The value.
    pub value: f64,
}

/// All runs of one arm at one place of the axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredPoint {
    /// Value of the axis; empty without an axis.
    pub x: String,
    /// Median of the dots.
    pub median: f64,
    /// Interval of the median; null with fewer dots than an interval needs.
    pub interval: Option<[f64; 2]>,
    /// Every value.
    pub dots: Vec<Dot>,
}

/// A line through all runs of an arm, where they lie on one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Slope {
    /// What one more of the axis adds.
    pub each: f64,
    /// Interval of `each`.
    pub interval: [f64; 2],
}

/// One arm along the axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredLine {
    /// The arm.
    pub arm: String,
    /// In the order of the axis.
    pub points: Vec<MeasuredPoint>,
    /// Absent where the axis is none of numbers, or the runs lie on no line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slope: Option<Slope>,
}

/// How many times better at one place of the axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EffectPoint {
    /// Value of the axis; empty without an axis.
    pub x: String,
    /// Above 1 is better than what it is held against.
    pub times: f64,
    /// Interval of `times`.
    pub interval: Option<[f64; 2]>,
}

/// How many times better along the axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EffectLine {
    /// `15.6`, or the arm that is compared with itself at another place.
    pub name: String,
    /// `15.5`, or `14 at 10`.
    pub against: String,
    /// In the order of the axis.
    pub points: Vec<EffectPoint>,
}

/// How much two runs of the very same thing differ here.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Two equal runs rarely differ by more times than this; 1.03 is 3 %.
    pub times: f64,
    /// Pairs of control runs behind it.
    pub pairs: u32,
}

/// A series that somebody published.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedLine {
    /// `15.5, published`.
    pub name: String,
    /// Who, where, when, on what.
    pub source: String,
    /// Published with the same unit: values by place of the axis.
    pub values: Vec<(String, f64)>,
    /// What it was held against.
    pub against: Option<String>,
    /// How many times better, by place of the axis.
    pub times: Vec<(String, f64)>,
}

/// One metric, drawn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MetricFigure {
    /// What.
    pub metric: MetricSummary,
    /// The decision leans on it.
    pub primary: bool,
    /// Values of the axes that are held still in this figure.
    pub held: BTreeMap<String, String>,
    /// Along what; null for arms without an axis.
    pub axis: Option<AxisSummary>,
    /// One line an arm.
    pub lines: Vec<MeasuredLine>,
    /// One line a comparison.
    pub effects: Vec<EffectLine>,
    /// From the control runs; null where none ran.
    pub noise: Option<NoiseFloor>,
    /// Reference series.
    pub published: Vec<PublishedLine>,
}

/// What is compared in a decision: an arm at a place of the axes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Side {
    /// The arm.
    pub arm: String,
    /// Values of the axes.
    pub point: BTreeMap<String, String>,
}

/// How large the difference is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Effect {
    /// How many times better the candidate is; null where a value is not above zero.
    pub times: Option<f64>,
    /// Interval of `times`.
    pub times_interval: Option<[f64; 2]>,
    /// Median of the baseline.
    pub baseline: f64,
    /// Median of the candidate.
    pub candidate: f64,
    /// Sureness of the interval: 0.95. Null for what is counted and the same in every run.
    pub confidence: Option<f64>,
}

/// Whether this machine shows what was published.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedAnswer {
    /// `same`, `weaker`, `stronger`, `opposite`, `absent` or `unknown`.
    pub word: String,
    /// In plain words, with both figures.
    pub sentence: String,
    /// Where it was published.
    pub source: String,
}

/// One decision in plain words.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DecisionCard {
    /// The verdict.
    pub word: DecisionWord,
    /// `raise maintenance_io_concurrency from 10 to 50: ANALYZE 1.7 times faster [1.5, 1.9] …`.
    pub headline: String,
    /// Name of the metric.
    pub metric: String,
    /// What was held against what.
    pub baseline: Side,
    /// What might be chosen instead.
    pub candidate: Side,
    /// How large; null where a side has no run.
    pub effect: Option<Effect>,
    /// How the interval was made and how often it errs.
    pub basis: String,
    /// Settings or statements, one a line, that carry the decision out.
    pub apply: Vec<String>,
    /// Estimate of what would settle an undecided question; null where nothing can be said.
    pub more_minutes: Option<f64>,
    /// Against the literature; null where nothing was published.
    pub published: Option<PublishedAnswer>,
    /// Ids of the runs behind it.
    pub runs: Vec<String>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its id, and the name of its folder.
    pub id: String,
    /// Which machine ran it.
    pub machine: String,
    /// The arm.
    pub arm: String,
    /// Values of the axes.
    pub point: BTreeMap<String, String>,
    /// The block it belongs to.
    pub block: u32,
    /// A control run: the same thing twice in one block.
    pub is_control: bool,
    /// What became of it.
    pub outcome: RunWord,
    /// Why it is not done.
    pub why: Option<String>,
    /// Its numbers.
    pub metrics: BTreeMap<String, f64>,
    /// Checkpoints, autovacuums and other things that fell into it.
    pub overlaps: Vec<String>,
    /// Raw files, relative to the experiment's folder.
    pub files: Vec<String>,
    /// Seconds it took.
    pub elapsed_s: f64,
}

/// An experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExperimentDocument {
    /// `pgclinic.lab/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// `analyze-prefetch`.
    pub experiment: String,
    /// What is asked.
    pub question: String,
    /// What was planned.
    pub plan: PlanSummary,
    /// The folder of the runs; links of a report are relative to it.
    pub folder: String,
    /// Runs it again.
    pub command: String,
    /// When the first run began, as RFC 3339; null before it.
    pub started: Option<String>,
    /// Every planned run has a result.
    pub complete: bool,
    /// Who ran it.
    pub machines: Vec<MachineSummary>,
    /// What was compared.
    pub arms: Vec<ArmSummary>,
    /// The decisions, the most important first.
    pub cards: Vec<DecisionCard>,
    /// The curves, those of the primary metrics first.
    pub figures: Vec<MetricFigure>,
    /// What a reader must know: the host's cache is out of reach, the clock jumped.
    pub remarks: Vec<String>,
    /// Every planned run, in the order of the plan.
    pub runs: Vec<RunSummary>,
    /// Seconds that the runs took.
    pub elapsed_s: f64,
}
