//! Any bytes as a relation map: parsed or refused, and a sealed one carries the right checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::relation_map::{self, RelationMap};

/// Both lengths that files have, so that the search is not lost on guessing them.
const LENGTHS: [usize; 2] = [512, 524];

fuzz_target!(|bytes: &[u8]| {
    parse(bytes);
    for length in LENGTHS {
        let mut file = bytes.to_vec();
        file.resize(length, 0);
        parse(&file);
        assert!(
            relation_map::seal(&mut file),
            "a map of {length} bytes was not sealed"
        );
        let map = RelationMap::parse(&file).expect("the length is a map's");
        assert_eq!(map.crc_stored, map.crc_computed);
        assert!(map.mappings.len() <= 64);
    }
});

fn parse(bytes: &[u8]) {
    match RelationMap::parse(bytes) {
        Ok(map) => {
            let _ = (map.is_right(), map.filenode(1259));
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}
