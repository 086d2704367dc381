//! `pg_xact`: two bits a transaction, and whether it committed.
//!
//! Truth: `src/backend/access/transam/clog.c`, `slru.c`.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use pgclinic_format::Xid;
use pgclinic_source::{Presence, Source};

/// Pages in one file of an SLRU.
pub(crate) const PAGES_PER_FILE: u64 = 32;
/// Transactions in a byte of `pg_xact`.
pub(crate) const XIDS_PER_BYTE: u64 = 4;
/// Pages kept in memory.
const KEPT_PAGES: usize = 256;

/// What became of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XactStatus {
    /// Still running when the server stopped: never committed.
    InProgress,
    /// Committed.
    Committed,
    /// Rolled back.
    Aborted,
    /// A subtransaction whose parent has not committed.
    SubCommitted,
}

/// Reads single pages of an SLRU folder and keeps some.
pub(crate) struct SlruPages {
    source: Arc<dyn Source>,
    folder: &'static str,
    page_bytes: usize,
    kept: Mutex<HashMap<u64, Option<Arc<[u8]>>>>,
}

impl SlruPages {
    pub(crate) fn new(source: Arc<dyn Source>, folder: &'static str, page_bytes: usize) -> Self {
        SlruPages {
            source,
            folder,
            page_bytes,
            kept: Mutex::default(),
        }
    }

    /// A page by its number, or nothing when the file is missing, short or unreadable.
    pub(crate) fn page(&self, number: u64) -> Option<Arc<[u8]>> {
        let mut kept = self
            .kept
            .lock()
            .expect("no thread panics while it holds this lock");
        if let Some(page) = kept.get(&number) {
            return page.clone();
        }
        let page = self.read(number);
        if kept.len() >= KEPT_PAGES {
            kept.clear();
        }
        kept.insert(number, page.clone());
        page
    }

    fn read(&self, number: u64) -> Option<Arc<[u8]>> {
        let path = format!("{}/{:04X}", self.folder, number / PAGES_PER_FILE);
        let offset = (number % PAGES_PER_FILE) * self.page_bytes as u64;
        let mut page = vec![0; self.page_bytes];
        let read = self.source.read_at(&path, offset, &mut page).ok()?;
        (read == self.page_bytes).then(|| page.into())
    }
}

/// The commit log of a cluster.
pub struct TransactionLog {
    pages: SlruPages,
    per_page: u64,
    next: Option<Xid>,
    prepared: OnceLock<HashSet<Xid>>,
    /// First and last numbers of transactions whose status was lost: zeros stand there.
    lost: OnceLock<Vec<(u64, u64)>>,
}

impl TransactionLog {
    /// Reads from `pg_xact` as it is asked. Transactions from `next` on never committed.
    pub(crate) fn new(source: Arc<dyn Source>, page_bytes: usize, next: Option<Xid>) -> Self {
        let pages = SlruPages::new(source, "pg_xact", page_bytes);
        TransactionLog {
            pages,
            per_page: page_bytes as u64 * 4,
            next,
            prepared: OnceLock::new(),
            lost: OnceLock::new(),
        }
    }

    /// Zeros are no status of transactions from the first to the last number of each range. Only
    /// what is said first counts.
    pub(crate) fn lose(&self, ranges: Vec<(u64, u64)>) {
        let _said_before = self.lost.set(ranges);
    }

    /// What zeros mean, where some were lost.
    #[inline]
    fn unless_lost(&self, xid: Xid, status: Option<XactStatus>) -> Option<XactStatus> {
        let ranges = self.lost.get().filter(|ranges| !ranges.is_empty());
        let Some(ranges) = ranges.filter(|_| status == Some(XactStatus::InProgress)) else {
            return status;
        };
        let number = u64::from(xid.0);
        let is_lost = ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&number));
        status.filter(|_| !is_lost || self.is_prepared(xid))
    }

    /// Its folder is not there.
    pub fn is_absent(&self) -> bool {
        Presence::of_directory(self.pages.source.as_ref(), self.pages.folder).is_missing()
    }

    /// What became of `xid`; nothing when the log does not tell.
    pub fn status(&self, xid: Xid) -> Option<XactStatus> {
        if let Some(status) = self.without_log(xid) {
            return Some(status);
        }
        let number = u64::from(xid.0);
        let page = self.pages.page(number / self.per_page)?;
        self.unless_lost(xid, status_on(&page, number % self.per_page))
    }

    /// What needs no look at the log.
    #[inline]
    fn without_log(&self, xid: Xid) -> Option<XactStatus> {
        reserved_status(xid).or_else(|| self.is_future(xid).then_some(XactStatus::InProgress))
    }

    /// The transaction was prepared for a commit in two phases and is still open. Its
    /// subtransactions are not known.
    pub fn is_prepared(&self, xid: Xid) -> bool {
        let prepared = self.prepared.get_or_init(|| {
            let entries = self.pages.source.list("pg_twophase").unwrap_or_default();
            let names = entries.iter().map(|entry| entry.name.as_str());
            names.filter_map(prepared_xid).collect()
        });
        prepared.contains(&xid)
    }

    /// The number has not been given to a transaction, as far as the control file can be trusted.
    #[inline]
    pub fn is_future(&self, xid: Xid) -> bool {
        xid.is_normal() && self.next.is_some_and(|next| !xid.precedes(next))
    }

    /// For one thread that asks for the status of row after row.
    pub fn reader(&self) -> LogReader<'_> {
        LogReader {
            log: self,
            kept: RefCell::default(),
        }
    }

    /// The file that holds the status of `xid`, from the root of the data directory.
    pub fn file_of(&self, xid: Xid) -> String {
        format!(
            "pg_xact/{:04X}",
            u64::from(xid.0) / self.per_page / PAGES_PER_FILE
        )
    }
}

/// What became of the numbers that no transaction is given.
#[inline]
pub(crate) fn reserved_status(xid: Xid) -> Option<XactStatus> {
    match xid {
        Xid::INVALID => Some(XactStatus::Aborted),
        _ => (!xid.is_normal()).then_some(XactStatus::Committed),
    }
}

/// The status at a position of a page.
#[inline]
fn status_on(page: &[u8], within: u64) -> Option<XactStatus> {
    let within = usize::try_from(within).ok()?;
    Some(match page.get(within / 4)? >> ((within % 4) * 2) & 3 {
        0 => XactStatus::InProgress,
        1 => XactStatus::Committed,
        2 => XactStatus::Aborted,
        _ => XactStatus::SubCommitted,
    })
}

/// The file of a prepared transaction is named by its number, from 17 on behind the epoch.
fn prepared_xid(name: &str) -> Option<Xid> {
    let digits = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = name
        .len()
        .checked_sub(8)
        .filter(|at| digits && matches!(at, 0 | 8))?;
    u32::from_str_radix(name.get(number..)?, 16).ok().map(Xid)
}

/// Pages that a [`LogReader`] keeps, by the last digits of their numbers.
const READER_PAGES: usize = 16;

/// Number and bytes of a page of the log.
type KeptPage = (u64, Arc<[u8]>);

/// Reads the log without asking for a lock where the page is the one of a moment ago.
pub struct LogReader<'a> {
    log: &'a TransactionLog,
    kept: RefCell<[Option<KeptPage>; READER_PAGES]>,
}

impl LogReader<'_> {
    /// As [`TransactionLog::is_future`].
    #[inline]
    pub fn is_future(&self, xid: Xid) -> bool {
        self.log.is_future(xid)
    }

    /// As [`TransactionLog::status`].
    #[inline]
    pub fn status(&self, xid: Xid) -> Option<XactStatus> {
        if let Some(status) = self.log.without_log(xid) {
            return Some(status);
        }
        let number = u64::from(xid.0);
        let (page, within) = (number / self.log.per_page, number % self.log.per_page);
        let mut kept = self.kept.borrow_mut();
        let slot = kept.get_mut(usize::try_from(page).ok()? % READER_PAGES)?;
        if let Some((_, bytes)) = slot.as_ref().filter(|(of, _)| *of == page) {
            return self.log.unless_lost(xid, status_on(bytes, within));
        }
        let bytes = self.log.pages.page(page)?;
        let status = status_on(&bytes, within);
        *slot = Some((page, bytes));
        self.log.unless_lost(xid, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_transactions_are_named_by_their_numbers() {
        assert_eq!(prepared_xid("000002EF"), Some(Xid(751)));
        assert_eq!(prepared_xid("00000001000002EF"), Some(Xid(751)));
        assert_eq!(prepared_xid("000002EG"), None);
        assert_eq!(prepared_xid("2EF"), None);
    }
}
