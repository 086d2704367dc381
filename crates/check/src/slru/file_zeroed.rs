//! Zeros stand where `pg_xact` must say what became of transactions.
//!
//! A transaction that a crash ended keeps the status 0, and it may have had thousands of
//! subtransactions; `pg_resetwal -x` leaves numbers out. Neither begins where a sector of a disk
//! begins, with a transaction of known end just before it. By chance the last transactions before a
//! crash may begin there, one of each session and no more.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{StatusLimits, StatusPages, status_limits};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::xact_status;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// Bytes of the smallest piece that disks and file systems lose.
const SECTOR_BYTES: usize = 512;
/// Transactions in a byte.
const PER_BYTE: usize = 4;

/// The rule.
pub static SLRU_FILE_ZEROED: Rule =
    Rule::from_page(include_str!("../../rules/slru-file-zeroed.md"));

/// See [`SLRU_FILE_ZEROED`].
pub struct SlruFileZeroed;

impl ClusterCheck for SlruFileZeroed {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SLRU_FILE_ZEROED] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(limits) = status_limits(cluster).filter(|limits| limits.settled) else {
            return;
        };
        let Ok(mut pages) = StatusPages::open(cluster, StatusLog::Xact) else {
            return;
        };
        let Some(first) = limits.xids.first else {
            return;
        };
        let circle = pages.pages_on_circle();
        let (start, end) = (pages.page_of(first), pages.page_of(limits.xids.next));
        let steps = (end + circle - start % circle) % circle;
        let sessions = sessions_at_most(cluster);
        let mut before = Before::Unknown;
        for page in (0..=steps).map(|step| (start + step) % circle) {
            // All transactions from the first one on have been given out without a gap.
            if page == 0 && limits.epoch == 0 {
                before = Before::Known;
            }
            before = look(&mut pages, page, (&limits, sessions), before, out);
        }
    }
}

/// Transactions that can be under way at one time, by the settings, else by their defaults.
fn sessions_at_most(cluster: &Cluster) -> u64 {
    const SETTINGS: [(&str, u64); 3] = [
        ("max_connections", 100),
        ("max_prepared_transactions", 0),
        ("max_worker_processes", 8),
    ];
    let set = |name| cluster.setting(name).and_then(|value| value.parse().ok());
    let counts = SETTINGS.map(|(name, default)| set(name).unwrap_or(default));
    // Whatever the files say, a sector of zeros is a loss.
    let sector = (SECTOR_BYTES * PER_BYTE) as u64;
    counts
        .into_iter()
        .fold(0, u64::saturating_add)
        .min(sector - 1)
}

/// What stands before a sector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A transaction whose end is known.
    Known,
    /// Zeros that begin behind such a one.
    Zeros,
    /// Nothing that proves anything.
    Unknown,
}

/// Tells of zeros on a page; the answer is what stands before the next one.
fn look(
    pages: &mut StatusPages<'_>,
    page: u64,
    (limits, sessions): (&StatusLimits, u64),
    mut before: Before,
    out: &mut Findings,
) -> Before {
    let place = pages.place(page);
    let first_on_page = pages.first_on(page);
    let used = if page == pages.page_of(limits.xids.next) {
        pages.entry_of(limits.xids.next).div_ceil(PER_BYTE)
    } else {
        usize::MAX
    };
    let Some(bytes) = pages.page(page) else {
        return Before::Unknown;
    };
    let mut begin = None;
    let used = bytes.get(..used.min(bytes.len())).unwrap_or_default();
    for (number, sector) in used.chunks(SECTOR_BYTES).enumerate() {
        let zeroed = sector.iter().all(|byte| *byte == 0);
        if zeroed && begin.is_none() && before != Before::Unknown {
            begin = Some(number * SECTOR_BYTES);
        }
        if !zeroed {
            tell(
                begin.take(),
                number * SECTOR_BYTES,
                &place,
                (first_on_page, sessions),
                out,
            );
        }
        let last = sector.len() * PER_BYTE;
        let status = last
            .checked_sub(1)
            .and_then(|last| xact_status(sector, last));
        before = match status {
            _ if begin.is_some() => Before::Zeros,
            Some(1..) => Before::Known,
            _ => Before::Unknown,
        };
    }
    tell(begin, used.len(), &place, (first_on_page, sessions), out);
    before
}

fn tell(
    begin: Option<usize>,
    end: usize,
    place: &pgclinic_model::document::Place,
    (first_on_page, sessions): (Option<u32>, u64),
    out: &mut Findings,
) {
    let (Some(begin), Some(first)) = (begin, first_on_page) else {
        return;
    };
    let number = |at: usize| u64::from(first) + (at * PER_BYTE) as u64;
    let (from, to) = (number(begin), number(end) - 1);
    if from > 0 && to - from < sessions {
        return;
    }
    let message = format!(
        "the status of transactions {from} to {to} is all 0, and {begin} is where a sector begins"
    );
    let draft = Draft::new(&SLRU_FILE_ZEROED, message)
        .bytes(begin, end)
        .fact("first_transaction", from)
        .fact("last_transaction", to);
    out.add(draft.place(place.clone()));
}
