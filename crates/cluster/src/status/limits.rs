//! Which numbers the status logs must know, by the last checkpoint, by the WAL behind it and by
//! `pg_database`.
//!
//! `VACUUM` removes files first and notes the oldest number later, and a crash between the two
//! leaves the old one in the control file; `pg_resetwal` only guesses it. What `pg_database` says
//! was written before any file went, so the younger of the two is what files must reach back to.
//! Truth: `vac_truncate_clog` in `src/backend/commands/vacuum.c`, `TruncateMultiXact` in
//! `src/backend/access/transam/multixact.c`.

use crate::wal::{CheckpointState, StartKind};
use crate::{Cluster, Comparison, Database};
use pgclinic_source::Presence;

/// Numbers of one kind that were given out and may still be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The oldest one; unknown while replay may still remove files.
    pub first: Option<u32>,
    /// The next one.
    pub next: u32,
}

/// What the last checkpoint knows, or the end of a recovery in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatusLimits {
    /// Nothing is left to replay, or all of it was replayed in memory.
    pub settled: bool,
    /// Transactions.
    pub xids: Span,
    /// How often transaction numbers have begun at 0 again.
    pub epoch: u32,
    /// Multixacts.
    pub multis: Span,
    /// The next number among the members of multixacts.
    pub next_member: u32,
    /// Oldest and newest transaction with a time stamp, while they are kept.
    pub commit_ts: Option<(u32, u32)>,
}

/// Nothing when the control file cannot be trusted, and for a base backup that was never started,
/// whose files are of different moments until its WAL was read.
pub fn status_limits(cluster: &Cluster) -> Option<StatusLimits> {
    let control = cluster.control.trusted()?;
    let recovered = cluster.recovered();
    let label = Presence::of_file(cluster.source().as_ref(), "backup_label");
    if recovered.is_none() && !label.is_missing() {
        return None;
    }
    let checkpoint = &control.checkpoint;
    let settled = cluster.may_compare(Comparison::FilesWithCatalogs);
    let next_xid = recovered
        .map_or(checkpoint.next_xid(), |after| after.next_xid)
        .0;
    let wrapped = u32::from(next_xid < checkpoint.next_xid().0);
    // Just after a wrap-around the next multixact may be noted as 0.
    let next_multi = recovered.map_or(checkpoint.next_multi, |after| after.next_multi);
    let next_multi = next_multi.0.max(1);
    let first = |next, noted, of: &dyn Fn(&Database) -> Option<u32>| {
        settled.then(|| oldest(cluster, next, noted, of)).flatten()
    };
    let xids = Span {
        first: first(next_xid, checkpoint.oldest_xid.0, &|database| {
            Some(database.frozen_xid?.0)
        }),
        next: next_xid,
    };
    let multis = Span {
        first: first(next_multi, checkpoint.oldest_multi.0, &|database| {
            Some(database.min_multi?.0)
        }),
        next: next_multi,
    };
    let (oldest, newest) = (
        checkpoint.oldest_commit_ts_xid,
        checkpoint.newest_commit_ts_xid,
    );
    // What becomes of time stamps is not followed through the WAL.
    let kept = control.track_commit_timestamp
        && oldest.is_normal()
        && newest.is_normal()
        && recovered.is_none();
    Some(StatusLimits {
        settled,
        xids,
        epoch: u32::try_from(checkpoint.next_full_xid >> 32)
            .unwrap_or(u32::MAX)
            .saturating_add(wrapped),
        multis,
        next_member: recovered.map_or(checkpoint.next_multi_offset, |after| {
            after.next_multi_offset
        }),
        commit_ts: (kept && !newest.precedes(oldest)).then_some((oldest.0, newest.0)),
    })
}

/// What had ended when the last checkpoint of a cluster began that crashed since: a transaction
/// leaves the list of those under way after its status is in the log, and the checkpoint writes the
/// log (`CreateCheckPoint` in `xlog.c`, `RecordTransactionCommit` in `xact.c`). Multixacts have
/// none.
///
/// Nothing where the checkpoint does not name the oldest transaction under way.
pub fn limits_of_checkpoint(cluster: &Cluster) -> Option<StatusLimits> {
    let control = cluster.control.trusted()?;
    let recovery = cluster.recovery()?;
    if cluster.is_running() || cluster.is_partial() || recovery.start.kind != StartKind::Crash {
        return None;
    }
    let checkpoint = &control.checkpoint;
    let next = match (
        checkpoint.oldest_active_xid,
        &cluster.wal_survey()?.checkpoint,
    ) {
        (oldest, _) if oldest.is_normal() => oldest,
        // Nothing was under way.
        (_, CheckpointState::Found { shutdown: true, .. }) => checkpoint.next_xid(),
        _ => return None,
    };
    let frozen = |database: &Database| Some(database.frozen_xid?.0);
    let wrapped = u32::from(checkpoint.next_xid().0 < next.0);
    let epoch = u32::try_from(checkpoint.next_full_xid >> 32).unwrap_or(u32::MAX);
    let multis = checkpoint.next_multi.0.max(1);
    Some(StatusLimits {
        settled: false,
        xids: Span {
            first: oldest(cluster, next.0, checkpoint.oldest_xid.0, &frozen),
            next: next.0,
        },
        epoch: epoch.saturating_sub(wrapped),
        multis: Span {
            first: Some(multis),
            next: multis,
        },
        next_member: checkpoint.next_multi_offset,
        commit_ts: None,
    })
}

/// The younger one of what the control file notes and the oldest that any database needs.
fn oldest(
    cluster: &Cluster,
    next: u32,
    noted: u32,
    of: &dyn Fn(&Database) -> Option<u32>,
) -> Option<u32> {
    let mut living = cluster
        .databases
        .values()
        .filter(|database| database.name.is_some() && !database.invalid);
    let ages: Option<Vec<u32>> = living
        .by_ref()
        .map(|database| age(of(database)?, next))
        .collect();
    let needed = ages?.into_iter().max()?;
    Some(next.wrapping_sub(needed.min(age(noted, next)?)))
}

/// How far a number lies behind the next one; nothing for one that would lie ahead of it.
fn age(number: u32, next: u32) -> Option<u32> {
    let age = next.wrapping_sub(number);
    (age < 1 << 31).then_some(age)
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_are_counted_on_the_circle() {
        assert_eq!(age(700, 1000), Some(300));
        assert_eq!(age(4_294_967_290, 4), Some(10));
        assert_eq!(age(1001, 1000), None);
    }
}
