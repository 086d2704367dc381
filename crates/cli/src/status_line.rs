//! `--status-line`: one line for a monitoring system, with the exit codes that its plugins have.
//!
//! Truth: the guidelines for plugins of Nagios, which Icinga, Centreon and others follow: the
//! state, words, and behind a bar what can be drawn.

use std::fmt;

use pgclinic_model::{CheckDocument, Severity};
use pgclinic_report::{headline, plugin_line};

use crate::exit::{Exit, ResultClass};

/// The state of what is watched, with the code that stands for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StatusCode {
    /// 0
    Ok,
    /// 1
    Warning,
    /// 2
    Critical,
    /// 3
    Unknown,
}

impl StatusCode {
    /// The number for the monitoring system.
    pub fn code(self) -> u8 {
        match self {
            StatusCode::Ok => 0,
            StatusCode::Warning => 1,
            StatusCode::Critical => 2,
            StatusCode::Unknown => 3,
        }
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StatusCode::Ok => "OK",
            StatusCode::Warning => "WARNING",
            StatusCode::Critical => "CRITICAL",
            StatusCode::Unknown => "UNKNOWN",
        })
    }
}

/// The line of a check, and its code. Of the classes that hold, those count that fail the run;
/// warnings do in any case, since there is a state for them.
pub(crate) fn of_check(document: &CheckDocument, failing: &[ResultClass]) -> (String, Exit) {
    let states = failing.iter().map(|class| match class {
        ResultClass::Damage => StatusCode::Critical,
        ResultClass::Incomplete => StatusCode::Unknown,
        ResultClass::Recovery | ResultClass::Warning => StatusCode::Warning,
    });
    // Damage is damage, whatever else could not be read.
    let worst = states.max_by_key(|state| match state {
        StatusCode::Critical => 4,
        other => other.code(),
    });
    let state = if document.interrupted && worst != Some(StatusCode::Critical) {
        StatusCode::Unknown
    } else {
        worst.unwrap_or(StatusCode::Ok)
    };
    let count = |severity| {
        let own = document.findings.iter();
        own.filter(|own| own.severity == severity).count()
    };
    let coverage = &document.coverage;
    let gaps = coverage.not_checked.iter().filter(|gap| !gap.inherent);
    let figures = format!(
        "damage={} warnings={} not_checked={} pages={} bytes={}B time={:.3}s",
        count(Severity::Damage),
        count(Severity::Warning),
        gaps.count(),
        coverage.pages,
        coverage.bytes_checked,
        document.elapsed_s,
    );
    let words = headline(document).to_string();
    let line = plugin_line(&state.to_string(), &words, &figures);
    (line, Exit::Status(state))
}

/// The line of a check that could not work.
pub(crate) fn of_failure(why: &str) -> (String, Exit) {
    let words = why.replace(['\n', '|'], " ");
    let state = StatusCode::Unknown;
    (format!("PGCLINIC {state} - {words}"), Exit::Status(state))
}
