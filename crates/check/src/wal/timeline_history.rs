//! The history of a timeline cannot be read, or contradicts the control file.

use pgclinic_cluster::wal::StartKind;
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::document::{FileKind, Level};
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

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
        let tell = |timeline: u32, message: String, severity| {
            let path = format!("pg_wal/{timeline:08X}.history");
            let draft = Draft::new(&TIMELINE_HISTORY, message).severity(severity);
            draft
                .fact("timeline", timeline)
                .place(file_place(path, FileKind::Wal))
        };
        for (timeline, history) in &recovery.files.histories {
            if let Err(fault) = history {
                let needed = *timeline == own && recovery.start.kind != StartKind::Settled;
                let severity = if needed {
                    Severity::Damage
                } else {
                    Severity::Warning
                };
                out.add(tell(
                    *timeline,
                    format!("the history of timeline {timeline} cannot be read: {fault}"),
                    severity,
                ));
            }
        }
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
            out.add(tell(own, message, Severity::Damage));
        }
        self.check_own_switch(cluster, out, &tell);
    }
}

impl TimelineHistory {
    /// The cluster stands on the timeline whose history says where it began: no checkpoint of it
    /// can lie before that.
    fn check_own_switch(
        &self,
        cluster: &Cluster,
        out: &mut Findings,
        tell: &dyn Fn(u32, String, Severity) -> Draft,
    ) {
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
            out.add(tell(start.timeline, message, Severity::Damage));
        }
    }
}
