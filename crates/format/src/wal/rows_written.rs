//! How many rows of which table a record writes.
//!
//! ```text
//! insert, update   one row, which stands on block 0
//! multi insert     main data: | flags u8 | - | ntuples u16 | offnum u16 … |
//! delete           main data: | xmax u32 | offnum u16 | infobits u8 | flags u8 |
//! ```
//!
//! Truth: `src/include/access/heapam_xlog.h`.

use crate::bytes::u16_at;
use crate::wal::block::FileNumber;
use crate::wal::record::Record;
use crate::wal::redo::{DELETE_SUPER, HEAP, HEAP2, OPERATION};

/// Where the flags of a delete stand.
const DELETE_FLAGS_AT: usize = 7;

/// What a record does to the rows of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowsWritten {
    /// So many are new.
    Inserted(u16),
    /// One has a new version.
    Updated {
        /// On the same page, without new index entries.
        is_hot: bool,
    },
    /// One is deleted, also by an update that moves it to another partition.
    Deleted,
}

impl RowsWritten {
    /// What the record does, and to the rows of which files. Nothing for locks, pruning, freezing
    /// and whatever else leaves the rows as they are; nothing for an insert that ON CONFLICT takes
    /// back.
    pub fn of(record: &Record<'_>) -> Option<(FileNumber, Self)> {
        let header = record.header;
        let rows = match (header.manager, header.info & OPERATION) {
            (HEAP, 0x00) => RowsWritten::Inserted(1),
            (HEAP2, 0x50) => RowsWritten::Inserted(u16_at(record.main, 2)?),
            (HEAP, 0x20) => RowsWritten::Updated { is_hot: false },
            (HEAP, 0x40) => RowsWritten::Updated { is_hot: true },
            (HEAP, 0x10) => {
                let flags = *record.main.get(DELETE_FLAGS_AT)?;
                (flags & DELETE_SUPER == 0).then_some(RowsWritten::Deleted)?
            }
            _ => return None,
        };
        let block = record.blocks.first()?;
        Some((block.file, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Lsn;
    use crate::wal::build::{main_data, sealed};

    /// What a record of this main data does to block 7 of a table.
    fn written(manager: u8, info: u8, main: &[u8]) -> Option<RowsWritten> {
        let mut body = vec![0, 0, 0, 0];
        for number in [1663_u32, 5, 16_384, 7] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&main_data(main));
        let bytes = sealed(manager, info, 9, Lsn(0), &body);
        let record = Record::parse(&bytes, (Lsn(8), Lsn(80)), (18, 8192)).expect("a record");
        let (file, rows) = RowsWritten::of(&record)?;
        assert_eq!((file.database, file.filenode), (5, 16_384));
        Some(rows)
    }

    #[test]
    fn rows_are_counted_by_what_is_done_to_them() {
        let new_page = 0x80;
        assert_eq!(
            written(HEAP, new_page, &[1, 0, 0]),
            Some(RowsWritten::Inserted(1))
        );
        assert_eq!(
            written(HEAP2, 0x50 | new_page, &[0, 0, 61, 0]),
            Some(RowsWritten::Inserted(61))
        );
        let update = |info| written(HEAP, info, &[0; 14]);
        assert_eq!(update(0x20), Some(RowsWritten::Updated { is_hot: false }));
        assert_eq!(update(0x40), Some(RowsWritten::Updated { is_hot: true }));
        assert_eq!(
            written(HEAP, 0x10, &[9, 0, 0, 0, 1, 0, 0, 0]),
            Some(RowsWritten::Deleted)
        );
    }

    #[test]
    fn what_leaves_rows_as_they_are_counts_nothing() {
        let taken_back = [9, 0, 0, 0, 1, 0, 0, DELETE_SUPER];
        assert_eq!(written(HEAP, 0x10, &taken_back), None);
        // A confirmed insert, a lock, an update in place, a pruned page, a btree.
        for (manager, info) in [
            (HEAP, 0x50),
            (HEAP, 0x60),
            (HEAP, 0x70),
            (HEAP2, 0x10),
            (11, 0x00),
        ] {
            assert_eq!(written(manager, info, &[0; 8]), None);
        }
        assert_eq!(written(HEAP2, 0x50, &[0, 0, 61]), None, "too short");
    }
}
