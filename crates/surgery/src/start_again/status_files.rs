//! Files of pg_xact, pg_multixact and pg_commit_ts that are missing or too short, or of which
//! sectors were overwritten with zeros.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{
    StatusLimits, StatusPages, ZeroedStatus, gaps, status_limits, zeroed_status,
};
use pgclinic_format::StatusLog;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};

use super::asked::Asked;
use super::ground::Ground;
use super::lost_pages::LostPages;
use super::page_counters::{Bounds, PageCounters, count_pages};
use super::row_fates::predict;
use super::status_fill::{Filled, Known, TOO_LONG};
use super::{Draft, Found, StartOptions, Stops, with_drafts};

pub(super) const NAME: &str = "fill-status-files";

/// What is lost of each log.
pub(super) fn found(cluster: &Cluster, options: &StartOptions<'_>) -> Found {
    let mut found = Found::default();
    let Some(limits) = status_limits(cluster) else {
        return found;
    };
    for log in StatusLog::ALL.into_iter().filter(|log| log.is_kept()) {
        let Some((filled, counters)) = filled(cluster, &limits, log, options) else {
            continue;
        };
        if filled.too_long.is_some() {
            found.leave_open(log.folder(), Stops::Start, TOO_LONG);
        } else if filled.is_nothing_new() {
            let why = "sectors of it were overwritten with zeros, and no row says what became of their transactions: take the file from a backup or a standby";
            found.leave_open(log.folder(), Stops::Other, why);
        } else {
            let draft = draft(cluster, log, &filled, &counters);
            found.drafts.extend(draft);
        }
    }
    found
}

/// What is made of a log; nothing where nothing of it is lost.
fn filled(
    cluster: &Cluster,
    limits: &StatusLimits,
    log: StatusLog,
    options: &StartOptions<'_>,
) -> Option<(Filled, PageCounters)> {
    let gaps = gaps(cluster, limits, log).into_iter();
    let missing = gaps.flat_map(|gap| gap.first_page..gap.first_page.saturating_add(gap.pages));
    let missing: Vec<u64> = missing.collect();
    let zeroed = match log {
        StatusLog::Xact => zeroed_status(cluster),
        _ => Vec::new(),
    };
    if missing.is_empty() && zeroed.is_empty() {
        return None;
    }
    let pages = StatusPages::open(cluster, log).ok()?;
    let counters = match log {
        StatusLog::Xact => counted(cluster, (&missing, &zeroed), options)?,
        _ => PageCounters::default(),
    };
    let next = limits.multis.next;
    let known = Known {
        votes: &counters.votes,
        multis: [
            limits.multis.first.unwrap_or(next.wrapping_sub(1 << 31)),
            next,
        ],
        next_member: limits.next_member,
    };
    let lost = LostPages::of(&missing).with_zeroed(&pages, &zeroed);
    let mut filled = Filled::default();
    filled.pages(cluster, pages, &lost, &known);
    Some((filled, counters))
}

fn draft(
    cluster: &Cluster,
    log: StatusLog,
    filled: &Filled,
    counters: &PageCounters,
) -> Option<Draft> {
    let last = filled.changes.last()?.path().to_owned();
    let summary = match log {
        StatusLog::Xact => "the status of transactions is written from the hint bits of rows",
        _ => "pages are made, and what stood on them is given up",
    };
    let mut draft = Draft::new(NAME, Safety::Lossy, &last, summary);
    for change in filled.changes.clone() {
        draft = draft.change("pages that are not there, or hold zeros", change);
    }
    for word in filled.sentences() {
        draft = draft.because(word);
    }
    Some(match log {
        StatusLog::Xact => of_transactions(cluster, draft, filled, counters),
        StatusLog::CommitTs => draft.warn("commit time stamps of these transactions are gone"),
        _ => {
            let draft = draft.warn("who locked or changed rows together with others is gone: such rows stay, though they may have been deleted or replaced");
            with_fates(cluster, draft)
        }
    })
}

/// What rows say of transactions whose page is not there, or was overwritten.
fn counted(
    cluster: &Cluster,
    (missing, zeroed): (&[u64], &[ZeroedStatus]),
    options: &StartOptions<'_>,
) -> Option<PageCounters> {
    let per_page = u64::from(cluster.build.block_size) * 4;
    let of_page = |page: &u64| {
        let first = u32::try_from(page.checked_mul(per_page)?).ok()?;
        Some((first, u32::try_from(per_page).ok()?))
    };
    let of_zeros = |zeroed: &ZeroedStatus| {
        let count = zeroed.last.checked_sub(zeroed.first)?.checked_add(1)?;
        Some((
            u32::try_from(zeroed.first).ok()?,
            u32::try_from(count).ok()?,
        ))
    };
    let asked = missing.iter().filter_map(of_page);
    let asked = asked.chain(zeroed.iter().filter_map(of_zeros));
    votes_of(cluster, asked, options)
}

/// What rows say of some transactions.
pub(super) fn votes_of(
    cluster: &Cluster,
    runs: impl IntoIterator<Item = (u32, u32)>,
    options: &StartOptions<'_>,
) -> Option<PageCounters> {
    let ground = Ground::read(cluster).ok()?;
    let bounds = Bounds {
        asked: Asked::of(runs),
        ..ground.bounds()
    };
    let (threads, progress) = (options.threads, options.progress);
    Some(count_pages(cluster, &bounds, threads, progress))
}

/// Exact where no row asks for a status that its own hint bits, or another row, do not tell.
fn of_transactions(
    cluster: &Cluster,
    draft: Draft,
    filled: &Filled,
    counters: &PageCounters,
) -> Draft {
    let draft = draft.because(format!(
        "rows of {} say by their hint bits how each ended, and none says otherwise",
        plural(filled.told, "transaction")
    ));
    let is_read = counters.not_read.is_empty() && counters.checksums_wrong == 0;
    if filled.asked == 0 && filled.disagreed == 0 && is_read {
        // Updaters of multixacts ask too, and pages that recovery brings may have no hint bits.
        return draft
            .because("no row asks for the status of another transaction by its xmin or xmax");
    }
    let draft = lost(filled).into_iter().fold(draft, Draft::warn);
    let draft = if is_read {
        draft
    } else {
        draft.warn("some pages could not be read, or their checksums are wrong: rows there may ask for a status that is lost too")
    };
    with_fates(cluster, draft)
}

/// What stays lost, as far as there is any of it.
fn lost(filled: &Filled) -> Vec<String> {
    let asked = (filled.rows_asked > 0).then(|| {
        format!(
            "{} of {} {} for a status that is lost: they count as rolled back",
            plural(filled.rows_asked, "row"),
            plural(filled.asked.saturating_add(filled.disagreed), "transaction"),
            verb_of(filled.rows_asked, "ask")
        )
    });
    let disagreed = (filled.disagreed > 0).then(|| {
        format!(
            "hint bits of {} contradict each other, and nothing is written of those",
            plural(filled.disagreed, "transaction")
        )
    });
    asked.into_iter().chain(disagreed).collect()
}

/// With what the server will show of each table.
fn with_fates(cluster: &Cluster, draft: Draft) -> Draft {
    let after = with_drafts(cluster, std::slice::from_ref(&draft));
    let after = after.ok().flatten();
    let tables = after.map_or_else(Vec::new, |after| predict(&after).tables);
    Draft {
        tables,
        rows_lost: None,
        ..draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_of_none_is_not_said() {
        let mut filled = Filled::default();
        (filled.asked, filled.rows_asked) = (2, 3);
        let asked =
            "3 rows of 2 transactions ask for a status that is lost: they count as rolled back";
        assert_eq!(lost(&filled), [asked]);
        let mut filled = Filled::default();
        filled.disagreed = 1;
        let disagreed =
            "hint bits of 1 transaction contradict each other, and nothing is written of those";
        assert_eq!(lost(&filled), [disagreed]);
        assert!(lost(&Filled::default()).is_empty());
    }
}
