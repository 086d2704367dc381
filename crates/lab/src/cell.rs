//! The words that everything in the laboratory is said with: what is compared, where, and what came
//! of one run.
//!
//! ```text
//! Arm      what is compared          pglz, lz4, external
//! Axis     under which conditions    sessions 1 2 4
//! Cell     one run: an arm at a point of the axes, in a block
//! Metric   what is read off a run    bytes a row
//! RunResult  what one run gave, or why it gave nothing
//! ```
//!
//! All of it is plain data in JSON, ordered, so that the same plan gives the same bytes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A value for each axis.
pub type Point = BTreeMap<String, String>;

/// The parameter of an arm that names the folder of its data.
pub(crate) const FOLDER: &str = "folder";

/// One of the things compared. The first arm of a matrix is the baseline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Short and kebab-case: it stands in folder names.
    pub name: String,
    /// What it is, in the words of the report.
    #[serde(default)]
    pub words: String,
    /// `15` or `15.6`; without it the server that the person chose, else the newest installed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// More arguments of `initdb`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initdb: Vec<String>,
    /// Settings of the server, above those of the laboratory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Whatever else tells it from the others: a statement, a compression method, a folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

impl Arm {
    /// An arm with a name and words, and nothing else set.
    pub fn new(name: &str, words: &str) -> Self {
        Self {
            name: name.to_owned(),
            words: words.to_owned(),
            ..Self::default()
        }
    }

    /// The same on this version, `15` or `15.6`.
    #[must_use]
    pub fn on_version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// The same with one more setting.
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with_parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A parameter, or nothing when it is not set.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}

/// One condition and the values it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Short and kebab-case.
    pub name: String,
    /// What the values count, `sessions`; empty when they are words.
    #[serde(default)]
    pub unit: String,
    /// In the order of the report.
    pub values: Vec<String>,
    /// The server setting that takes the value, when the axis is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
}

impl Axis {
    /// An axis over these values.
    pub fn new<T: fmt::Display>(name: &str, unit: &str, values: &[T]) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            values: values.iter().map(T::to_string).collect(),
            setting: None,
        }
    }

    /// The same, its value being that of a server setting.
    #[must_use]
    pub fn sets(mut self, setting: &str) -> Self {
        self.setting = Some(setting.to_owned());
        self
    }
}

/// One run to be made: an arm at a point, once in each block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Names the run's folder; unique in a plan.
    pub id: String,
    /// The arm's name.
    pub arm: String,
    /// A value for each axis.
    pub point: Point,
    /// From 1.
    pub block: u32,
    /// 0, and more where a block runs the same cell again.
    pub repeat: u32,
    /// A second run of the baseline, to see how much equal things differ (A/A).
    pub is_control: bool,
}

impl Cell {
    /// The value of an axis; empty when there is no such axis.
    pub fn at(&self, axis: &str) -> &str {
        self.point.get(axis).map_or("", String::as_str)
    }

    /// The value of an axis as a number; `None` when it is a word.
    pub fn number_at<T: std::str::FromStr>(&self, axis: &str) -> Option<T> {
        self.at(axis).parse().ok()
    }
}

/// Which end of a metric people want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Bytes, seconds, dead rows.
    Lower,
    /// Transactions a second.
    Higher,
}

/// What is read off a run. The first metric of an experiment is the one that decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// snake_case with the unit last: `wal_bytes`.
    pub name: String,
    /// In words: `WAL for each 1,000 attempts`.
    pub words: String,
    /// `bytes`, `s`, `1/s`, `%`; empty for a count.
    pub unit: String,
    /// Which end is wanted.
    pub better: Better,
    /// Whether it depends on the machine's speed; such a metric is never asserted in a test.
    pub timing: bool,
}

impl Metric {
    /// A metric that says the same on every machine: bytes, rows, transaction numbers.
    pub fn exact(name: &str, words: &str, unit: &str, better: Better) -> Self {
        let (name, words, unit) = (name.to_owned(), words.to_owned(), unit.to_owned());
        Self {
            name,
            words,
            unit,
            better,
            timing: false,
        }
    }

    /// A metric that depends on the machine's speed.
    pub fn timing(name: &str, words: &str, unit: &str, better: Better) -> Self {
        Self {
            timing: true,
            ..Self::exact(name, words, unit, better)
        }
    }
}

/// How a run ended. Whatever is not `Done` stays visible in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Outcome {
    /// It has its metrics.
    Done,
    /// It broke.
    Failed {
        /// What happened, the server's words included.
        why: String,
    },
    /// It ran and measured nothing, such as a window too short to connect in: not zero, no result.
    Empty {
        /// What was missing.
        why: String,
    },
    /// It could not be run here, such as JIT on a server built without it.
    Skipped {
        /// What is missing.
        why: String,
    },
}

impl Outcome {
    /// `done`, or the word and the reason.
    pub fn words(&self) -> String {
        match self {
            Self::Done => "done".to_owned(),
            Self::Failed { why } => format!("failed: {why}"),
            Self::Empty { why } => format!("empty: {why}"),
            Self::Skipped { why } => format!("skipped: {why}"),
        }
    }
}

/// What one run gave; `runs/<id>/run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// What was run.
    pub cell: Cell,
    /// How it ended.
    pub outcome: Outcome,
    /// By the name of the metric.
    pub metrics: BTreeMap<String, f64>,
    /// Raw samples over time as (seconds since the start, value), by name.
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// Server, settings, machine, as facts by name.
    pub environment: BTreeMap<String, String>,
    /// What else went on meanwhile: checkpoints, autovacuum, a busy machine, a clock that jumped.
    pub overlaps: Vec<String>,
    /// Raw files in the run's folder.
    pub files: Vec<String>,
    /// When it began, seconds since 1970.
    pub started: u64,
    /// By a clock that does not jump.
    pub elapsed_s: f64,
}

impl RunResult {
    /// Whether it has its metrics.
    pub fn is_done(&self) -> bool {
        self.outcome == Outcome::Done
    }
}
