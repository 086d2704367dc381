//! The files of `pg_xact`, `pg_multixact` and their kin: pages without header and checksum, 32 to
//! a file.
//!
//! ```text
//! pg_xact               2 bits a transaction
//! pg_multixact/offsets  4 bytes a multixact: the number of its first member
//! pg_multixact/members  groups of 4 flag bytes and 4 transactions; what is left of a page is zero
//! pg_commit_ts          8 bytes of time and 2 of origin a transaction
//! ```
//!
//! Truth: `src/backend/access/transam/{slru,clog,multixact,commit_ts,subtrans}.c`,
//! `src/backend/commands/async.c`, `src/backend/storage/lmgr/predicate.c`.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::types::Xid;

/// `SLRU_PAGES_PER_SEGMENT`: pages in a full file.
pub const PAGES_PER_SEGMENT: u64 = 32;
/// Bytes of four members: four flag bytes, four transactions.
pub const GROUP_BYTES: u64 = 20;
/// Members in a group.
pub const GROUP_MEMBERS: u64 = 4;
/// Bytes of a commit time stamp and its origin.
pub const COMMIT_TS_BYTES: u64 = 10;

/// A folder of such files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StatusLog {
    /// What became of each transaction.
    Xact,
    /// Where the members of each multixact begin.
    MultiOffsets,
    /// The members of multixacts.
    MultiMembers,
    /// When transactions committed.
    CommitTs,
    /// Parents of subtransactions; of no use after a restart.
    Subtrans,
    /// Notifications; emptied at start.
    Notify,
    /// Serializable transactions; of no use after a restart.
    Serial,
}

impl StatusLog {
    /// All of them.
    pub const ALL: [StatusLog; 7] = [
        StatusLog::Xact,
        StatusLog::MultiOffsets,
        StatusLog::MultiMembers,
        StatusLog::CommitTs,
        StatusLog::Subtrans,
        StatusLog::Notify,
        StatusLog::Serial,
    ];

    /// Its folder, from the root of the data directory.
    pub fn folder(self) -> &'static str {
        match self {
            StatusLog::Xact => "pg_xact",
            StatusLog::MultiOffsets => "pg_multixact/offsets",
            StatusLog::MultiMembers => "pg_multixact/members",
            StatusLog::CommitTs => "pg_commit_ts",
            StatusLog::Subtrans => "pg_subtrans",
            StatusLog::Notify => "pg_notify",
            StatusLog::Serial => "pg_serial",
        }
    }

    /// Its content must survive a restart.
    pub fn is_kept(self) -> bool {
        !matches!(
            self,
            StatusLog::Subtrans | StatusLog::Notify | StatusLog::Serial
        )
    }

    /// Entries on a page of so many bytes.
    pub fn entries_per_page(self, page_bytes: u64) -> u64 {
        match self {
            StatusLog::Xact => page_bytes * 4,
            StatusLog::MultiOffsets | StatusLog::Subtrans => page_bytes / 4,
            StatusLog::MultiMembers => page_bytes / GROUP_BYTES * GROUP_MEMBERS,
            StatusLog::CommitTs => page_bytes / COMMIT_TS_BYTES,
            StatusLog::Notify => page_bytes,
            StatusLog::Serial => page_bytes / 8,
        }
    }

    /// The page of a transaction, a multixact or a member; 0 for page sizes that hold nothing.
    pub fn page_of(self, number: u32, page_bytes: u64) -> u64 {
        u64::from(number)
            .checked_div(self.entries_per_page(page_bytes))
            .unwrap_or(0)
    }

    /// The place of a transaction, a multixact or a member on its page.
    pub fn entry_of(self, number: u32, page_bytes: u64) -> u64 {
        u64::from(number)
            .checked_rem(self.entries_per_page(page_bytes))
            .unwrap_or(0)
    }

    /// The page of the number 2^32 - 1, after which counting begins at 0 again.
    pub fn last_page(self, page_bytes: u64) -> u64 {
        self.page_of(u32::MAX, page_bytes)
    }

    /// Whether names have 15 digits: those of `pg_notify` since 17.
    fn has_long_names(self, major: u16) -> bool {
        self == StatusLog::Notify && major >= 17
    }

    /// The path of a file, from the root of the data directory.
    pub fn path(self, segment: u64, major: u16) -> String {
        let folder = self.folder();
        if self.has_long_names(major) {
            format!("{folder}/{segment:015X}")
        } else {
            format!("{folder}/{segment:04X}")
        }
    }

    /// The log whose file this path is, and the number of the file.
    pub fn of_path(path: &str, major: u16) -> Option<(StatusLog, u64)> {
        let (directory, name) = path.rsplit_once('/')?;
        let log = StatusLog::ALL
            .into_iter()
            .find(|log| log.folder() == directory)?;
        Some((log, log.segment_of(name, major)?))
    }

    /// The number in a file's name; nothing for names that the server passes over.
    pub fn segment_of(self, name: &str, major: u16) -> Option<u64> {
        let fits = if self.has_long_names(major) {
            name.len() == 15
        } else {
            (4..=6).contains(&name.len())
        };
        let digits = name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
        (fits && digits).then_some(())?;
        u64::from_str_radix(name, 16).ok()
    }

    /// The last number of this page was given out, so that the next page must have been made.
    /// `false` proves nothing.
    pub fn is_used_to_its_end(self, page: &[u8]) -> bool {
        let page_bytes = page.len() as u64;
        let Some(last) = self
            .entries_per_page(page_bytes)
            .checked_sub(1)
            .and_then(|last| usize::try_from(last).ok())
        else {
            return false;
        };
        match self {
            StatusLog::Xact => xact_status(page, last).is_some_and(|bits| bits != 0),
            // The last one alone may be no more than the end of the one before it.
            StatusLog::MultiOffsets => [last, last.saturating_sub(1)]
                .into_iter()
                .all(|entry| multi_offset(page, entry).is_some_and(|offset| offset != 0)),
            StatusLog::MultiMembers => member(page, last).is_some_and(|(_, xid)| xid.0 != 0),
            StatusLog::CommitTs => commit_ts(page, last).is_some_and(|(time, _)| time != 0),
            StatusLog::Subtrans | StatusLog::Notify | StatusLog::Serial => false,
        }
    }
}

/// Two bits of the transaction at `entry` of a page of `pg_xact`: 0 running, 1 committed, 2
/// aborted, 3 committed within its parent.
pub fn xact_status(page: &[u8], entry: usize) -> Option<u8> {
    Some(page.get(entry / 4)? >> ((entry % 4) * 2) & 3)
}

/// The number of the first member of the multixact at `entry` of a page of offsets; 0 when it was
/// never written.
pub fn multi_offset(page: &[u8], entry: usize) -> Option<u32> {
    u32_at(page, entry.checked_mul(4)?)
}

/// Flags and transaction of the member at `entry` of a page of members.
pub fn member(page: &[u8], entry: usize) -> Option<(u8, Xid)> {
    let group = (entry / 4).checked_mul(20)?;
    let within = entry % 4;
    let flags = *page.get(group.checked_add(within)?)?;
    let xid = u32_at(page, group.checked_add(4 + within * 4)?)?;
    Some((flags, Xid(xid)))
}

/// Microseconds since 2000 and the origin of the transaction at `entry` of a page of
/// `pg_commit_ts`; time 0 when it was never written.
pub fn commit_ts(page: &[u8], entry: usize) -> Option<(i64, u16)> {
    let at = entry.checked_mul(10)?;
    Some((
        u64_at(page, at)?.cast_signed(),
        u16_at(page, at.checked_add(8)?)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_server_takes() {
        let xact = StatusLog::Xact;
        assert_eq!(xact.segment_of("00AF", 18), Some(0xAF));
        assert_eq!(xact.segment_of("14078", 13), Some(0x14078));
        for odd in ["AF", "00af", "00AF.old", "0000000", "", "+0AF"] {
            assert_eq!(xact.segment_of(odd, 18), None, "{odd}");
        }
        let notify = StatusLog::Notify;
        assert_eq!(notify.segment_of("00000000000000A", 17), Some(10));
        assert_eq!(notify.segment_of("000A", 17), None);
        assert_eq!(notify.segment_of("000A", 16), Some(10));
        assert_eq!(xact.path(0x1F, 18), "pg_xact/001F");
        let members = (StatusLog::MultiMembers, 0x14078);
        assert_eq!(
            StatusLog::of_path("pg_multixact/members/14078", 18),
            Some(members)
        );
        assert_eq!(StatusLog::of_path("base/5/16384", 18), None);
    }

    #[test]
    fn numbers_find_their_pages() {
        let pages =
            |log: StatusLog, number| (log.page_of(number, 8192), log.entry_of(number, 8192));
        assert_eq!(pages(StatusLog::Xact, 32768 + 7), (1, 7));
        assert_eq!(pages(StatusLog::MultiOffsets, 2048), (1, 0));
        assert_eq!(pages(StatusLog::MultiMembers, 1636 * 2 + 5), (2, 5));
        assert_eq!(pages(StatusLog::CommitTs, 819), (1, 0));
        // MaxMultiXactOffset lies in segment 14078 of the members.
        assert_eq!(
            StatusLog::MultiMembers.last_page(8192) / PAGES_PER_SEGMENT,
            0x14078
        );
    }

    #[test]
    fn entries_are_read_where_the_server_writes_them() {
        let mut page = vec![0; 8192];
        page[1] = 0b10_01_00_11;
        assert_eq!(
            [4, 5, 6, 7].map(|entry| xact_status(&page, entry)),
            [Some(3), Some(0), Some(1), Some(2)]
        );
        let mut page = vec![0; 8192];
        page[20 + 2] = 5;
        page[20 + 4 + 8] = 99;
        assert_eq!(member(&page, 6), Some((5, Xid(99))));
        assert_eq!(member(&page, usize::MAX), None);
        assert_eq!(multi_offset(&page, 2048), None);
    }
}
