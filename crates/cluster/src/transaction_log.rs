//! `pg_xact`: two bits a transaction, and whether it committed.
//!
//! Truth: `src/backend/access/transam/clog.c`, `slru.c`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pgclinic_format::Xid;
use pgclinic_source::Source;

/// Pages in one file of an SLRU.
pub(crate) const PAGES_PER_FILE: u64 = 32;
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
}

impl TransactionLog {
    /// Reads from `pg_xact` as it is asked. Transactions from `next` on never committed.
    pub(crate) fn new(source: Arc<dyn Source>, page_bytes: usize, next: Option<Xid>) -> Self {
        let pages = SlruPages::new(source, "pg_xact", page_bytes);
        TransactionLog {
            pages,
            per_page: page_bytes as u64 * 4,
            next,
        }
    }

    /// What became of `xid`; nothing when the log does not tell.
    pub fn status(&self, xid: Xid) -> Option<XactStatus> {
        if !xid.is_normal() {
            return Some(if xid == Xid::INVALID {
                XactStatus::Aborted
            } else {
                XactStatus::Committed
            });
        }
        if self.next.is_some_and(|next| !xid.precedes(next)) {
            return Some(XactStatus::InProgress);
        }
        let number = u64::from(xid.0);
        let page = self.pages.page(number / self.per_page)?;
        let within = usize::try_from(number % self.per_page).ok()?;
        let bits = page.get(within / 4)? >> ((within % 4) * 2) & 3;
        Some(match bits {
            0 => XactStatus::InProgress,
            1 => XactStatus::Committed,
            2 => XactStatus::Aborted,
            _ => XactStatus::SubCommitted,
        })
    }

    /// The file that holds the status of `xid`, from the root of the data directory.
    pub fn file_of(&self, xid: Xid) -> String {
        format!(
            "pg_xact/{:04X}",
            u64::from(xid.0) / self.per_page / PAGES_PER_FILE
        )
    }
}
