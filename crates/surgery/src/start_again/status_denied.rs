//! Pages of pg_xact whose bits the rows of many pages deny. A server starts on them, and shows
//! other rows.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::StatusPages;
use pgclinic_format::slru::{PAGES_PER_SEGMENT, xact_status};
use pgclinic_format::{BlockNo, StatusLog};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_model::{plural, verb_of};

use super::page_counters::PageCounters;
use super::status_files::votes_of;
use super::status_fill::{put_status, unanimous};
use super::votes::Votes;
use super::{Draft, Found, StartOptions, Stops};

pub(super) const NAME: &str = "status-from-hint-bits";

/// What rows say of the transactions on these pages, counted through the log.
pub(super) fn found(cluster: &Cluster, pages: &[BlockNo], options: &StartOptions<'_>) -> Found {
    let mut found = Found::default();
    let Ok(mut log) = StatusPages::open(cluster, StatusLog::Xact) else {
        return found;
    };
    let runs = pages.iter().filter_map(|page| run(&log, *page));
    let runs: Vec<(u32, u32)> = runs.collect();
    let Some(counters) = votes_of(cluster, runs, options) else {
        return found;
    };
    for page in pages {
        of_page(&mut log, *page, &counters, &mut found);
    }
    found
}

/// The first transaction on a page, and how many there are.
fn run(log: &StatusPages<'_>, page: BlockNo) -> Option<(u32, u32)> {
    let first = log.first_on(page.into())?;
    let next = log.first_on(u64::from(page) + 1).unwrap_or(0);
    Some((first, next.wrapping_sub(first)))
}

/// What of a page rows tell, and what they ask for in vain.
#[derive(Default)]
struct Told {
    changed: u64,
    transactions_asked: u64,
    rows_asked: u64,
}

fn of_page(log: &mut StatusPages<'_>, page: BlockNo, counters: &PageCounters, found: &mut Found) {
    let place = log.place(page.into());
    let Some((first, count)) = run(log, page) else {
        return;
    };
    let Some(before) = log.page(page.into()).map(<[u8]>::to_vec) else {
        return;
    };
    let last = first.saturating_add(count.saturating_sub(1));
    let mut after = before.clone();
    let told = write_told(&mut after, first, counters.votes.range(first..=last));
    if told.transactions_asked > 0 {
        let why = format!(
            "{} {} for the status of {} of page {page}, and no row says it, or rows contradict each other: what the page says of them stays, right or wrong",
            plural(told.rows_asked, "row"),
            verb_of(told.rows_asked, "ask"),
            plural(told.transactions_asked, "transaction")
        );
        found.leave_open(&place.path, Stops::Other, why);
    }
    if told.changed == 0 {
        return;
    }
    let summary = "the status of transactions is corrected by the hint bits of rows";
    let draft = Draft {
        block: page,
        rows_lost: None,
        ..Draft::new(NAME, Safety::Lossy, &place.path, summary)
    };
    let offset = u64::from(page) % PAGES_PER_SEGMENT * before.len() as u64;
    let change = Change::Bytes {
        path: place.path.clone(),
        offset,
        before,
        after,
    };
    let draft = draft
        .because(format!(
            "the rows of {} agree on their end, and the page says otherwise",
            plural(told.changed, "transaction")
        ))
        .warn("bits of transactions that no row names stay as they are: take the file from a backup or a standby where there is one")
        .change(format!("page {page}"), change);
    found.drafts.push(draft);
}

/// Between the rows that agree with the page before and after those that do not, nobody knows what
/// the page says of transactions that no row tells.
fn write_told<'v>(
    page: &mut [u8],
    first: u32,
    votes: impl Iterator<Item = (&'v u32, &'v Votes)>,
) -> Told {
    let mut told = Told::default();
    let mut unknown = Told::default();
    for (xid, votes) in votes {
        let entry = xid.wrapping_sub(first);
        let known = xact_status(page, usize::try_from(entry).unwrap_or(usize::MAX));
        match unanimous(*votes) {
            Some(status) if known == Some(status) => {
                if unknown.changed > 0 {
                    told.add(&unknown);
                }
                unknown = Told::default();
            }
            Some(status) => {
                unknown.changed += 1;
                put_status(page, entry, status);
            }
            None => {
                unknown.transactions_asked += 1;
                unknown.rows_asked += votes.unhinted;
            }
        }
    }
    if unknown.changed > 0 {
        told.add(&unknown);
    }
    told
}

impl Told {
    fn add(&mut self, other: &Told) {
        self.changed += other.changed;
        self.transactions_asked += other.transactions_asked;
        self.rows_asked += other.rows_asked;
    }
}
