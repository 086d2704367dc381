//! Any bytes as an index tuple with columns of every length and alignment. Bounded: each column is
//! walked once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::{Attribute, ColumnLayout, IndexTuple};

const fn column(attlen: i16, attalign: u8) -> ColumnLayout {
    ColumnLayout { attlen, attalign }
}

const MIXED: [ColumnLayout; 8] = [
    column(4, 4),
    column(-1, 4),
    column(1, 1),
    column(-2, 1),
    column(8, 8),
    column(-1, 8),
    column(32, 8),
    column(2, 2),
];

fuzz_target!(|bytes: &[u8]| {
    let Some(tuple) = IndexTuple::parse(bytes) else {
        return;
    };
    assert!(tuple.bytes().len() <= tuple.item().len());
    assert!(tuple.data().len() <= tuple.bytes().len());
    let _ = (tuple.t_tid().to_string(), tuple.null_bitmap());
    for count in 0..=MIXED.len() {
        let columns = &MIXED[..count];
        let mut end = 0;
        for attribute in tuple.attributes(columns) {
            let Ok(Attribute::Value(range)) = attribute else {
                continue;
            };
            assert!(end <= range.start && range.end <= tuple.bytes().len());
            end = range.end;
        }
    }
});
