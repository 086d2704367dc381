//! Where reading ends, re-enacted after `src/test/recovery/t/039_end_of_wal.pl`: every way in
//! which the bytes behind the last record can look nearly right.

#![allow(
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed"
)]

use super::*;
use crate::build::{put_u16, put_u32};
use crate::layout::Layout;
use crate::wal::build::{MadePages, WalBuilder, main_data, sealed};
use crate::wal::end::EndReason;

const START: Lsn = Lsn(1 << 20);
const PAGE: usize = 8192;

fn shape() -> Shape {
    let layout = Layout::of_major(18).expect("a major");
    Shape::new(layout, Some(77), 8192, 1 << 20, 8192).expect("usual sizes")
}

fn long_body(bytes: usize) -> Vec<u8> {
    let mut body = vec![254];
    body.extend_from_slice(&(bytes as u32).to_le_bytes());
    body.extend((0..bytes).map(|at| (at % 251) as u8));
    body
}

/// Three records, the second one over several pages.
fn three() -> WalBuilder {
    let mut wal = WalBuilder::new(shape(), START, 1);
    wal.record(21, 0, 5, &main_data(b"one"));
    wal.record(21, 0, 6, &long_body(20_000));
    wal.record(21, 0, 7, &main_data(b"three"));
    wal
}

fn read_all(pages: MadePages, start: Lsn) -> (Vec<u32>, WalEnd) {
    let mut reader = WalReader::new(pages, shape(), start);
    let mut xids = Vec::new();
    loop {
        match reader.read() {
            Ok(record) => xids.push(record.header.xid.0),
            Err(end) => return (xids, end),
        }
    }
}

/// What reading says after the three records, when the bytes behind them were changed.
fn end_of(change: impl FnOnce(&mut Vec<u8>, usize)) -> String {
    let wal = three();
    let at = wal.bytes.len();
    let mut pages = wal.pages();
    pages.bytes.resize(4 * PAGE + pages.bytes.len(), 0);
    change(&mut pages.bytes, at);
    let (xids, end) = read_all(pages, START);
    assert_eq!(xids, [5, 6, 7]);
    assert_eq!(end.record.0 - START.0, at as u64);
    end.why.to_string()
}

#[test]
fn records_are_put_together_across_pages() {
    let wal = three();
    let mut reader = WalReader::new(wal.pages(), shape(), START);
    let first = reader.read().expect("one").lsn;
    assert_eq!(first, Lsn(START.0 + 40));
    let second = reader.read().expect("two");
    assert_eq!(second.main.len(), 20_000);
    assert_eq!(second.header.previous, first);
    assert_eq!(reader.read().expect("three").main, b"three");
    assert_eq!(
        reader.read().expect_err("the end").why,
        EndReason::TooShort { bytes: 0 }
    );
    assert_eq!(reader.timeline(), Some(1));
}

#[test]
fn a_segment_of_which_nothing_is_known_is_read_from_its_first_record() {
    let mut reader = WalReader::new(three().pages(), shape(), Lsn(START.0 + PAGE as u64));
    let first = reader.find_first().expect("a record");
    assert_eq!(reader.read().expect("three").main, b"three");
    assert_eq!(first.0 % 8, 0);
}

#[test]
fn lengths() {
    let length = |bytes| end_of(|wal, at| put_u32(wal, at, bytes));
    assert_eq!(length(0), "all bytes there are zero");
    assert_eq!(
        length(23),
        "a record of 23 bytes is shorter than its header"
    );
    assert_eq!(length(u32::MAX), "no record has 4294967295 bytes");
}

#[test]
fn a_header_that_is_split_by_the_end_of_a_page() {
    // Bodies that leave 8 bytes of the page for the next header.
    let mut wal = WalBuilder::new(shape(), START, 1);
    wal.record(21, 0, 5, &long_body(PAGE - 40 - 24 - 5 - 8));
    assert_eq!(wal.bytes.len(), PAGE - 8);
    let mut whole = wal.clone();
    whole.record(21, 0, 6, &main_data(b"split"));
    assert_eq!(read_all(whole.pages(), START).0, [5, 6]);
    for (length, words) in [
        (0, "all bytes there are zero"),
        (23, "a record of 23 bytes is shorter than its header"),
        (24, "the WAL page there carries magic number 0000, not D118"),
    ] {
        let mut pages = wal.clone().pages();
        pages.bytes.resize(3 * PAGE, 0);
        put_u32(&mut pages.bytes, PAGE - 8, length);
        let (xids, end) = read_all(pages, START);
        assert_eq!(
            (xids.as_slice(), end.why.to_string().as_str()),
            (&[5][..], words)
        );
    }
}

#[test]
fn links_managers_and_checksums() {
    let put =
        |record: Vec<u8>| end_of(|wal, at| wal[at..at + record.len()].copy_from_slice(&record));
    let body = main_data(b"x");
    assert_eq!(
        put(sealed(21, 0, 8, Lsn(0x10_0028), &body)),
        "it points back to 0/100028, and the record before begins at 0/104EB8"
    );
    let last = Lsn(0x10_4EB8);
    assert_eq!(
        put(sealed(99, 0, 8, last, &body)),
        "there is no resource manager 99"
    );
    let mut wrong = sealed(21, 0, 8, last, &body);
    wrong[20] ^= 1;
    assert!(put(wrong).starts_with("its stored checksum "));
    // A right checksum over parts that do not add up.
    assert_eq!(
        put(sealed(21, 0, 8, last, &[255, 9, 1])),
        "its parts are longer than the record"
    );
    assert_eq!(
        put(sealed(21, 0, 8, last, &[77, 0])),
        "a part of unknown kind 77"
    );
}

#[test]
fn the_page_behind_a_record_that_goes_on() {
    let next = 3 * PAGE;
    // The bytes are of a record that ends two pages later.
    let said = |edit: &dyn Fn(&mut [u8])| {
        end_of(|wal, at| {
            let mut more = three();
            more.record(21, 0, 8, &long_body(15_000));
            wal[at..more.bytes.len()].copy_from_slice(&more.bytes[at..]);
            edit(&mut wal[next..next + PAGE]);
        })
    };
    assert_eq!(
        said(&|page| put_u16(page, 0, 0xD117)),
        "the WAL page there carries magic number D117, not D118"
    );
    assert_eq!(
        said(&|page| put_u16(page, 2, 0x1001)),
        "the WAL page there carries flags 1001 that do not fit the place"
    );
    assert_eq!(
        said(&|page| page[8] ^= 1),
        "the WAL page there carries address 0/106001"
    );
    assert_eq!(
        said(&|page| put_u32(page, 4, 0)),
        "the WAL page there carries timeline 0 after timeline 1"
    );
    assert_eq!(
        said(&|page| put_u16(page, 2, 0)),
        "the next page does not go on with the record"
    );
    assert!(said(&|page| put_u32(page, 16, 7)).starts_with("the next page goes on with 7 bytes"));
    assert!(said(&|page| put_u32(page, 16, 0)).starts_with("the next page goes on with 0 bytes"));
}

#[test]
fn a_record_that_was_given_up_is_passed_over() {
    let mut wal = three();
    let begun = wal.bytes.len();
    let last = Lsn(0x10_4EB8);
    wal.raw(&sealed(21, 0, 8, last, &long_body(15_000)));
    let page = (begun / PAGE + 1) * PAGE;
    wal.bytes.truncate(page);
    // What recovery writes at the start of the next page.
    let mut header = vec![0; 24];
    put_u16(&mut header, 0, shape().magic);
    put_u16(&mut header, 2, 8);
    put_u32(&mut header, 4, 1);
    header[8..16].copy_from_slice(&(START.0 + page as u64).to_le_bytes());
    wal.bytes.extend_from_slice(&header);
    wal.raw(&sealed(0, 0xD0, 0, last, &main_data(&[0; 16])));
    let (xids, end) = read_all(wal.pages(), START);
    assert_eq!(xids, [5, 6, 7, 0]);
    assert_eq!(end.why, EndReason::TooShort { bytes: 0 });
}

#[test]
fn a_switch_leads_to_the_next_segment() {
    let mut wal = WalBuilder::new(shape(), START, 1);
    wal.record(21, 0, 5, &main_data(b"one"));
    wal.record(0, 0x40, 0, &[]);
    let mut reader = WalReader::new(wal.pages(), shape(), START);
    reader.read().expect("one");
    let switch = reader.read().expect("a switch").end;
    assert_eq!(switch, Lsn(2 << 20));
    assert_eq!(reader.read().expect_err("no file").why, EndReason::NoPage);
}

#[test]
fn no_place_and_no_bytes_make_it_panic() {
    for start in [0, 8, 1, 4095, u64::MAX, u64::MAX - 8191, u64::MAX / 2] {
        let pages = MadePages {
            bytes: vec![0xFF; PAGE],
            start: Lsn(start & !8191),
            page_bytes: 8192,
        };
        let mut reader = WalReader::new(pages, shape(), Lsn(start));
        assert!(reader.read().is_err() && reader.find_first().is_err());
    }
    let sound = three().pages();
    for at in 0..4 * 1024usize {
        let mut pages = sound.clone();
        let at = at * 6 % pages.bytes.len();
        pages.bytes[at] ^= 0x81;
        let (xids, _) = read_all(pages, START);
        assert!(xids.len() <= 3);
    }
}
