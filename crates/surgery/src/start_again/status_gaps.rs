//! Pages of status logs that a server reads, between the oldest and the next number of a
//! checkpoint, and that are not there.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{Span, StatusLimits, StatusPages, gaps};
use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::{StatusLog, Xid};

/// Pages between the oldest and the next number that are not there.
pub(super) fn missing(
    cluster: &Cluster,
    pages: &StatusPages<'_>,
    checkpoint: &Checkpoint,
) -> Vec<u64> {
    let (first, next) = match pages.log() {
        StatusLog::Xact => (checkpoint.oldest_xid.0, checkpoint.next_xid().0),
        StatusLog::MultiOffsets => (checkpoint.oldest_multi.0, checkpoint.next_multi.0),
        _ => return by_gaps(cluster, pages.log(), checkpoint),
    };
    let circle = pages.pages_on_circle();
    let start = pages.page_of(first);
    // The page of the next number is made when the number is given out, if it is the first on it.
    let end = if pages.entry_of(next) == 0 && next != first {
        pages.page_of(next.wrapping_sub(1))
    } else {
        pages.page_of(next)
    };
    let steps = (end + circle - start % circle) % circle;
    if steps > circle / 2 + 1 {
        return Vec::new();
    }
    let all = (0..=steps).map(|step| (start + step) % circle);
    all.filter(|page| !pages.has(*page)).collect()
}

/// Those that members or time stamps must stand on.
fn by_gaps(cluster: &Cluster, log: StatusLog, checkpoint: &Checkpoint) -> Vec<u64> {
    let commit_ts = (
        checkpoint.oldest_commit_ts_xid,
        checkpoint.newest_commit_ts_xid,
    );
    let limits = StatusLimits {
        settled: true,
        xids: Span {
            first: Some(checkpoint.oldest_xid.0),
            next: checkpoint.next_xid().0,
        },
        epoch: u32::try_from(checkpoint.next_full_xid >> 32).unwrap_or(u32::MAX),
        multis: Span {
            first: Some(checkpoint.oldest_multi.0),
            next: checkpoint.next_multi.0,
        },
        next_member: checkpoint.next_multi_offset,
        commit_ts: (commit_ts.0 != Xid::INVALID).then_some((commit_ts.0.0, commit_ts.1.0)),
    };
    let gaps = gaps(cluster, &limits, log).into_iter();
    gaps.flat_map(|gap| gap.first_page..gap.first_page.saturating_add(gap.pages))
        .collect()
}
