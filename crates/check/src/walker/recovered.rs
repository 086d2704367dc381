//! A cluster that needs recovery, and what a recovery in memory makes of its catalogs and status
//! files.

use pgclinic_cluster::{Cluster, Comparison};
use pgclinic_model::Severity;

use crate::findings::Findings;

/// The cluster to check, and the one that recovery leaves where all of it is known.
#[derive(Clone, Copy)]
pub(super) struct Clusters<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) recovered: Option<&'a Cluster>,
}

impl Clusters<'_> {
    /// Looks at the recovered cluster too, unless there is damage among the drafts behind the first
    /// `known`. What a server at work has overtaken is left out; of one that is known to be at
    /// work, everything is asked twice.
    pub(super) fn ask_again(
        &self,
        known: usize,
        findings: &mut Findings,
        check: impl FnOnce(&Cluster, &mut Findings),
    ) {
        let fresh = findings.drafts.get(known..).unwrap_or_default();
        let told = fresh.iter().any(|draft| draft.severity == Severity::Damage);
        let Some(after) = self.recovered.filter(|_| !told) else {
            return;
        };
        let mut again = Findings::default();
        check(after, &mut again);
        let overtaken = || {
            let compared = self.cluster.may_compare(Comparison::AnythingWithWalEnd);
            !self.cluster.is_running() && !compared
        };
        if !again.drafts.is_empty() && !overtaken() {
            findings.drafts.append(&mut again.drafts);
        }
    }
}
