//! Findings that somebody knows of: a list with reasons and last days, and the report of an earlier
//! run. They are counted and shown; only the exit code passes them over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use pgclinic_format::calendar::{Civil, DAYS_FROM_1970_TO_2000, civil};
use pgclinic_model::document::{Finding, Ignored, Place};
use pgclinic_model::{CheckDocument, Glob};
use pgclinic_report::Document;
use serde::Deserialize;

use crate::env::Env;
use crate::exit::Failure;

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
        if !is_date(&entry.until) {
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
    Ok(file.ignore)
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

/// A day as ISO 8601 has it, so that days compare as texts do.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let numbers = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [4, 2, 2] && parts.iter().all(numbers)
}

/// Where the clock stands, in UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let days = i64::try_from(seconds / 86_400).unwrap_or(0);
    let Civil { year, month, day } = civil(days - DAYS_FROM_1970_TO_2000);
    format!("{year:04}-{month:02}-{day:02}")
}
