//! Readings to the document: values, rates, states, and the reason wherever there is none.

use std::collections::BTreeMap;

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue, WatchedSign};

use crate::facts::ServerFacts;
use crate::log::ServerLog;
use crate::machine::Machine;
use crate::measured::MeasuredStatus;
use crate::probe::{Probe, Reading, Row, Table};
use crate::scrub::ScrubStatus;
use crate::sign::{Gather, Sign, Source};
use crate::watcher::Readings;

/// Values of one sign that a document holds.
const VALUES_MAX: usize = 500;

/// What is known of a server at one sample.
pub struct Sample<'a> {
    pub(crate) facts: &'a ServerFacts,
    pub(crate) readings: &'a BTreeMap<&'static str, Readings>,
    pub(crate) machine: Option<&'a Machine>,
    pub(crate) machine_facts: &'a BTreeMap<String, String>,
    /// The server started since the sample before.
    pub(crate) restarted: bool,
    /// By how much the server's clock went on more than ours since the sample before.
    pub(crate) clock_jump: Option<f64>,
    pub(crate) sample_s: Option<f64>,
    /// Of the server's files, where it was asked for.
    pub(crate) scrub: Option<&'a ScrubStatus>,
    /// Exact figures of its files, where they were asked for.
    pub(crate) measured: Option<&'a MeasuredStatus>,
    /// The server's log.
    pub(crate) log: Option<&'a ServerLog>,
}

impl std::fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sample")
    }
}

impl<'a> Sample<'a> {
    /// The figures of a statement, or why there are none.
    pub(crate) fn table(&self, probe: &Probe) -> Result<&'a Table, String> {
        match self.readings.get(probe.name).map(|own| &own.now) {
            Some(Reading::Table(table)) => Ok(table),
            Some(Reading::Missing(why) | Reading::Refused(why)) => Err(why.clone()),
            None => Err("it was not read yet".to_owned()),
        }
    }

    /// The server refused one of these statements.
    pub(crate) fn is_refused(&self, mut probes: impl Iterator<Item = &'static Probe>) -> bool {
        probes.any(|probe| {
            let own = self.readings.get(probe.name);
            own.is_some_and(|own| matches!(own.now, Reading::Refused(_)))
        })
    }

    /// How fast a figure grew since the reading before, a second.
    pub(crate) fn growth(
        &self,
        probe: &Probe,
        labels: &[&str],
        column: &str,
    ) -> Result<f64, String> {
        let (growth, seconds) = self.growth_since_before(probe, labels, column)?;
        Ok(growth / seconds)
    }

    /// By how much a figure grew since the reading before, and over how many seconds.
    pub(crate) fn growth_since_before(
        &self,
        probe: &Probe,
        labels: &[&str],
        column: &str,
    ) -> Result<(f64, f64), String> {
        self.grown(probe, labels, column, |own| own.before.as_deref())
    }

    /// By how much a figure grew since the first reading, and over how many seconds.
    pub(crate) fn growth_since_first(
        &self,
        probe: &Probe,
        labels: &[&str],
        column: &str,
    ) -> Result<(f64, f64), String> {
        self.grown(probe, labels, column, |own| own.first.as_deref())
    }

    fn grown(
        &self,
        probe: &Probe,
        labels: &[&str],
        column: &str,
        then: fn(&Readings) -> Option<&Table>,
    ) -> Result<(f64, f64), String> {
        let own = self.readings.get(probe.name).ok_or("it was not read yet")?;
        let then = then(own).ok_or_else(|| no_before(own))?;
        let now = self.table(probe)?;
        let at = probe.cell_of(column).ok_or("there is no such figure")?;
        let seconds = now
            .taken
            .saturating_duration_since(then.taken)
            .as_secs_f64();
        let figure = |row: &Row| row.cells.get(at).copied().flatten();
        let old_row = then
            .row(labels)
            .ok_or("it was not there in the sample before")?;
        let new_row = now.row(labels).ok_or("the server has no figure for it")?;
        if old_row.reset != new_row.reset {
            return Err("its statistics were reset between the two samples".to_owned());
        }
        let old = figure(old_row).ok_or("it was not there in the sample before")?;
        let new = figure(new_row).ok_or("the server has no figure for it")?;
        if seconds <= 0.0 {
            return Err("no time has passed since the sample before".to_owned());
        }
        if new < old {
            return Err(
                "its counters went back: statistics were reset between the two samples".to_owned(),
            );
        }
        Ok((new - old, seconds))
    }
}

fn no_before(own: &Readings) -> String {
    own.broken
        .clone()
        .unwrap_or_else(|| "this is the first sample".to_owned())
}

/// A sign as this sample shows it.
pub(crate) fn sign(sign: &Sign, sample: &Sample<'_>) -> WatchedSign {
    let mut own = bare(sign);
    match values(sign, sample) {
        Ok(found) => {
            own.values = found.values;
            own.no_rates = found.no_rates;
            own.values_omitted = found.omitted;
        }
        Err(why) => {
            let is_refused = sample.is_refused(sign.source.probes().into_iter());
            own.state = if is_refused {
                SignState::Unknown
            } else {
                SignState::NotAvailable
            };
            own.not_available = Some(why);
            return own;
        }
    }
    own.headline = headline(sign, &own.values);
    if let Some((state, why)) = sign.assess.and_then(|assess| assess(sample, &own.values)) {
        own.state = state;
        own.finding = Some(why);
    }
    let most = own.values.len().min(VALUES_MAX);
    own.values_omitted += count_of(own.values.len() - most);
    if own.values.len() > most {
        own.values.sort_by(|a, b| b.value.total_cmp(&a.value));
    }
    own.values.truncate(most);
    own.values.shrink_to_fit();
    own
}

fn count_of(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn bare(sign: &Sign) -> WatchedSign {
    WatchedSign {
        name: sign.name.to_owned(),
        family: sign.family.name().to_owned(),
        metric: sign.metric.to_owned(),
        summary: sign.summary.to_owned(),
        kind: sign.kind,
        unit: sign.unit,
        state: SignState::Ok,
        finding: None,
        headline: None,
        not_available: None,
        no_rates: None,
        values: Vec::new(),
        values_omitted: 0,
        normal: sign.normal.to_owned(),
        meaning: sign.meaning.to_owned(),
        settled_by: sign.settled_by.to_owned(),
        history: Vec::new(),
    }
}

struct Found {
    values: Vec<SignValue>,
    no_rates: Option<String>,
    omitted: u64,
}

fn values(sign: &Sign, sample: &Sample<'_>) -> Result<Found, String> {
    if let Some(why) = sign
        .all_needs()
        .into_iter()
        .find_map(|need| need.missing(sample.facts))
    {
        return Err(why);
    }
    match sign.source {
        Source::Computed(probes, compute) => {
            for probe in probes {
                sample.table(probe)?;
            }
            Ok(Found {
                values: compute(sample)?,
                no_rates: None,
                omitted: 0,
            })
        }
        Source::Column(probe, column) => of_column(sign, probe, column, sample),
    }
}

/// The figures of a column. Where the server has none for any row, it is not available.
fn of_column(
    sign: &Sign,
    probe: &Probe,
    column: &str,
    sample: &Sample<'_>,
) -> Result<Found, String> {
    let table = sample.table(probe)?;
    let at = probe.cell_of(column).ok_or("there is no such figure")?;
    let mut no_rates = None;
    let mut values = Vec::with_capacity(table.rows.len());
    for row in &table.rows {
        let Some(value) = row.cells.get(at).copied().flatten() else {
            continue;
        };
        let labels: Vec<&str> = row.labels.iter().map(String::as_str).collect();
        let is_counter = sign.kind == SignKind::Counter;
        let grown = is_counter.then(|| sample.growth_since_before(probe, &labels, column));
        let (growth, per_second) = match grown {
            Some(Ok((growth, seconds))) => (Some(growth), Some(growth / seconds)),
            Some(Err(why)) => {
                no_rates = Some(why);
                (None, None)
            }
            None => (None, None),
        };
        let pairs = probe.labels.iter().zip(&row.labels);
        values.push(SignValue {
            labels: pairs
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            value,
            per_second,
            growth,
            reset_at: row.reset.clone(),
        });
    }
    if values.is_empty() && !table.rows.is_empty() {
        return Err(nothing_of(sign).to_owned());
    }
    // One database that is new does not take the rates from the others.
    let no_rates = no_rates.filter(|_| values.iter().all(|own| own.per_second.is_none()));
    Ok(Found {
        values,
        no_rates,
        omitted: count_of(table.rows_omitted),
    })
}

/// The words for a figure that the server has for nothing.
fn nothing_of(sign: &Sign) -> &'static str {
    match sign.unit {
        SignUnit::Moment => "it never happened since the statistics were reset",
        _ => "the server has no figure for it",
    }
}

/// One figure for the whole server: a second for a counter.
fn headline(sign: &Sign, values: &[SignValue]) -> Option<f64> {
    let figure = |own: &SignValue| match sign.kind {
        SignKind::Counter => own.per_second,
        SignKind::Gauge => Some(own.value),
    };
    let mut figures = values.iter().filter_map(figure).peekable();
    if figures.peek().is_none() {
        // Nothing of it at this sample is a figure too, but for a counter without a rate.
        return (values.is_empty() && sign.kind == SignKind::Gauge && sign.gather == Gather::Sum)
            .then_some(0.0);
    }
    Some(match sign.gather {
        Gather::Sum => figures.sum(),
        Gather::Max => figures.fold(f64::NEG_INFINITY, f64::max),
        Gather::Min => figures.fold(f64::INFINITY, f64::min),
    })
}

#[cfg(test)]
impl<'a> Sample<'a> {
    /// One of a server that was asked nothing but its facts.
    pub(crate) fn bare(facts: &'a ServerFacts) -> Self {
        static NO_READINGS: BTreeMap<&'static str, Readings> = BTreeMap::new();
        static NO_FACTS: BTreeMap<String, String> = BTreeMap::new();
        Sample {
            facts,
            readings: &NO_READINGS,
            machine: None,
            machine_facts: &NO_FACTS,
            restarted: false,
            clock_jump: None,
            sample_s: None,
            scrub: None,
            measured: None,
            log: None,
        }
    }
}
