//! `--format nagios`: one line for a monitoring system, as its plugins write it: the state, words,
//! and after a bar what can be drawn.

use std::cmp::Reverse;
use std::io;

use pgclinic_model::document::{SignState, WATCH_SCHEMA, WatchDocument};

use crate::watched::{extent, standing_out, state};
use crate::words::clean;
use crate::{Document, Format, Options};

/// Findings that are named in the line.
const NAMED_MAX: usize = 3;

/// `--format nagios`.
pub struct Nagios;

impl Format for Nagios {
    fn name(&self) -> &'static str {
        "nagios"
    }

    fn renders(&self, schema: &str) -> bool {
        schema == WATCH_SCHEMA
    }

    fn render(
        &self,
        document: &Document,
        _options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        match document {
            Document::Watch(document) => writeln!(out, "{}", line(document)),
            other => {
                let why = format!("documents of {} have no such form", other.schema());
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }
}

fn line(document: &WatchDocument) -> String {
    let state = match document.state() {
        SignState::NotAvailable => "UNKNOWN",
        own => state(own),
    };
    let mut words = vec![extent(document)];
    words.extend(alarms(document));
    let count = |state| document.count(state);
    let figures = format!(
        "critical={} warnings={} unknown={} not_available={} unreachable={} time={:.3}s",
        count(SignState::Critical),
        count(SignState::Warning),
        count(SignState::Unknown),
        count(SignState::NotAvailable),
        document.unreachable(),
        document.elapsed_s
    );
    plugin_line(state, &words.join("; "), &figures)
}

/// As plugins write it: the state, words, and after a bar what can be drawn.
pub fn plugin_line(state: &str, words: &str, figures: &str) -> String {
    let words = clean(words).replace('|', "/");
    format!("PGCLINIC {state} - {words} | {figures}")
}

/// `checksum-failures: grew while watching, in database shop`, the worst first.
fn alarms(document: &WatchDocument) -> Vec<String> {
    let mut alarms = Vec::new();
    for target in &document.targets {
        if let Some(why) = &target.unreachable {
            let words = format!("{} gives no answer: {why}", target.target.spec);
            alarms.push((target.state, words));
        }
        let signs = standing_out(&target.signs).into_iter();
        let signs = signs.filter(|own| own.state >= SignState::Warning);
        alarms.extend(signs.map(|own| {
            let why = own.finding.as_deref().unwrap_or_default();
            (own.state, format!("{}: {why}", own.name))
        }));
    }
    alarms.sort_by_key(|(state, _)| Reverse(*state));
    let more = alarms.len().saturating_sub(NAMED_MAX);
    let named = alarms.into_iter().take(NAMED_MAX).map(|(_, words)| words);
    named
        .chain((more > 0).then(|| format!("{more} more")))
        .collect()
}
