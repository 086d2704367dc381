//! What there is to do in one database: a job a fork, with all that the checks need to know.

use pgclinic_cluster::{ForkFiles, Persistence, Relation};
use pgclinic_format::{Fork, Lsn};

use crate::check::{DatabaseCx, ForkCx, Limits};
use crate::document::{Kind, Level, NotChecked};
use crate::places::kind_of;
use crate::walker::CheckOptions;
use crate::walker::books::Books;

/// Bytes that a shutdown checkpoint takes in the WAL at most, page headers included.
const CHECKPOINT_BYTES: u64 = 256;

/// Limits of a cluster that was shut down in good order.
pub(crate) fn limits_of(cluster: &pgclinic_cluster::Cluster) -> Option<Limits> {
    let control = cluster
        .control
        .trusted()
        .filter(|control| control.is_shut_down())?;
    let checkpoint = &control.checkpoint;
    Some(Limits {
        next_xid: checkpoint.next_xid(),
        oldest_xid: checkpoint.oldest_xid,
        next_multi: checkpoint.next_multi,
        oldest_multi: checkpoint.oldest_multi,
        wal_end: Lsn(control.checkpoint_lsn.0 + CHECKPOINT_BYTES),
    })
}

/// The jobs of a database, in the order of its files. What is left out is booked.
pub(crate) fn jobs_of<'a>(
    view: &'a DatabaseCx<'a>,
    options: &CheckOptions,
    books: &mut Books,
) -> Vec<ForkCx<'a>> {
    let mut jobs = Vec::new();
    for files in view.forks {
        let relation = view.catalog.by_file(files.home.tablespace, files.filenode);
        if !options.selection.takes_fork(files, relation)
            || is_left_out(view, files, relation, books)
        {
            continue;
        }
        let job = fork_cx(view, files, options.level);
        if files.fork == Fork::Main {
            books.coverage.relations += 1;
            tell_what_is_unknown(&job, books);
        }
        jobs.push(job);
    }
    jobs
}

/// Files whose bytes mean nothing: nobody will read them again as they are.
fn is_left_out(
    view: &DatabaseCx<'_>,
    files: &ForkFiles,
    relation: Option<&Relation>,
    books: &mut Books,
) -> bool {
    let (what, why) = if files.temporary.is_some() {
        (
            "files of temporary relations",
            "the server removes them when it starts",
        )
    } else if files.fork != Fork::Init
        && view.cluster.needs_recovery()
        && relation.is_some_and(|relation| relation.persistence == Persistence::Unlogged)
    {
        (
            "unlogged relations",
            "the server empties them when it starts after a crash",
        )
    } else {
        return false;
    };
    books.not_checked(NotChecked {
        what: what.into(),
        why: why.into(),
        inherent: true,
    });
    true
}

/// What the checks may know of one fork.
pub fn fork_cx<'a>(view: &'a DatabaseCx<'a>, files: &'a ForkFiles, level: Level) -> ForkCx<'a> {
    let cluster = view.cluster;
    let relation = view.catalog.by_file(files.home.tablespace, files.filenode);
    let owner = relation
        .map(|relation| relation.toast_of)
        .filter(|oid| *oid != 0);
    ForkCx {
        cluster: Some(cluster),
        source: Some(cluster.source().as_ref()),
        layout: Some(cluster.layout),
        build: cluster.build,
        files,
        relation,
        toast_of: owner.and_then(|oid| view.catalog.relations.get(&oid)),
        database: view.catalog.database_name.as_deref(),
        kind: kind_of(relation),
        method: relation.and_then(Relation::page_method),
        columns: relation.and_then(|relation| relation.layouts.as_deref()),
        blocks: files.blocks(cluster.build.block_size, cluster.build.segment_bytes),
        limits: limits_of(cluster),
        level,
    }
}

fn tell_what_is_unknown(job: &ForkCx<'_>, books: &mut Books) {
    if job.level < Level::Structure {
        return;
    }
    let entry = match job.relation {
        Some(relation)
            if matches!(job.kind, Kind::Table | Kind::Toast | Kind::MaterializedView)
                && job.columns.is_none() =>
        {
            let what = format!("columns of {}", relation.qualified_name());
            NotChecked {
                what,
                why: "pg_attribute does not give all of them".into(),
                inherent: false,
            }
        }
        Some(relation) if job.method.is_none() => {
            let what = format!("contents of {}", relation.qualified_name());
            NotChecked {
                what,
                why: "its access method belongs to an extension".into(),
                inherent: true,
            }
        }
        _ => return,
    };
    books.not_checked(entry);
}
