//! Any bytes as a BRIN summary and as pages of the map.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Page;
use pgclinic_format::attribute::ColumnLayout;
use pgclinic_format::brin::{BrinTuple, Meta, map_entry, page_type, ranges_per_map_page};

const fn column(attlen: i16, attalign: u8) -> ColumnLayout {
    ColumnLayout { attlen, attalign }
}

fuzz_target!(|bytes: &[u8]| {
    let mut block = bytes.to_vec();
    block.resize(1024, 0);
    let page = Page::parse(&block).expect("a block size");
    let _ = (Meta::of(page), page_type(page));
    for index in 0..=ranges_per_map_page(page.len()) {
        let _ = map_entry(page, index);
    }
    let Some(summary) = BrinTuple::parse(bytes) else {
        return;
    };
    let stored = [
        vec![column(4, 4); 2],
        vec![column(-1, 4); 3],
        vec![column(8, 8), column(-2, 1)],
        vec![column(-1, 1)],
    ];
    for count in 1..=stored.len() {
        match summary.values(&stored[..count]) {
            Ok(values) => {
                assert_eq!(values.len(), count);
                let places = values.into_iter().flatten().flatten();
                assert!(places.into_iter().all(|place| bytes.get(place).is_some()));
            }
            Err(fault) => drop(fault.to_string()),
        }
        let _ = summary.null_bits(count, count);
    }
});
