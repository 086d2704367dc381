//! Any bytes as the data of heap records, applied to any bytes as a page: nothing panics, and a
//! page keeps its size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Lsn;
use pgclinic_format::wal::Record;
use pgclinic_format::wal::build::sealed;
use pgclinic_format::wal::redo::{OldRow, apply, deed};

const PAGE_BYTES: usize = 1024;
/// Managers of heap records.
const MANAGERS: [u8; 2] = [9, 10];

/// The body of a record with two blocks of one relation, whose data and main data are these.
fn body(data: &[u8], second: &[u8], main: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes();
    let mut body = vec![0, 0x20];
    body.extend(length(data));
    body.extend([[1u8, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0], [4, 0, 0, 0]].concat());
    body.extend([1, 0xA0]);
    body.extend(length(second));
    body.extend([5, 0, 0, 0]);
    body.extend([255, u8::try_from(main.len()).unwrap_or(u8::MAX)]);
    [&body, data, second, main].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([first, info, cut, main], rest)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let major = 13 + u16::from(first % 6);
    let (page, rest) = rest.split_at(rest.len().min(PAGE_BYTES));
    let (main, rest) = rest.split_at(rest.len().min(usize::from(*main)));
    let rest = rest
        .get(..rest.len().min(usize::from(u16::MAX)))
        .unwrap_or_default();
    let (data, second) = rest.split_at(rest.len().min(usize::from(*cut) * 4));
    let manager = MANAGERS[usize::from(first / 6 % 2)];
    let record = sealed(manager, *info, 7, Lsn(0), &body(data, second, main));
    let Ok(record) = Record::parse(&record, (Lsn(0), Lsn(8)), (major, 8192)) else {
        return;
    };
    let mut page = page.to_vec();
    page.resize(PAGE_BYTES, 0);
    let mut old = OldRow::default();
    for id in [1, 0, 1] {
        let _ = deed(&record, id);
        let _ = apply(&record, major, id, &mut page, &mut old);
        assert_eq!(page.len(), PAGE_BYTES);
    }
});
