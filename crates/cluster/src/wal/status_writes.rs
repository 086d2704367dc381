//! What records write to the status logs, entry by entry.
//!
//! Truth: `xact_redo_commit`, `xact_redo_abort` in `src/backend/access/transam/xact.c`, and the
//! redo functions of `clog.c`, `multixact.c` and `commit_ts.c` beside it.

use pgclinic_format::slru::{COMMIT_TS_BYTES, GROUP_BYTES, GROUP_MEMBERS};
use pgclinic_format::wal::{Ended, Event, Outcome, Record};
use pgclinic_format::{MultiXactId, StatusLog, Xid};

/// Where the members stand in `xl_multixact_create`, 8 bytes each.
const MEMBERS_AT: usize = 12;
/// The largest entry is that of a commit time stamp.
const ENTRY_BYTES_MAX: usize = 10;

/// One change of a page of a status log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StatusWrite {
    pub(super) log: StatusLog,
    /// Counted through all files of the log.
    pub(super) page: u64,
    pub(super) what: Written,
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// The page is made: all of it is zero.
    Zeros,
    /// Some bytes of it; of each of them the bits of `mask`.
    Bytes {
        at: usize,
        bytes: [u8; ENTRY_BYTES_MAX],
        len: usize,
        mask: u8,
    },
}

impl Written {
    fn bytes(at: u64, own: &[u8], mask: u8) -> Self {
        let mut bytes = [0; ENTRY_BYTES_MAX];
        let len = own.len().min(ENTRY_BYTES_MAX);
        let copied = bytes.iter_mut().zip(own);
        copied.for_each(|(to, from)| *to = *from);
        Written::Bytes {
            at: usize::try_from(at).unwrap_or(usize::MAX),
            bytes,
            len,
            mask,
        }
    }

    /// Writes to a page.
    pub(super) fn apply(&self, page: &mut [u8]) {
        match self {
            Written::Zeros => page.fill(0),
            Written::Bytes {
                at,
                bytes,
                len,
                mask,
            } => {
                let place = page.get_mut(*at..).unwrap_or_default();
                for (to, from) in place.iter_mut().zip(bytes).take(*len) {
                    *to = *to & !mask | from & mask;
                }
            }
        }
    }

    /// Sets the bits that are written.
    pub(super) fn mark(&self, known: &mut [u8]) {
        match self {
            Written::Zeros => known.fill(0xFF),
            Written::Bytes { at, len, mask, .. } => {
                let place = known.get_mut(*at..).unwrap_or_default();
                place.iter_mut().take(*len).for_each(|byte| *byte |= mask);
            }
        }
    }
}

/// Calls `each` with every change that a record makes, in the order in which recovery makes them.
/// Time stamps are written whether the cluster keeps them or not.
pub(super) fn for_each_status_write(
    record: &Record<'_>,
    event: &Event<'_>,
    page_bytes: u64,
    each: &mut dyn FnMut(StatusWrite),
) {
    let zeros = |log, page| StatusWrite {
        log,
        page,
        what: Written::Zeros,
    };
    match event {
        Event::XactPage(page) => each(zeros(StatusLog::Xact, *page)),
        Event::OffsetsPage(page) => each(zeros(StatusLog::MultiOffsets, *page)),
        Event::MembersPage(page) => each(zeros(StatusLog::MultiMembers, *page)),
        Event::CommitTsPage(page) => each(zeros(StatusLog::CommitTs, *page)),
        Event::Ended(ended) if ended.outcome != Outcome::Prepared => {
            let xids = std::iter::once(ended.xid).chain(ended.subxids());
            for xid in xids {
                each(status_of(xid, ended.outcome, page_bytes));
                each_time(record, (ended, xid), page_bytes, each);
            }
        }
        Event::MultiXact {
            multi,
            offset,
            count,
            ..
        } => {
            each(offset_of(*multi, *offset, page_bytes));
            // Member 0 is never given out.
            let behind = offset.wrapping_add(*count).max(1);
            each(offset_of(multi.next(), behind, page_bytes));
            let members = record.main.get(MEMBERS_AT..).unwrap_or_default();
            let (members, _) = members.as_chunks::<8>();
            for ([a, b, c, d, status, ..], index) in members.iter().zip(0..*count) {
                let number = offset.wrapping_add(index);
                let group = u64::from(number) / GROUP_MEMBERS;
                let within = u64::from(number) % GROUP_MEMBERS;
                let log = StatusLog::MultiMembers;
                let page = log.page_of(number, page_bytes);
                let groups = (page_bytes / GROUP_BYTES).max(1);
                let start = group % groups * GROUP_BYTES;
                for what in [
                    Written::bytes(start + within, &[*status], 0xFF),
                    Written::bytes(start + GROUP_MEMBERS + within * 4, &[*a, *b, *c, *d], 0xFF),
                ] {
                    each(StatusWrite { log, page, what });
                }
            }
        }
        _ => {}
    }
}

fn status_of(xid: Xid, outcome: Outcome, page_bytes: u64) -> StatusWrite {
    let bits: u8 = if outcome == Outcome::Committed { 1 } else { 2 };
    let log = StatusLog::Xact;
    let entry = log.entry_of(xid.0, page_bytes);
    let shift = (entry % 4) * 2;
    StatusWrite {
        log,
        page: log.page_of(xid.0, page_bytes),
        what: Written::bytes(entry / 4, &[bits << shift], 3 << shift),
    }
}

/// The time at which a transaction committed, by the clock of the server where that was.
fn each_time(
    record: &Record<'_>,
    (ended, xid): (&Ended<'_>, Xid),
    page_bytes: u64,
    each: &mut dyn FnMut(StatusWrite),
) {
    let committed = ended.outcome == Outcome::Committed;
    let time = ended.at_origin.or(ended.at).filter(|_| committed);
    let Some(time) = time else { return };
    let origin = record.origin.unwrap_or(0);
    let mut bytes = [0; ENTRY_BYTES_MAX];
    let parts = time.to_le_bytes().into_iter().chain(origin.to_le_bytes());
    bytes
        .iter_mut()
        .zip(parts)
        .for_each(|(to, from)| *to = from);
    let log = StatusLog::CommitTs;
    each(StatusWrite {
        log,
        page: log.page_of(xid.0, page_bytes),
        what: Written::bytes(
            log.entry_of(xid.0, page_bytes) * COMMIT_TS_BYTES,
            &bytes,
            0xFF,
        ),
    });
}

fn offset_of(multi: MultiXactId, offset: u32, page_bytes: u64) -> StatusWrite {
    let log = StatusLog::MultiOffsets;
    StatusWrite {
        log,
        page: log.page_of(multi.0, page_bytes),
        what: Written::bytes(
            log.entry_of(multi.0, page_bytes) * 4,
            &offset.to_le_bytes(),
            0xFF,
        ),
    }
}
