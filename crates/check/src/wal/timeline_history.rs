//! The history of a timeline is missing, cannot be read, or contradicts the control file.

use pgclinic_cluster::wal::{Recovery, StartKind, history_path};
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::wal::FIRST_TIMELINE;
use pgclinic_model::document::{FileKind, Level};
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::wal::checkpoint_record_missing::server_words;

/// The rule.
pub static TIMELINE_HISTORY: Rule =
    Rule::from_page(include_str!("../../rules/timeline-history.md"));

/// See [`TIMELINE_HISTORY`].
pub struct TimelineHistory;

impl ClusterCheck for TimelineHistory {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&TIMELINE_HISTORY] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(recovery) = cluster.recovery() else {
            return;
        };
        let own = recovery.timelines.target();
        for (timeline, history) in &recovery.files.histories {
            if let Err(fault) = history {
                // The server reads it before anything else; the first timeline has none.
                let is_needed = *timeline == own && own > FIRST_TIMELINE;
                let severity = if is_needed {
                    Severity::Damage
                } else {
                    Severity::Warning
                };
                let message = format!("the history of timeline {timeline} cannot be read: {fault}");
                out.add(draft(*timeline, message, severity));
            }
        }
        missing(cluster, recovery)
            .into_iter()
            .for_each(|draft| out.add(draft));
        let start = recovery.start;
        if let Some(left) = recovery
            .files
            .history(own)
            .and_then(|own| own.left(start.timeline))
            && left < start.redo
        {
            let message = format!(
                "timeline {} was left at {left}, and its last checkpoint begins at {}",
                start.timeline, start.redo
            );
            out.add(draft(own, message, Severity::Damage));
        }
        self.check_own_switch(cluster, out);
    }
}

fn draft(timeline: u32, message: String, severity: Severity) -> Draft {
    let draft = Draft::new(&TIMELINE_HISTORY, message).severity(severity);
    draft
        .fact("timeline", timeline)
        .place(file_place(history_path(timeline), FileKind::Wal))
}

/// Recovery that begins on an earlier timeline does not find its way without the file; else only
/// standbys and archives ask for it.
fn missing(cluster: &Cluster, recovery: &Recovery) -> Option<Draft> {
    let (own, start, files) = (recovery.timelines.target(), recovery.start, &recovery.files);
    let is_wrong = files.histories.get(&own).is_some_and(Result::is_err);
    let fault = files.history_fault(own)?;
    // What the server cannot read is told already; without segments, WAL lies elsewhere.
    if is_wrong || files.segments.is_empty() {
        return None;
    }
    let missing = format!("the history of timeline {own} {fault}");
    let (is_needed, is_elsewhere) = match start.kind {
        StartKind::Crash => (start.timeline != own, false),
        StartKind::Backup | StartKind::Archive => (start.timeline != own, true),
        StartKind::Settled => (false, false),
    };
    if !is_needed {
        let words =
            "this cluster starts without it, and standbys and archives that follow it need it";
        return Some(draft(own, format!("{missing}; {words}"), Severity::Note));
    }
    let begins = format!(
        "recovery begins at {} on timeline {}",
        start.redo, start.timeline
    );
    let history = files.history_or_switches(own);
    let left = history.and_then(|history| history.left(start.timeline));
    let shown = match left {
        Some(left) => format!("records of pg_wal show that it was left at {left}"),
        None => "no record of pg_wal shows where it was left".to_owned(),
    };
    let message = format!("{missing}; {begins}, and {shown}");
    if is_elsewhere {
        return Some(draft(own, message, Severity::Note));
    }
    let number = recovery.shape.segment_number(start.checkpoint);
    let words = match files.file(number, own) {
        Some(_) => {
            format!("FATAL:  requested timeline {own} is not a child of this server's history")
        }
        None => server_words(cluster),
    };
    Some(draft(own, message, Severity::Damage).server_says(words))
}

impl TimelineHistory {
    /// The cluster stands on the timeline whose history says where it began: no checkpoint of it
    /// can lie before that.
    fn check_own_switch(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(recovery) = cluster.recovery() else {
            return;
        };
        let start = recovery.start;
        let history = recovery.files.history(start.timeline);
        let Some(last) = history.and_then(|history| history.switches.last()) else {
            return;
        };
        if start.kind != StartKind::Backup && start.checkpoint < last.at {
            let message = format!(
                "timeline {} begins at {}, and its last checkpoint is at {}",
                start.timeline, last.at, start.checkpoint
            );
            out.add(draft(start.timeline, message, Severity::Damage));
        }
    }
}
