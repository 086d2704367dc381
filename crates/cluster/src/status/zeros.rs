//! Zeros where `pg_xact` must say what became of transactions.
//!
//! A transaction that a crash ended keeps the status 0, and it may have had thousands of
//! subtransactions; `pg_resetwal -x` leaves numbers out. Neither begins where a sector of a disk
//! begins, with a transaction of known end just before it. By chance the last transactions before a
//! crash may begin there, one of each session and no more.

use pgclinic_format::StatusLog;
use pgclinic_format::slru::xact_status;
use pgclinic_model::document::Place;

use crate::Cluster;

use super::limits::{StatusLimits, limits_of_checkpoint, status_limits};
use super::pages::StatusPages;

/// Bytes of the smallest piece that disks and file systems lose.
const SECTOR_BYTES: usize = 512;
/// Transactions in a byte.
const PER_BYTE: usize = 4;

/// Transactions without a status that must have one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZeroedStatus {
    /// The page of the log.
    pub place: Place,
    /// Half-open offsets on the page.
    pub bytes: [usize; 2],
    /// The first transaction.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// Sectors of `pg_xact` that were zeroed. In a cluster that crashed these are asked of the
/// transactions that had ended when the last checkpoint began: that wrote what became of them.
pub fn zeroed_status(cluster: &Cluster) -> Vec<ZeroedStatus> {
    let settled = status_limits(cluster).filter(|limits| limits.settled);
    let mut found = settled.map_or_else(Vec::new, |limits| below(cluster, &limits));
    if found.is_empty() && cluster.needs_recovery() {
        let limits = limits_of_checkpoint(cluster);
        found = limits.map_or_else(Vec::new, |limits| below(cluster, &limits));
    }
    found
}

/// From now on nothing is known of transactions whose status was zeroed, for all who ask this
/// cluster: their rows are neither committed nor rolled back.
pub fn forget_zeroed_status(cluster: &Cluster) {
    // The byte of the last ones may hold later ones too, so that nobody was accused of it.
    let next = limits_of_checkpoint(cluster).map_or(0, |limits| u64::from(limits.xids.next));
    let range = |own: ZeroedStatus| {
        let is_at_end = own.last < next && next - own.last <= 2 * PER_BYTE as u64;
        let last = if is_at_end { next - 1 } else { own.last };
        (own.first, last)
    };
    let ranges = zeroed_status(cluster).into_iter().map(range);
    cluster.transactions.lose(ranges.collect());
}

fn below(cluster: &Cluster, limits: &StatusLimits) -> Vec<ZeroedStatus> {
    let mut found = Vec::new();
    let Ok(mut pages) = StatusPages::open(cluster, StatusLog::Xact) else {
        return found;
    };
    let Some(first) = limits.xids.first else {
        return found;
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
        let on_page = OnPage {
            place: pages.place(page),
            first: pages.first_on(page),
            used: used_bytes(&pages, page, limits),
            sessions,
        };
        before = pages.page(page).map_or(Before::Unknown, |bytes| {
            on_page.look(bytes, before, &mut found)
        });
    }
    found
}

/// Transactions that can be under way at one time, as the server last ran.
fn sessions_at_most(cluster: &Cluster) -> u64 {
    // Whatever the file says, a sector of zeros is a loss.
    let less_than_a_sector = (SECTOR_BYTES * PER_BYTE) as u64 - 1;
    let Some(control) = cluster.control.trusted() else {
        return 0;
    };
    let counts = [
        control.max_connections,
        control.max_worker_processes,
        control.max_prepared_transactions,
    ];
    let sum = counts.into_iter().map(u64::from).sum::<u64>();
    sum.min(less_than_a_sector)
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

/// Bytes of a page that hold the status of transactions that were given out.
fn used_bytes(pages: &StatusPages<'_>, page: u64, limits: &StatusLimits) -> usize {
    let next = limits.xids.next;
    if page != pages.page_of(next) {
        return usize::MAX;
    }
    // Where later transactions have ended since, the last byte may hold some of theirs.
    let of_later = usize::from(!limits.settled);
    pages
        .entry_of(next)
        .div_ceil(PER_BYTE)
        .saturating_sub(of_later)
}

/// What is known of a page besides its bytes.
struct OnPage {
    place: Place,
    /// The first transaction whose status stands on it.
    first: Option<u32>,
    used: usize,
    /// So many transactions may have no status at the end.
    sessions: u64,
}

impl OnPage {
    /// Tells of zeros on it; the answer is what stands before the next one.
    fn look(&self, bytes: &[u8], mut before: Before, out: &mut Vec<ZeroedStatus>) -> Before {
        let mut begin = None;
        let used = bytes.get(..self.used.min(bytes.len())).unwrap_or_default();
        for (number, sector) in used.chunks(SECTOR_BYTES).enumerate() {
            let zeroed = sector.iter().all(|byte| *byte == 0);
            if zeroed && begin.is_none() && before != Before::Unknown {
                begin = Some(number * SECTOR_BYTES);
            }
            if !zeroed {
                self.tell(begin.take(), number * SECTOR_BYTES, out);
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
        self.tell(begin, used.len(), out);
        before
    }

    fn tell(&self, begin: Option<usize>, end: usize, out: &mut Vec<ZeroedStatus>) {
        let (Some(begin), Some(first)) = (begin, self.first) else {
            return;
        };
        let number = |at: usize| u64::from(first) + (at * PER_BYTE) as u64;
        let (from, to) = (number(begin), number(end).saturating_sub(1));
        if from > 0 && to.saturating_sub(from) < self.sessions {
            return;
        }
        out.push(ZeroedStatus {
            place: self.place.clone(),
            bytes: [begin, end],
            first: from,
            last: to,
        });
    }
}
