//! Live signs of running servers, `pgclinic.watch/1`.

use serde::{Deserialize, Serialize};

use pgclinic_format::BlockNo;

use super::{Place, Target, Tool};
use crate::Labels;

/// Schema of the document.
pub const WATCH_SCHEMA: &str = "pgclinic.watch/1";

/// What one or more servers show at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WatchDocument {
    /// `pgclinic.watch/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// Seconds between two samples.
    pub interval_s: f64,
    /// Server by server, in the order of the command line.
    pub targets: Vec<WatchedTarget>,
    /// Messages about alerts, by who hears of them; absent where nobody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<AlertDelivery>,
    /// Seconds since the first sample began.
    pub elapsed_s: f64,
}

/// What became of the messages about alerts to one receiver, since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AlertDelivery {
    /// `command` or `webhook`.
    pub receiver: String,
    /// Messages that it took.
    pub delivered: u64,
    /// Messages that did not reach it.
    pub undelivered: u64,
    /// Messages that wait.
    pub waiting: u64,
    /// Why the last one did not reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

/// How a sign or a server stands; the last one is the worst. What could not be read does not count
/// beside what could.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignState {
    /// The server does not have it, or not for this role, with the reason beside it.
    #[default]
    NotAvailable,
    /// As it should be, or a figure without a limit.
    Ok,
    /// The server has it and could not be asked: it refused the statement, or a lock or a limit
    /// was in the way.
    Unknown,
    /// Somebody should examine it on a working day.
    Warning,
    /// Somebody should examine it now.
    Critical,
}

impl SignState {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SignState::Ok => "ok",
            SignState::NotAvailable => "not-available",
            SignState::Unknown => "unknown",
            SignState::Warning => "warning",
            SignState::Critical => "critical",
        }
    }
}

/// Whether a figure only grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignKind {
    /// It goes up and down.
    Gauge,
    /// It grows until the server's statistics are reset; what counts is how fast.
    Counter,
}

/// What a figure is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignUnit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Seconds since 1970: a moment.
    Moment,
    /// Part of a whole, 0 to 1.
    Ratio,
}

/// One server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WatchedTarget {
    /// The server, by its URL without a password.
    pub target: Target,
    /// `18.6`; null where the server was never reached.
    pub server_version: Option<String>,
    /// Whether the server replays the WAL of another one.
    pub is_standby: Option<bool>,
    /// When the last sample ended that read every sign which this server has, in seconds since
    /// 1970.
    pub complete_at: Option<f64>,
    /// When the server started, in seconds since 1970.
    pub server_started_at: Option<f64>,
    /// How long the last sample took, in seconds.
    pub sample_s: f64,
    /// Why the server could not be asked; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// The worst of its signs.
    pub state: SignState,
    /// Sign by sign, in the order of the register.
    pub signs: Vec<WatchedSign>,
    /// Settings that differ from what is advised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<SettingAdvice>,
    /// Pages that the last complete scrub found damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged_pages: Vec<DamagedPlace>,
    /// Those that are not listed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub damaged_pages_omitted: u64,
    /// Messages about storage in the server's log, a kind each, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logged: Vec<LoggedMessage>,
}

/// A kind of message about storage that stands in a server's log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LoggedMessage {
    /// Its page in the textbook, such as `invalid-page`.
    pub message: String,
    /// It speaks of damaged data, or of a disk that does not give it.
    pub is_damage: bool,
    /// The last entry has a SQLSTATE; without one its words alone are known, and anybody may have
    /// them logged.
    #[serde(default)]
    pub by_sqlstate: bool,
    /// Entries since the log is read.
    pub count: u64,
    /// Entries in the end of the log that was there before.
    pub before: u64,
    /// When the last one was logged, as the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_time: Option<String>,
    /// The database of the last one, where the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The file that the last one names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The block that the last one names, through all segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockNo>,
    /// The last one, with its severity.
    pub example: String,
    /// What it means, in short.
    pub meaning: String,
    /// What explains it, to be typed.
    pub command: String,
}

/// A page, or a file as a whole, that a scrub found damaged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DamagedPlace {
    /// Where.
    pub place: Place,
    /// What is wrong, by the name of its rule.
    pub rule: String,
    /// What was seen, with its numbers.
    pub message: String,
    /// What shows its rows, to be typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// One sign of one server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WatchedSign {
    /// Its name, such as `checksum-failures`.
    pub name: String,
    /// What it belongs to, such as `checksums`.
    pub family: String,
    /// The name of its metric.
    pub metric: String,
    /// In a line, what the figure is.
    pub summary: String,
    /// Whether it only grows.
    pub kind: SignKind,
    /// What it is counted in.
    pub unit: SignUnit,
    /// How it stands.
    pub state: SignState,
    /// Why it stands so; absent where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// The figure of the whole server: the sum or the worst of the values, a second for a counter.
    pub headline: Option<f64>,
    /// Why there are no values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_available: Option<String>,
    /// Why there are values and no rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_rates: Option<String>,
    /// The figures, by what they are of.
    pub values: Vec<SignValue>,
    /// Values that were left out, the smallest ones.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub values_omitted: u64,
    /// What is normal.
    pub normal: String,
    /// What it means when it is not.
    pub meaning: String,
    /// Which measurement or experiment settles it.
    pub settled_by: String,
    /// The headline of each sample since the start, oldest first, where the run kept it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<f64>,
}

/// One figure of a sign.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SignValue {
    /// What it is of: a database, a state, a kind of process.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// As the server has it.
    pub value: f64,
    /// Growth a second since the sample before; absent for what does not only grow, and where it is
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// The growth itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// When the server began to count it from 0, as it says that itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<String>,
}

/// A setting that differs from what is advised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettingAdvice {
    /// Its name, or that of a setting of the machine.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// What is advised.
    pub advice: String,
    /// Why.
    pub reason: String,
    /// What measures it on this machine and data.
    pub settled_by: String,
}

impl WatchDocument {
    /// The worst of all servers.
    pub fn state(&self) -> SignState {
        let states = self.targets.iter().map(|own| own.state);
        states.max().unwrap_or_default()
    }

    /// Servers that could not be asked.
    pub fn unreachable(&self) -> usize {
        let own = self.targets.iter();
        own.filter(|own| own.unreachable.is_some()).count()
    }

    /// Signs in this state, over all servers.
    pub fn count(&self, state: SignState) -> usize {
        let signs = self.targets.iter().flat_map(|own| &own.signs);
        signs.filter(|own| own.state == state).count()
    }
}
