//! What a sign is: one figure of a server, with what it is worth knowing of it.

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use crate::assess::Sample;
use crate::need::Need;
use crate::probe::Probe;

/// What signs belong to; each is a file of `signs/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// The server itself, and how it was asked.
    Server,
    /// Data checksums.
    Checksums,
    /// Asynchronous I/O and who waits for it.
    AsynchronousIo,
    /// Blocks read, written and found in memory.
    Io,
    /// System catalogs and the DDL that fills them.
    Catalogs,
    /// Writes that fail and what they leave behind.
    FailedWrites,
    /// Transaction ids and multixact ids that run out.
    Wraparound,
    /// Connections and their memory.
    Memory,
    /// Write-ahead log and checkpoints.
    Wal,
    /// Settings compared with the machine and with advice.
    Settings,
}

impl Family {
    /// As in documents.
    pub fn name(self) -> &'static str {
        match self {
            Family::Server => "server",
            Family::Checksums => "checksums",
            Family::AsynchronousIo => "asynchronous-io",
            Family::Io => "io",
            Family::Catalogs => "catalogs",
            Family::FailedWrites => "failed-writes",
            Family::Wraparound => "wraparound",
            Family::Memory => "memory",
            Family::Wal => "wal",
            Family::Settings => "settings",
        }
    }

    /// As a title.
    pub fn title(self) -> &'static str {
        match self {
            Family::Server => "Server",
            Family::Checksums => "Checksums",
            Family::AsynchronousIo => "Asynchronous I/O",
            Family::Io => "Blocks read and written",
            Family::Catalogs => "Catalogs and temporary tables",
            Family::FailedWrites => "Writes that fail",
            Family::Wraparound => "Wraparound",
            Family::Memory => "Connections and memory",
            Family::Wal => "WAL and checkpoints",
            Family::Settings => "Settings",
        }
    }
}

/// One sign.
#[derive(Debug)]
pub struct Sign {
    /// kebab-case; unique, and never changes.
    pub name: &'static str,
    /// What it belongs to.
    pub family: Family,
    /// The name of its metric; unique, and never changes. A counter's ends in `_total`.
    pub metric: &'static str,
    /// What the figure is, in a few words.
    pub summary: &'static str,
    /// Whether it only grows.
    pub kind: SignKind,
    /// What it is counted in.
    pub unit: SignUnit,
    /// Where it comes from.
    pub source: Source,
    /// What computed figures are of; those of a statement have its labels.
    pub labels: &'static [&'static str],
    /// What it needs beside what its statement needs.
    pub needs: &'static [Need],
    /// How the figures of one server become one.
    pub gather: Gather,
    /// What it says that is worth a word.
    pub assess: Option<Assessment>,
    /// What it costs, where no statement is behind it.
    pub cost: &'static str,
    /// What is normal.
    pub normal: &'static str,
    /// What it means when it is not.
    pub meaning: &'static str,
    /// Which measurement or experiment settles it.
    pub settled_by: &'static str,
    /// What Prometheus should watch for.
    pub alerts: &'static [Alert],
}

/// Says how a sign stands, and why; nothing where it is as it should be.
pub type Assessment = fn(&Sample<'_>, &[SignValue]) -> Option<(SignState, String)>;

/// Gives the figures, or says why there are none.
pub type Compute = fn(&Sample<'_>) -> Result<Vec<SignValue>, String>;

/// Where a figure comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A column of a statement.
    Column(&'static Probe, &'static str),
    /// Computed from these statements, and from what is known of server and machine.
    Computed(&'static [&'static Probe], Compute),
}

impl Source {
    /// The statements behind it.
    pub fn probes(&self) -> Vec<&'static Probe> {
        match self {
            Source::Column(probe, _) => vec![probe],
            Source::Computed(probes, _) => probes.to_vec(),
        }
    }
}

/// How the figures of one server become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gather {
    /// Added up.
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// How soon somebody should come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// On a working day.
    Warning,
    /// Now.
    Critical,
}

impl Urgency {
    /// As the label `severity` of alerts has it.
    pub fn name(self) -> &'static str {
        match self {
            Urgency::Warning => "warning",
            Urgency::Critical => "critical",
        }
    }
}

/// An alert of Prometheus.
#[derive(Debug)]
pub struct Alert {
    /// CamelCase, as alerts are named.
    pub name: &'static str,
    /// PromQL over metrics of the register.
    pub expression: &'static str,
    /// How long it has to hold before it fires: hysteresis.
    pub hold: &'static str,
    /// How long it fires on after it no longer holds.
    pub keep: &'static str,
    /// How soon somebody should come.
    pub urgency: Urgency,
    /// In a sentence, with `{{ $labels.… }}` and `{{ $value }}` of Prometheus.
    pub summary: &'static str,
}

impl Sign {
    /// What most have.
    pub(crate) const PLAIN: Sign = Sign {
        name: "",
        family: Family::Server,
        metric: "",
        summary: "",
        kind: SignKind::Gauge,
        unit: SignUnit::Count,
        source: Source::Computed(&[], |_| Ok(Vec::new())),
        labels: &[],
        needs: &[],
        gather: Gather::Sum,
        assess: None,
        cost: "Nothing more: it follows from version, settings and time, which each sample asks for.",
        normal: "",
        meaning: "",
        settled_by: "",
        alerts: &[],
    };

    /// Everything that it needs, its statements' needs first.
    pub fn all_needs(&self) -> Vec<Need> {
        let of_probes = self.source.probes();
        let of_probes = of_probes
            .iter()
            .flat_map(|probe| probe.needs.iter().copied());
        let mut all = Vec::new();
        for need in of_probes.chain(self.needs.iter().copied()) {
            if !all.contains(&need) {
                all.push(need);
            }
        }
        all
    }

    /// What its figures are of.
    pub fn labels(&self) -> &'static [&'static str] {
        match self.source {
            Source::Column(probe, _) => probe.labels,
            Source::Computed(..) => self.labels,
        }
    }
}
