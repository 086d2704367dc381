//! A file of `pg_xact`, `pg_multixact` or `pg_commit_ts` is not there.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{gaps, status_limits};
use pgclinic_format::StatusLog;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static STATUS_FILE_MISSING: Rule = Rule {
    name: "status-file-missing",
    severity: Severity::Damage,
    summary: "a file with the status of transactions or multixacts is not there",
    explain: "\
`pg_xact` holds two bits for each transaction (did it commit?), `pg_multixact` the members of each shared row \
lock, `pg_commit_ts` the times of commits. A file is missing between the oldest number that some row may still \
need and the next number to be given out.

If it is the last file, the server does not start: `could not access status of transaction …`, with the detail \
`Could not open file \"pg_xact/…\": No such file or directory.` If it is an older one, it starts, and every query \
that comes upon a row of such a transaction says the same; rows whose hint bits are set are read without a word. \
After a crash it is worse: recovery takes a missing file for zeros, and committed rows disappear.

Usual causes: the folder was not in a copy or a backup, files that looked like logs were removed to free space \
(`pg_xact` was called `pg_clog` for that reason no longer), or a file system lost them.

Copy the data directory before the server runs again. Take the file from a backup or a standby of this cluster: \
files that are full are the same everywhere. If there is none, a file of zeros makes the server start, and all of \
its transactions count as rolled back; one of bytes 0x55 makes them all committed. Both are guesses: only on a \
copy, and only to dump what can still be read.",
};

/// See [`STATUS_FILE_MISSING`].
pub struct StatusFileMissing;

impl ClusterCheck for StatusFileMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&STATUS_FILE_MISSING] }
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
            let draft = Draft::new(&STATUS_FILE_MISSING, message)
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
