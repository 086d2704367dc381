//! What the file may say.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use crate::cell::{Arm, Axis, Better, Metric};
use crate::error::{Error, Result};
use crate::experiment::Matrix;
use crate::experiments::experiment_named;
use crate::load::Pace;
use crate::plan::is_plain;
use crate::samplers::sampler_named;
use crate::user_experiment::built_in;

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(deserialize_with = "name")]
    pub(super) name: String,
    pub(super) question: String,
    #[serde(default)]
    pub(super) explain: String,
    #[serde(default = "three")]
    blocks: u32,
    #[serde(default)]
    pub(super) setup: Setup,
    /// Samplers beside those of every run.
    #[serde(default)]
    pub(super) watch: Vec<String>,
    pub(super) arm: Vec<ArmPart>,
    #[serde(default)]
    axis: Vec<AxisPart>,
    pub(super) load: Option<LoadPart>,
    pub(super) run: Option<RunPart>,
    pub(super) metric: Vec<MetricPart>,
    #[serde(default)]
    pub(super) cost: CostPart,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    #[serde(default)]
    pub(super) sql: String,
    #[serde(default)]
    pub(super) shared: bool,
    #[serde(default)]
    pub(super) cold: bool,
    #[serde(default)]
    pub(super) warm: Vec<String>,
    /// SQL before each run.
    #[serde(default)]
    pub(super) before: String,
    #[serde(default)]
    pub(super) restart: bool,
    #[serde(default)]
    pub(super) checkpoint: bool,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArmPart {
    pub(super) name: String,
    #[serde(default)]
    words: String,
    version: Option<String>,
    #[serde(default)]
    initdb: Vec<String>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) sql: String,
    /// Instead of the script or the mix of [load].
    pub(super) script: Option<String>,
    /// Instead of the statement of [run].
    pub(super) run: Option<String>,
    pub(super) advice: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct AxisPart {
    name: String,
    #[serde(default)]
    unit: String,
    values: Vec<Value>,
    setting: Option<String>,
}

/// Numbers may stand without quotes.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
enum Value {
    Number(i64),
    Share(f64),
    Word(String),
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadPart {
    script: Option<String>,
    #[serde(default)]
    mix: Vec<MixPart>,
    #[serde(default = "one")]
    pub(super) clients: String,
    #[serde(default = "ten", deserialize_with = "window")]
    pub(super) seconds: f64,
    #[serde(default = "prepared")]
    pub(super) protocol: String,
    #[serde(default, deserialize_with = "rate")]
    pub(super) rate: Option<Rate>,
    #[serde(default, deserialize_with = "pause")]
    pub(super) think_seconds: f64,
}

/// Rounds a second of the open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    /// So many.
    Number(f64),
    /// As many as rows of the learned table were written.
    Learned,
}

/// How the file says [`Rate::Learned`].
pub(super) const LEARNED: &str = "learned";

impl Rate {
    /// What stands in the file; else words.
    fn of(value: &toml::Value) -> std::result::Result<Self, String> {
        let number = match value {
            toml::Value::Integer(number) => *number as f64,
            toml::Value::Float(number) => *number,
            toml::Value::String(word) if word == LEARNED => return Ok(Self::Learned),
            other => {
                let said = match other {
                    toml::Value::String(word) => format!("\"{word}\""),
                    other => format!("a value of type {}", other.type_str()),
                };
                return Err(format!(
                    "{said} is not a rate of rounds a second: it is a number, or \"{LEARNED}\""
                ));
            }
        };
        Pace::open(number).map(|_| Self::Number(number))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => to.serialize_f64(*number),
            Self::Learned => to.serialize_str(LEARNED),
        }
    }
}

/// One of several scripts.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct MixPart {
    script: String,
    #[serde(default = "once")]
    weight: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunPart {
    sql: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricPart {
    #[serde(deserialize_with = "metric_name")]
    pub(super) name: String,
    words: Option<String>,
    unit: Option<String>,
    better: Option<Better>,
    #[serde(default)]
    timing: bool,
    pub(super) sql: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CostPart {
    #[serde(deserialize_with = "estimate")]
    pub(super) run_seconds: f64,
    #[serde(deserialize_with = "estimate")]
    pub(super) setup_seconds: f64,
    disk_mb: u64,
}

impl Default for CostPart {
    fn default() -> Self {
        Self {
            run_seconds: 3.0,
            setup_seconds: 5.0,
            disk_mb: 200,
        }
    }
}

/// In seconds: nothing in a load takes that long.
const A_DAY: f64 = 86_400.0;

/// In seconds: no estimate is longer.
const A_LIFETIME: f64 = 3e9;

/// Settings by which the laboratory reaches and finds its servers.
const OURS: [&str; 3] = ["port", "unix_socket_directories", "data_directory"];

fn three() -> u32 {
    3
}

fn once() -> u32 {
    1
}

fn one() -> String {
    "1".to_owned()
}

fn ten() -> f64 {
    10.0
}

fn prepared() -> String {
    "prepared".to_owned()
}

/// Reads the text, and refuses what could not be run.
pub(super) fn read(text: &str) -> Result<File> {
    let file: File = toml::from_str(text)
        .map_err(|error| Error::Refused(format!("the file is no experiment: {error}")))?;
    let refuse = |why: &str| Err(Error::Refused(why.to_owned()));
    if file.load.is_some() && file.run.is_some() {
        return refuse("the file has [load] and [run]: a run is one of them");
    }
    if file.metric.is_empty() {
        return refuse("the file has no [[metric]]: name at least one, the first decides");
    }
    if let Some(name) = file.doubled_metric() {
        return Err(Error::Refused(format!(
            "the name \"{name}\" stands for two metrics"
        )));
    }
    if let Some(why) = file.work_is_missing() {
        return Err(Error::Refused(why));
    }
    if let Some(name) = file.watch.iter().find(|name| sampler_named(name).is_none()) {
        return Err(Error::Refused(format!(
            "there is no sampler \"{name}\" to watch with; `pgclinic lab list --samplers` names them"
        )));
    }
    if let Some(name) = file.setting_of_ours() {
        return Err(Error::Refused(format!(
            "{name} is not for an experiment to set: servers listen on private sockets, so that no port of this machine is ever taken"
        )));
    }
    let known = |name: &str| match name {
        "run_s" => file.run.is_some(),
        "wal_bytes" => true,
        name => file.load.is_some() && built_in(name).is_some(),
    };
    let unknown = file
        .metric
        .iter()
        .find(|metric| metric.sql.is_none() && !known(&metric.name));
    if let Some(metric) = unknown {
        return Err(Error::Refused(format!(
            "the metric \"{}\" has no sql: with [load] there is tps, latency_mean_ms, latency_p50_ms, latency_p99_ms and latency_max_ms, with [run] run_s, and always wal_bytes",
            metric.name
        )));
    }
    Ok(file)
}

/// Reads a value and holds it to a rule, which says what is wrong with it: the reader adds its line
/// of the file.
fn held<'de, D, T>(
    from: D,
    wrong: impl FnOnce(&T) -> Option<String>,
) -> std::result::Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let value = T::deserialize(from)?;
    match wrong(&value) {
        Some(why) => Err(D::Error::custom(why)),
        None => Ok(value),
    }
}

/// How long a load lasts: nothing ends within no time.
fn window<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    held(from, |seconds: &f64| {
        let fits = (0.001..A_DAY).contains(seconds);
        (!fits).then(|| "seconds must be 0.001 or more, and less than a day".to_owned())
    })
}

fn pause<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    held(from, |seconds: &f64| {
        let fits = (0.0..A_DAY).contains(seconds);
        (!fits).then(|| "think_seconds must be 0 or more, and less than a day".to_owned())
    })
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Rate>, D::Error> {
    let value = toml::Value::deserialize(from)?;
    Rate::of(&value).map(Some).map_err(D::Error::custom)
}

/// The line of the rate in [load], from 1; none where there is no such key.
pub(super) fn line_of_rate(text: &str) -> Option<usize> {
    #[derive(Deserialize)]
    struct Outline {
        load: Paced,
    }
    #[derive(Deserialize)]
    struct Paced {
        rate: Spanned<toml::Value>,
    }
    let outline: Outline = toml::from_str(text).ok()?;
    let before = text.get(..outline.load.rate.span().start)?;
    Some(before.matches('\n').count() + 1)
}

/// What the folder of results is called, and what a report calls it.
fn name<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    held(from, |name: &String| {
        if !is_plain(name) {
            return Some(no_name(name, "an experiment"));
        }
        experiment_named(name).map(|_| {
            format!(
                "\"{name}\" is an experiment of the laboratory, with published results of its own: give yours another name"
            )
        })
    })
}

fn metric_name<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    held(from, |name: &String| {
        (!is_plain(name)).then(|| no_name(name, "a metric"))
    })
}

fn no_name(name: &str, what: &str) -> String {
    format!("\"{name}\" cannot name {what}: use small letters, digits, - and _")
}

/// Seconds of a run or of filling: a sum over all runs must still be a number.
fn estimate<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    held(from, |seconds: &f64| {
        let fits = (0.0..=A_LIFETIME).contains(seconds);
        (!fits).then(|| format!("seconds in [cost] must be 0 or more, and at most {A_LIFETIME}"))
    })
}

impl File {
    /// A name that two metrics have: one of them would get the other's numbers.
    fn doubled_metric(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.metric.iter().map(|own| own.name.as_str()).collect();
        names.sort_unstable();
        let mut pairs = names.array_windows();
        pairs.find_map(|[one, next]| (one == next).then_some(*one))
    }

    /// A setting of an arm or an axis that belongs to the laboratory.
    fn setting_of_ours(&self) -> Option<&str> {
        let of_arms = self.arm.iter().flat_map(|arm| arm.settings.keys());
        let of_axes = self.axis.iter().filter_map(|axis| axis.setting.as_ref());
        let mut names = of_arms.chain(of_axes).map(String::as_str);
        names.find(|name| OURS.contains(name))
    }

    fn part(&self, arm: &str) -> Option<&ArmPart> {
        self.arm.iter().find(|part| part.name == arm)
    }

    /// The scripts that an arm's clients draw from, with their weights; none without [load].
    pub(super) fn scripts(&self, arm: &str) -> Vec<(&str, u32)> {
        let Some(load) = &self.load else {
            return Vec::new();
        };
        let own = self.part(arm).and_then(|part| part.script.as_deref());
        if let Some(one) = own.or(load.script.as_deref()) {
            return vec![(one, 1)];
        }
        let mix = load.mix.iter();
        mix.map(|part| (part.script.as_str(), part.weight))
            .collect()
    }

    /// The statement that is timed for an arm; none without [run].
    pub(super) fn statement(&self, arm: &str) -> Option<&str> {
        let run = self.run.as_ref()?;
        let own = self.part(arm).and_then(|part| part.run.as_deref());
        own.or(run.sql.as_deref())
    }

    /// Words where an arm has nothing to do, or something that nobody would do.
    fn work_is_missing(&self) -> Option<String> {
        if let Some(load) = &self.load {
            if load.script.is_some() && !load.mix.is_empty() {
                return Some(
                    "[load] has a script and a [[load.mix]]: it is one of them".to_owned(),
                );
            }
            if load.mix.iter().any(|part| part.weight == 0) {
                return Some("a weight in [[load.mix]] must be 1 or more".to_owned());
            }
        }
        self.arm.iter().find_map(|arm| {
            let name = &arm.name;
            if arm.script.is_some() && self.load.is_none() {
                return Some(format!(
                    "the arm {name} has a script and the file no [load]"
                ));
            }
            if arm.run.is_some() && self.run.is_none() {
                return Some(format!(
                    "the arm {name} has a statement to run and the file no [run]"
                ));
            }
            if self.load.is_some() && self.scripts(name).is_empty() {
                return Some(format!(
                    "the arm {name} has no script, and neither has [load]"
                ));
            }
            if self.run.is_some() && self.statement(name).is_none() {
                return Some(format!(
                    "the arm {name} has no statement to run, and neither has [run]"
                ));
            }
            None
        })
    }

    pub(super) fn matrix(&self) -> Matrix {
        let arm = |own: &ArmPart| Arm {
            name: own.name.clone(),
            words: own.words.clone(),
            version: own.version.clone(),
            initdb: own.initdb.clone(),
            settings: own.settings.clone(),
            parameters: BTreeMap::new(),
        };
        let axis = |own: &AxisPart| Axis {
            name: own.name.clone(),
            unit: own.unit.clone(),
            values: own.values.iter().map(Value::text).collect(),
            setting: own.setting.clone(),
        };
        Matrix {
            arms: self.arm.iter().map(arm).collect(),
            axes: self.axis.iter().map(axis).collect(),
            blocks: self.blocks,
        }
    }

    pub(super) fn metrics(&self) -> Vec<Metric> {
        self.metric.iter().map(MetricPart::metric).collect()
    }
}

impl CostPart {
    pub(super) fn disk_bytes(&self) -> u64 {
        self.disk_mb.saturating_mul(1 << 20)
    }
}

impl MetricPart {
    fn metric(&self) -> Metric {
        let known = built_in(&self.name).filter(|_| self.sql.is_none());
        let mut metric = known.unwrap_or_else(|| {
            let mut own = Metric::exact(&self.name, &self.name, "", Better::Lower);
            own.timing = self.timing;
            own
        });
        metric.words = self.words.clone().unwrap_or(metric.words);
        metric.unit = self.unit.clone().unwrap_or(metric.unit);
        metric.better = self.better.unwrap_or(metric.better);
        metric
    }
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Share(share) => share.to_string(),
            Self::Word(word) => word.clone(),
        }
    }
}
