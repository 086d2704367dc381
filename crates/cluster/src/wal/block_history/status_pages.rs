//! Pages of the status logs (`pg_xact`, `pg_multixact`, `pg_commit_ts`): what WAL says of each
//! entry, laid over the page of a copy or over the zeros with which the page was made.
//!
//! ```text
//! page of a copy as of its redo point ─┐
//! record that made the page: zeros ────┴─► entries of later records laid over it ─► page
//! ```
//!
//! They have neither LSN nor checksum. What stands on the page of a copy besides what records say
//! of it counts as verified only by the manifest of a backup, or where two copies lead to the same
//! page.

use std::collections::HashMap;

use pgclinic_format::wal::{Event, Record, RecordHeader};
use pgclinic_format::{Lsn, StatusLog};

use super::outcome::NotProven;
use crate::wal::status_writes::{StatusWrite, Written, for_each_status_write};

const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const CLOG: u8 = 3;
const MULTIXACT: u8 = 6;
const COMMIT_TS: u8 = 18;
/// `XLOG_PARAMETER_CHANGE`.
const PARAMETER_CHANGE: u8 = 0x60;

/// A page of a status log, counted through all its files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StatusAddress {
    /// The log.
    pub log: StatusLog,
    /// The page.
    pub page: u64,
}

/// A page that is wanted, as far as WAL has given it.
pub(super) struct TrackedStatusPage {
    pub(super) address: StatusAddress,
    /// What records say.
    pub(super) bytes: Vec<u8>,
    /// The bits of it of which they say anything.
    known: Vec<u8>,
    /// The record that made the page.
    pub(super) made: Option<Lsn>,
    pub(super) applied: u64,
    pub(super) last: Option<Lsn>,
    /// Why nothing from before here counts.
    pub(super) lost: Option<(Lsn, NotProven)>,
}

/// All of them.
pub(super) struct TrackedStatus {
    pub(super) pages: Vec<TrackedStatusPage>,
    index: HashMap<StatusAddress, usize>,
    page_bytes: usize,
    major: u16,
}

impl TrackedStatus {
    pub(super) fn new(wanted: &[StatusAddress], page_bytes: usize, major: u16) -> Self {
        let mut tracked = TrackedStatus {
            pages: Vec::new(),
            index: HashMap::new(),
            page_bytes,
            major,
        };
        for address in wanted {
            let number = tracked.pages.len();
            if tracked.index.insert(*address, number).is_none() {
                tracked
                    .pages
                    .push(TrackedStatusPage::unknown(*address, page_bytes));
            }
        }
        tracked
    }

    /// A record of this kind may speak of one of them.
    pub(super) fn may_want(&self, header: RecordHeader) -> bool {
        let is_of_status = match header.manager {
            XLOG => header.operation() == PARAMETER_CHANGE,
            TRANSACTION | CLOG | MULTIXACT | COMMIT_TS => true,
            _ => false,
        };
        is_of_status && !self.pages.is_empty()
    }

    /// What a record writes to them.
    pub(super) fn take(&mut self, record: &Record<'_>) {
        let event = Event::of(record, self.major);
        let lsn = record.lsn;
        match event {
            Event::Short => {
                return self.lose(lsn, &NotProven::RecordMakesNoSense { lsn }, |_| true);
            }
            // That removes all files.
            Event::ParametersChanged {
                tracks_commit_time: false,
            } => {
                let why = NotProven::NoCommitTimes { lsn };
                return self.lose(lsn, &why, |log| log == StatusLog::CommitTs);
            }
            _ => {}
        }
        let page_bytes = self.page_bytes as u64;
        for_each_status_write(record, &event, page_bytes, &mut |write| {
            let address = StatusAddress {
                log: write.log,
                page: write.page,
            };
            let own = self.index.get(&address).copied();
            if let Some(page) = own.and_then(|number| self.pages.get_mut(number)) {
                page.write(&write, lsn);
            }
        });
    }

    /// Nothing counts from before `lsn`.
    pub(super) fn lose(&mut self, lsn: Lsn, why: &NotProven, is_hit: impl Fn(StatusLog) -> bool) {
        let pages = self.pages.iter_mut();
        for page in pages.filter(|page| is_hit(page.address.log)) {
            *page = TrackedStatusPage {
                lost: Some((lsn, why.clone())),
                ..TrackedStatusPage::unknown(page.address, self.page_bytes)
            };
        }
    }
}

impl TrackedStatusPage {
    fn unknown(address: StatusAddress, page_bytes: usize) -> Self {
        TrackedStatusPage {
            address,
            bytes: vec![0; page_bytes],
            known: vec![0; page_bytes],
            made: None,
            applied: 0,
            last: None,
            lost: None,
        }
    }

    fn write(&mut self, write: &StatusWrite, lsn: Lsn) {
        write.what.apply(&mut self.bytes);
        write.what.mark(&mut self.known);
        if write.what == Written::Zeros {
            (self.made, self.applied, self.last) = (Some(lsn), 0, None);
        } else if self.last != Some(lsn) {
            (self.applied, self.last) = (self.applied + 1, Some(lsn));
        }
    }

    /// The page of a copy with what records say laid over it.
    pub(super) fn over(&self, base: &[u8]) -> Vec<u8> {
        let own = self.bytes.iter().zip(&self.known);
        let both = base.iter().zip(own);
        both.map(|(base, (own, known))| base & !known | own & known)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: StatusAddress = StatusAddress {
        log: StatusLog::Xact,
        page: 0,
    };

    #[test]
    fn what_records_say_counts_and_the_rest_is_the_copys() {
        let mut page = TrackedStatusPage::unknown(PAGE, 4);
        let what = Written::Bytes {
            at: 1,
            bytes: [0b0100, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            len: 1,
            mask: 0b1100,
        };
        let write = |what| StatusWrite {
            log: PAGE.log,
            page: PAGE.page,
            what,
        };
        page.write(&write(what), Lsn(8));
        assert_eq!(page.over(&[0xAA; 4]), [0xAA, 0b1010_0110, 0xAA, 0xAA]);
        assert_eq!((page.made, page.applied), (None, 1));
        page.write(&write(Written::Zeros), Lsn(16));
        assert_eq!(page.over(&[0xAA; 4]), [0; 4]);
        assert_eq!((page.made, page.applied), (Some(Lsn(16)), 0));
    }
}
