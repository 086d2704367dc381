//! Files of pg_xact, pg_multixact and pg_commit_ts that are missing or too short.

use std::sync::Arc;

use pgclinic_cluster::status::{StatusLimits, gaps, status_limits};
use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_format::{StatusLog, Xid};
use pgclinic_model::plan::{Patch, Safety};

use super::ground::Ground;
use super::page_counters::{PageCounters, count_pages};
use super::row_fates::predict;
use super::status_fill::{Filled, Known, fill_pages};
use super::{Draft, StartOptions};
use crate::overlay::overlay;

pub(super) const NAME: &str = "fill-status-files";

/// One for each log.
pub(super) fn drafts(cluster: &Cluster, options: &StartOptions<'_>) -> Vec<Draft> {
    let Some(limits) = status_limits(cluster) else {
        return Vec::new();
    };
    let logs = StatusLog::ALL.into_iter().filter(|log| log.is_kept());
    let missing = logs.filter_map(|log| {
        let gaps = gaps(cluster, &limits, log);
        let pages = gaps
            .iter()
            .flat_map(|gap| gap.first_page..gap.first_page.saturating_add(gap.pages));
        let pages: Vec<u64> = pages.collect();
        (!pages.is_empty()).then_some((log, pages))
    });
    let missing: Vec<(StatusLog, Vec<u64>)> = missing.collect();
    missing
        .into_iter()
        .filter_map(|(log, pages)| draft(cluster, &limits, (log, &pages), options))
        .collect()
}

fn draft(
    cluster: &Cluster,
    limits: &StatusLimits,
    (log, pages): (StatusLog, &[u64]),
    options: &StartOptions<'_>,
) -> Option<Draft> {
    let counters = match log {
        StatusLog::Xact => counted(cluster, pages, options)?,
        _ => PageCounters::default(),
    };
    let mut filled = Filled::default();
    let known = Known {
        votes: &counters.votes,
        next_multi: limits.multis.next,
        next_member: limits.next_member,
    };
    fill_pages(cluster, log, pages, &known, &mut filled);
    let first = filled.changes.last()?.path().to_owned();
    let summary = match log {
        StatusLog::Xact => "pages of pg_xact are made from the hint bits of rows",
        _ => "pages are made, and what stood on them is given up",
    };
    let mut draft = Draft::new(NAME, Safety::Lossy, &first, summary);
    for change in filled.changes.clone() {
        draft = draft.change("pages that are not there", change);
    }
    for word in &filled.words {
        draft = draft.because(word);
    }
    Some(match log {
        StatusLog::Xact => of_transactions(cluster, draft, &filled, &counters),
        StatusLog::CommitTs => draft.warn("commit time stamps of these transactions are gone"),
        _ => {
            let draft = draft.warn("who locked or changed rows together with others is gone: such rows stay, though they may have been deleted or replaced");
            with_fates(cluster, draft)
        }
    })
}

fn counted(cluster: &Cluster, pages: &[u64], options: &StartOptions<'_>) -> Option<PageCounters> {
    let ground = Ground::read(cluster).ok()?;
    let per_page = u64::from(cluster.build.block_size) * 4;
    let range = |page: &u64| {
        let first = u32::try_from(page.checked_mul(per_page)?).ok()?;
        Some((Xid(first), u32::try_from(per_page).ok()?))
    };
    let mut bounds = ground.bounds();
    bounds.asked = pages.iter().filter_map(range).collect();
    Some(count_pages(
        cluster,
        &bounds,
        options.threads,
        options.progress,
    ))
}

/// Exact where no row asks for a status that its own hint bits, or another row, do not tell.
fn of_transactions(
    cluster: &Cluster,
    draft: Draft,
    filled: &Filled,
    counters: &PageCounters,
) -> Draft {
    let disagreed = counters
        .votes
        .values()
        .filter(|own| own.committed > 0 && own.aborted > 0)
        .count();
    let draft = draft.because(format!(
        "rows of {} transactions say by their hint bits what became of them",
        filled.told
    ));
    let is_read = counters.not_read.is_empty() && counters.checksums_wrong == 0;
    if filled.asked == 0 && disagreed == 0 && is_read {
        // Updaters of multixacts ask too, and pages that recovery brings may have no hint bits.
        return draft
            .because("no row asks for the status of another transaction by its xmin or xmax");
    }
    let draft = draft.warn(format!(
        "{} rows of {} transactions ask for a status that is lost: they count as rolled back; hint bits of {disagreed} transactions contradict each other",
        filled.rows_asked, filled.asked
    ));
    with_fates(cluster, draft)
}

/// With what the server will show of each table.
fn with_fates(cluster: &Cluster, draft: Draft) -> Draft {
    let patch = Patch {
        changes: draft.changes.clone(),
    };
    let source = overlay(Arc::clone(cluster.source()), &patch).ok();
    let after = source.and_then(|source| Cluster::open(OpenOptions::of(source)).ok());
    let tables = after.map_or_else(Vec::new, |after| predict(&after).tables);
    Draft {
        tables,
        rows_lost: None,
        ..draft
    }
}
