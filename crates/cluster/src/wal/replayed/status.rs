//! `pg_xact`, `pg_multixact` and relation maps as recovery writes them.
//!
//! Truth: `src/backend/access/transam/slru.c`, `src/backend/utils/cache/relmapper.c`.

use pgclinic_format::StatusLog;
use pgclinic_format::wal::{Event, Record};

use super::Replayer;
use crate::file_name::directory_of;
use crate::transaction_log::PAGES_PER_FILE;
use crate::wal::replay::relation_map_in;
use crate::wal::status_writes::{Written, for_each_status_write};

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Replayer<'_> {
    /// A page of zeros.
    fn status_page(&mut self, folder: &str, page: u64) {
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

    /// What a record says of transactions and multixacts.
    pub(super) fn status(&mut self, record: &Record<'_>, event: &Event<'_>) {
        let page_bytes = self.changed.page_bytes;
        for_each_status_write(record, event, page_bytes, &mut |write| {
            let folder = write.log.folder();
            match (write.log, write.what) {
                // What becomes of time stamps is not followed: they may be turned off.
                (StatusLog::CommitTs, _) => {}
                (_, Written::Zeros) => self.status_page(folder, write.page),
                (_, what) => {
                    if let Some(bytes) = self.status_bytes(folder, write.page) {
                        what.apply(bytes);
                    }
                }
            }
        });
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
