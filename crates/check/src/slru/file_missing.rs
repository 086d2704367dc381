//! A file of `pg_xact`, `pg_multixact` or `pg_commit_ts` is not there.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{gaps, status_limits};
use pgclinic_format::StatusLog;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static SLRU_FILE_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/slru-file-missing.md"));

/// See [`SLRU_FILE_MISSING`].
pub struct SlruFileMissing;

impl ClusterCheck for SlruFileMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SLRU_FILE_MISSING] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(limits) = status_limits(cluster) else {
            return;
        };
        let lost = StatusLog::ALL
            .into_iter()
            .flat_map(|log| gaps(cluster, &limits, log));
        for gap in lost.filter(|gap| !gap.in_file) {
            let message = format!("{} is missing", gap.place.path);
            let draft = Draft::new(&SLRU_FILE_MISSING, message)
                .fact("first_page", gap.first_page)
                .fact("pages", gap.pages)
                .place(gap.place);
            out.add(match gap.server_says {
                Some(words) => draft.server_says(words),
                None => draft,
            });
        }
    }
}
