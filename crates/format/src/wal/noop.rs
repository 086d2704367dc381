//! A record that does nothing in the place of another one: as long, with the same predecessor, and
//! with a checksum that is right.
//!
//! ```text
//! 0         4   8      16           17       20    24
//! | tot_len | 0 | prev | XLOG_NOOP  | 0 (XLOG) | crc | main data header | bytes as they were |
//! ```
//!
//! Truth: `xlog_redo` in `src/backend/access/transam/xlog.c`, which passes over `XLOG_NOOP`.

use crate::build::put_u32;
use crate::wal::record::{CRC_AT, HEADER_BYTES, ID_DATA_LONG, ID_DATA_SHORT, WholeRecord};

/// `XLOG_NOOP`, of the resource manager 0.
const XLOG_NOOP: u8 = 0x20;
/// `SizeOfXLogRecordDataHeaderShort`.
const SHORT_BYTES: usize = 2;
/// `SizeOfXLogRecordDataHeaderLong`.
const LONG_BYTES: usize = 5;

impl WholeRecord<'_> {
    /// The bytes that make it a record that does nothing, where they stand at its begin: its header
    /// and that of main data. Nothing for a record that has no room for them, or is so long that
    /// its bytes were not kept.
    pub fn noop(&self) -> Option<Vec<u8>> {
        let total = usize::try_from(self.header.total_bytes).ok()?;
        let body = self.bytes.get(HEADER_BYTES..total)?;
        let main = main_data_header(body.len())?;
        let mut head = self.bytes.get(..HEADER_BYTES)?.to_vec();
        put_u32(&mut head, 4, 0);
        head.get_mut(16..18)?.copy_from_slice(&[XLOG_NOOP, 0]);
        let rest = body.get(main.len()..)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&main), rest);
        let crc = crc32c::crc32c_append(crc, head.get(..CRC_AT)?);
        put_u32(&mut head, CRC_AT, crc);
        head.extend(main);
        Some(head)
    }
}

/// All of the body is main data.
fn main_data_header(body_bytes: usize) -> Option<Vec<u8>> {
    if let Ok(main) = u8::try_from(body_bytes.checked_sub(SHORT_BYTES)?) {
        return Some(vec![ID_DATA_SHORT, main]);
    }
    let main = u32::try_from(body_bytes.checked_sub(LONG_BYTES)?).ok()?;
    let mut header = vec![ID_DATA_LONG];
    header.extend(main.to_le_bytes());
    Some(header)
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;
    use crate::types::Lsn;
    use crate::wal::build::{MadePages, WalBuilder, main_data};
    use crate::wal::{Shape, WalReader};

    const HEAP: u8 = 10;

    fn wal(bodies: &[Vec<u8>]) -> (MadePages, Shape) {
        let layout = Layout::of_major(15).expect("a known major");
        let shape = Shape::new(layout, Some(7), 8192, 1 << 24, 8192).expect("a shape");
        let mut wal = WalBuilder::new(shape, Lsn(1 << 24), 1);
        for body in bodies {
            wal.record(HEAP, 0x10, 700, body);
        }
        (wal.pages(), shape)
    }

    /// Writes over the bytes at `at`, past the header of the next page where they reach it.
    fn put(pages: &mut MadePages, at: Lsn, bytes: &[u8]) {
        let mut to = usize::try_from(at.0 - pages.start.0).expect("an offset");
        for byte in bytes {
            if to.is_multiple_of(8192) {
                to += 24;
            }
            pages.bytes[to] = *byte;
            to += 1;
        }
    }

    #[test]
    fn a_record_of_any_length_does_nothing_and_leads_to_the_next_one() {
        let bodies: Vec<Vec<u8>> = [0, 1, 3, 200, 255, 256, 3000, 20_000]
            .iter()
            .map(|count: &usize| match u8::try_from(*count) {
                Ok(_) => main_data(&vec![5; *count]),
                Err(_) => {
                    let len = u32::try_from(*count).expect("short");
                    [&[254][..], &len.to_le_bytes(), &vec![5; *count]].concat()
                }
            })
            .collect();
        let (pages, shape) = wal(&bodies);
        let mut changed = pages.clone();
        let mut reader = WalReader::new(pages.clone(), shape, pages.start);
        let mut places = Vec::new();
        while let Ok(record) = reader.read_whole() {
            put(
                &mut changed,
                record.lsn,
                &record.noop().expect("it has room"),
            );
            places.push((record.lsn, record.end));
        }
        assert_eq!(places.len(), bodies.len());
        let mut reader = WalReader::new(changed, shape, pages.start);
        for place in places {
            let record = reader.read_whole().expect("a record");
            assert_eq!((record.lsn, record.end), place);
            let record = record.parse().expect("its parts add up");
            assert_eq!((record.header.manager, record.header.info), (0, 0x20));
            assert!(record.blocks.is_empty());
        }
        assert!(reader.read_whole().is_err());
    }
}
