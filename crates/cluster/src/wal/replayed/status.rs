//! `pg_xact`, `pg_multixact` and relation maps as recovery writes them.
//!
//! Truth: `src/backend/access/transam/{xact,clog,multixact}.c`,
//! `src/backend/utils/cache/relmapper.c`.

use pgclinic_format::wal::Record;
use pgclinic_format::{MultiXactId, Xid};

use super::Replayer;
use crate::file_name::directory_of;
use crate::transaction_log::PAGES_PER_FILE;
use crate::wal::replay::relation_map_in;

/// `XLOG_MULTIXACT_CREATE_ID`.
const CREATE: u8 = 0x20;
const MEMBERS_AT: usize = 12;
const GROUP_MEMBERS: u64 = 4;
const GROUP_BYTES: u64 = 20;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Replayer<'_> {
    /// A page of zeros.
    pub(super) fn status_page(&mut self, folder: &str, page: u64) {
        let (path, number) = status_place(folder, page);
        let zeros = vec![0; usize::try_from(self.changed.page_bytes).unwrap_or(8192)];
        // What cannot be kept is remembered as the failure of the whole.
        let _kept = self.changed.put(self.source, &path, number, zeros);
    }

    /// A page to write to; made where it is not there, as the server's recovery does.
    fn status_bytes(&mut self, folder: &str, page: u64) -> Option<&mut Vec<u8>> {
        let (path, number) = status_place(folder, page);
        let is_there = self
            .changed
            .page(self.source, &path, number)
            .ok()?
            .is_some();
        if !is_there {
            self.status_page(folder, page);
        }
        self.changed.page(self.source, &path, number).ok()?
    }

    pub(super) fn set_status(&mut self, xid: Xid, committed: bool) {
        let per_page = self.changed.page_bytes * 4;
        let (page, within) = (u64::from(xid.0) / per_page, u64::from(xid.0) % per_page);
        let bits: u8 = if committed { 1 } else { 2 };
        let shift = (within % 4) * 2;
        let Some(bytes) = self.status_bytes("pg_xact", page) else {
            return;
        };
        let at = usize::try_from(within / 4).unwrap_or(usize::MAX);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *byte & !(3 << shift) | bits << shift;
        }
    }

    pub(super) fn multixact(&mut self, record: &Record<'_>) {
        if record.header.operation() != CREATE {
            return;
        }
        let main = record.main;
        let (Some(multi), Some(offset), Some(count)) =
            (u32_at(main, 0), u32_at(main, 4), u32_at(main, 8))
        else {
            return;
        };
        let multi = MultiXactId(multi);
        self.put_offset(multi, offset);
        self.put_offset(multi.next(), offset.wrapping_add(count));
        let (members, _) = main.get(MEMBERS_AT..).unwrap_or_default().as_chunks::<8>();
        for (member, index) in members.iter().zip(0..count) {
            if let (Some(xid), Some(status)) = (u32_at(member, 0), member.get(4)) {
                self.put_member(offset.wrapping_add(index), xid, *status);
            }
        }
    }

    fn put_offset(&mut self, multi: MultiXactId, offset: u32) {
        let per_page = self.changed.page_bytes / 4;
        let number = u64::from(multi.0);
        let Some(bytes) = self.status_bytes("pg_multixact/offsets", number / per_page) else {
            return;
        };
        let at = usize::try_from(number % per_page * 4).unwrap_or(usize::MAX);
        pgclinic_format::build::put_u32(bytes, at, offset);
    }

    fn put_member(&mut self, member: u32, xid: u32, status: u8) {
        let per_page = self.changed.page_bytes / GROUP_BYTES;
        let group = u64::from(member) / GROUP_MEMBERS;
        let Some(bytes) = self.status_bytes("pg_multixact/members", group / per_page) else {
            return;
        };
        let start = usize::try_from(group % per_page * GROUP_BYTES).unwrap_or(usize::MAX);
        let index = usize::try_from(u64::from(member) % GROUP_MEMBERS).unwrap_or(0);
        if let Some(flags) = bytes.get_mut(start.saturating_add(index)) {
            *flags = status;
        }
        let at = start.saturating_add(4 + index * 4);
        pgclinic_format::build::put_u32(bytes, at, xid);
    }

    /// The whole map of a database stands in the record.
    pub(super) fn relation_map(&mut self, record: &Record<'_>) {
        let main = record.main;
        let (Some(database), Some(tablespace), Some(map)) =
            (u32_at(main, 0), u32_at(main, 4), relation_map_in(record))
        else {
            return;
        };
        let folder = match database {
            0 => "global".to_owned(),
            _ => directory_of(self.cluster.layout, tablespace, database),
        };
        let path = format!("{folder}/pg_filenode.map");
        let mut page = map.to_vec();
        page.resize(usize::try_from(self.changed.page_bytes).unwrap_or(8192), 0);
        let len = map.len() as u64;
        let _kept = self.changed.put(self.source, &path, 0, page);
        self.changed.file(self.source, &path).len = Some(len);
    }
}

/// File and number in it of a page of a status log.
fn status_place(folder: &str, page: u64) -> (String, u32) {
    let path = format!("{folder}/{:04X}", page / PAGES_PER_FILE);
    (path, u32::try_from(page % PAGES_PER_FILE).unwrap_or(0))
}
