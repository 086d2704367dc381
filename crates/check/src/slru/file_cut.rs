//! A file of a status log is shorter than its numbers demand, or has a length that no server gives.

use pgclinic_cluster::status::{gaps, status_limits};
use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_model::document::{FileKind, Level};
use pgclinic_model::plural;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static SLRU_FILE_TRUNCATED: Rule =
    Rule::from_page(include_str!("../../rules/slru-file-truncated.md"));

/// See [`SLRU_FILE_TRUNCATED`].
pub struct SlruFileTruncated;

impl ClusterCheck for SlruFileTruncated {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SLRU_FILE_TRUNCATED] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        if let Some(limits) = status_limits(cluster) {
            for log in StatusLog::ALL {
                let short = gaps(cluster, &limits, log).into_iter();
                short.filter(|gap| gap.in_file).for_each(|gap| {
                    let page = gap.first_page % PAGES_PER_SEGMENT;
                    let message = format!(
                        "{} ends before page {page}, which has been in use",
                        gap.place.path
                    );
                    let draft = Draft::new(&SLRU_FILE_TRUNCATED, message)
                        .fact("first_page", gap.first_page)
                        .fact("pages", gap.pages)
                        .place(gap.place);
                    out.add(match gap.server_says {
                        Some(words) => draft.server_says(words),
                        None => draft,
                    });
                });
            }
        }
        // Files as they lie there, not as recovery leaves them.
        if cluster.recovered().is_none() {
            StatusLog::ALL
                .into_iter()
                .for_each(|log| odd_lengths(cluster, log, out));
        }
    }
}

/// A crash may leave half a page behind, which replay completes.
fn odd_lengths(cluster: &Cluster, log: StatusLog, out: &mut Findings) {
    let page_bytes = u64::from(cluster.build.block_size);
    let known = cluster.control.trusted().is_some();
    let severity = if log.is_kept() && cluster.may_compare(Comparison::FilesWithCatalogs) {
        Severity::Damage
    } else {
        Severity::Note
    };
    let files = cluster.status_files(log).unwrap_or_default();
    for file in files.into_iter().filter(|_| known) {
        let (pages, rest) = (file.len / page_bytes, file.len % page_bytes);
        let message = match (pages, rest) {
            (PAGES_PER_SEGMENT.., _) if file.len > PAGES_PER_SEGMENT * page_bytes => format!(
                "{} has {} bytes, more than {PAGES_PER_SEGMENT} pages",
                file.path, file.len
            ),
            (_, 1..) => format!(
                "{} has {} bytes: {pages} and {rest} bytes",
                file.path,
                file.len,
                pages = plural(pages, "whole page")
            ),
            _ => continue,
        };
        let draft = Draft::new(&SLRU_FILE_TRUNCATED, message)
            .severity(severity)
            .fact("bytes", file.len);
        out.add(draft.place(file_place(file.path, FileKind::Slru)));
    }
}
