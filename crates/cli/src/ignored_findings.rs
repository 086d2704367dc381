//! Findings that somebody knows of: a list with reasons and last days, and the report of an earlier
//! run. They are counted and shown; only the exit code passes them over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use pgclinic_check::{rule_named, rules};
use pgclinic_format::calendar::{Civil, DAYS_FROM_1970_TO_2000, civil};
use pgclinic_model::document::{Finding, Ignored, Place};
use pgclinic_model::{CheckDocument, Glob};
use pgclinic_report::Document;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::env::Env;
use crate::exit::Failure;
use crate::near_names::meant;

/// Which findings do not count.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct IgnoreArgs {
    /// Known findings, with reasons and last days
    ///
    /// A TOML file with tables `[[ignore]]`: `reason`, `until` as 2027-01-31, and what it is about:
    /// `rule`, `relation` (schema.name), `path`, `id`, of which all that are given must fit; * and
    /// ? are wild. Such findings are counted in the first line and no longer decide the exit code;
    /// damage stays DAMAGED.
    #[arg(long, value_name = "FILE")]
    ignore: Option<PathBuf>,
    /// Ignore what stands in this earlier report
    ///
    /// A JSON document of the same cluster: only findings that are new decide the exit code.
    #[arg(long, value_name = "JSON")]
    baseline: Option<PathBuf>,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct IgnoreFile {
    #[serde(default)]
    ignore: Vec<Entry>,
}

/// Findings of one kind or place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    reason: String,
    #[serde(deserialize_with = "day")]
    until: String,
    rule: Option<String>,
    relation: Option<String>,
    path: Option<String>,
    id: Option<String>,
}

/// An earlier report.
#[derive(Debug)]
struct Baseline {
    name: String,
    system_identifier: Option<String>,
    ids: BTreeSet<String>,
}

/// All that is ignored.
#[derive(Debug, Default)]
pub(crate) struct IgnoredFindings {
    entries: Vec<Entry>,
    baseline: Option<Baseline>,
}

impl IgnoreArgs {
    /// Read before the work, so that a mistake in them does not cost a run.
    pub(crate) fn read(&self, world: &mut Env<'_>) -> Result<IgnoredFindings, Failure> {
        let today = today();
        let mut entries = match &self.ignore {
            Some(path) => entries_of(path)?,
            None => Vec::new(),
        };
        let is_over = |entry: &Entry| entry.until < today;
        for entry in entries.iter().filter(|entry| is_over(entry)) {
            world.say(&format!(
                "no longer ignored since {}: {}",
                entry.until, entry.reason
            ));
        }
        entries.retain(|entry| !is_over(entry));
        for warning in entries.iter().filter_map(Entry::of_no_rule) {
            world.say(&warning);
        }
        let baseline = self.baseline.as_deref().map(baseline_of).transpose()?;
        Ok(IgnoredFindings { entries, baseline })
    }
}

impl IgnoredFindings {
    /// Marks what is ignored.
    pub(crate) fn mark(&self, document: &mut CheckDocument, world: &mut Env<'_>) {
        let baseline = self.baseline.as_ref();
        let is_same = |own: &&Baseline| own.system_identifier == document.target.system_identifier;
        if let Some(other) = baseline.filter(|own| !is_same(own)) {
            let name = &other.name;
            world.say(&format!(
                "the baseline {name} is of another cluster, and nothing of it is ignored here"
            ));
        }
        let baseline = baseline.filter(is_same);
        for finding in &mut document.findings {
            let entry = self.entries.iter().find(|entry| entry.fits(finding));
            let known = baseline.filter(|own| own.ids.contains(&finding.id));
            finding.ignored = match (entry, known) {
                (Some(entry), _) => Some(Ignored {
                    reason: entry.reason.clone(),
                    until: Some(entry.until.clone()),
                }),
                (None, Some(baseline)) => Some(Ignored {
                    reason: format!("it stands in the baseline {}", baseline.name),
                    until: None,
                }),
                (None, None) => None,
            };
        }
    }
}

impl Entry {
    /// That it can fit nothing, since no rule has this name.
    fn of_no_rule(&self) -> Option<String> {
        let rule = self.rule.as_deref()?;
        let pattern = Glob::new(rule);
        if rules().any(|own| pattern.matches(own.name)) {
            return None;
        }
        let near = meant(rule, rules().map(|own| own.name));
        let why = "`pgclinic explain --list` names all";
        Some(format!(
            "there is no rule {rule:?} to ignore, and nothing is ignored by it: {near}{why}"
        ))
    }

    /// A rule that was renamed goes by its new name.
    fn under_its_name(mut self) -> Self {
        if let Some(rule) = self.rule.as_deref().and_then(rule_named) {
            self.rule = Some(rule.name.to_owned());
        }
        self
    }

    fn fits(&self, finding: &Finding) -> bool {
        let Place { path, .. } = &finding.place;
        let wanted = [
            (&self.rule, finding.rule.clone()),
            (&self.relation, finding.place.relation_name()),
            (&self.path, path.clone()),
            (&self.id, finding.id.clone()),
        ];
        let mut given = wanted
            .iter()
            .filter_map(|(pattern, text)| Some((pattern.as_ref()?, text)));
        given.all(|(pattern, text)| Glob::new(pattern.as_str()).matches(text))
    }

    fn names_something(&self) -> bool {
        [&self.rule, &self.relation, &self.path, &self.id]
            .iter()
            .any(|own| own.is_some())
    }
}

fn entries_of(path: &Path) -> Result<Vec<Entry>, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(format!(
            "the list of ignored findings {} cannot be used: {why}",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let file: IgnoreFile = toml::from_str(&text).map_err(|error| wrong(&error))?;
    for entry in &file.ignore {
        if !is_day(&entry.until) {
            let until = &entry.until;
            return Err(wrong(&format!(
                "until = {until:?} is no day such as 2027-01-31"
            )));
        }
        if entry.reason.trim().is_empty() || !entry.names_something() {
            let why = "each [[ignore]] needs a reason, and one of rule, relation, path and id";
            return Err(wrong(&why));
        }
    }
    let entries = file.ignore.into_iter();
    Ok(entries.map(Entry::under_its_name).collect())
}

/// A day as TOML has it, or in quotes.
fn day<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Day {
        Bare(toml::value::Datetime),
        Quoted(String),
    }
    let day = Day::deserialize(from);
    let day = day.map_err(|_| D::Error::custom("until needs a day such as 2027-01-31"))?;
    Ok(match day {
        Day::Bare(day) => day.to_string(),
        Day::Quoted(day) => day,
    })
}

fn baseline_of(path: &Path) -> Result<Baseline, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(format!(
            "the baseline {} cannot be used: {why}",
            path.display()
        ))
    };
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    match Document::from_json(&bytes) {
        Ok(Document::Check(document)) => Ok(Baseline {
            name: path.display().to_string(),
            system_identifier: document.target.system_identifier,
            ids: document.findings.into_iter().map(|own| own.id).collect(),
        }),
        Ok(other) => Err(wrong(&format!("it is a document of {}", other.schema()))),
        Err(error) => Err(wrong(&error)),
    }
}

/// A day that is in the calendar, as ISO 8601 has it, so that days compare as texts do.
fn is_day(text: &str) -> bool {
    let is_plain = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    text.len() == 10 && text.bytes().enumerate().all(is_plain) && (1..=days).contains(&day)
}

/// Where the clock stands, in UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let days = i64::try_from(seconds / 86_400).unwrap_or(0);
    let Civil { year, month, day } = civil(days - DAYS_FROM_1970_TO_2000);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for day in ["2027-01-31", "2028-02-29", "2000-02-29"] {
            assert!(is_day(day), "{day}");
        }
        for no_day in [
            "2027-13-31",
            "2027-02-29",
            "2027-1-1",
            "2027-01-31T00:00:00",
            "today",
        ] {
            assert!(!is_day(no_day), "{no_day}");
        }
    }

    #[test]
    fn a_day_needs_no_quotes() {
        for until in ["2027-01-31", "\"2027-01-31\""] {
            let text = format!("[[ignore]]\nreason = 'r'\nid = 'x'\nuntil = {until}\n");
            let file: IgnoreFile = toml::from_str(&text).expect("a list");
            assert_eq!(file.ignore[0].until, "2027-01-31");
        }
    }
}
