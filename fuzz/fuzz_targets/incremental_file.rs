//! Any bytes as the changed blocks of a segment.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::incremental::{HEAD_BYTES, Head};

/// Blocks of a segment; few, so that the limit is met.
const SEGMENT_BLOCKS: u32 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(head) = Head::parse(bytes, SEGMENT_BLOCKS) else {
        return;
    };
    assert!(head.header_bytes(8192) <= 8192);
    let behind = bytes.get(HEAD_BYTES..).unwrap_or_default();
    let Ok(numbers) = head.numbers(behind, SEGMENT_BLOCKS) else {
        return;
    };
    assert_eq!(numbers.len() as u64 * 4, head.numbers_bytes());
    assert!(numbers.is_sorted() && head.length_blocks(numbers.last().copied()) <= SEGMENT_BLOCKS);
});
