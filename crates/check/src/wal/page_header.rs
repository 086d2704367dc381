//! A page of WAL does not belong where it stands.

use pgclinic_cluster::wal::StartKind;
use pgclinic_cluster::{Cluster, Comparison};
use pgclinic_format::Lsn;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::wal::breaks::{WalRule, in_recovery, place_of};

/// The rule.
pub static WAL_PAGE_HEADER: Rule = Rule::from_page(include_str!("../../rules/wal-page-header.md"));

/// See [`WAL_PAGE_HEADER`]; the heads of segments, and what recovery meets.
pub struct WalPageHeader;

impl ClusterCheck for WalPageHeader {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&WAL_PAGE_HEADER] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let (Some(recovery), Some(survey)) = (cluster.recovery(), cluster.wal_survey()) else {
            return;
        };
        let shape = &recovery.shape;
        let first = shape.segment_number(recovery.start.redo);
        if !survey.heads.is_empty() && !cluster.may_compare(Comparison::AnythingWithWalEnd) {
            return;
        }
        for head in &survey.heads {
            let Some(at) = head.number.checked_mul(u64::from(shape.segment_bytes)) else {
                continue;
            };
            let message = match head.fault {
                Some(fault) => format!("the segment begins with a page that carries {fault}"),
                None => format!(
                    "the segment has {} bytes, not {}",
                    head.len, shape.segment_bytes
                ),
            };
            let draft = Draft::new(&WAL_PAGE_HEADER, message).place(place_of(recovery, Lsn(at)));
            let needed = head.number >= first
                && matches!(recovery.start.kind, StartKind::Settled | StartKind::Crash);
            out.add(if needed {
                draft
            } else {
                draft.severity(Severity::Warning)
            });
        }
        if let Some(found) = in_recovery(cluster).filter(|found| found.teller() == WalRule::Page) {
            let at_head = shape.segment_of(found.end.at) == found.end.at;
            if !at_head || survey.heads.is_empty() {
                out.add(found.draft(&WAL_PAGE_HEADER, recovery));
            }
        }
    }
}
