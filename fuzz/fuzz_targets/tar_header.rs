//! Any bytes as a tar header and as a description of a member.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::tar::{BLOCK, Description, Header};

fuzz_target!(|bytes: &[u8]| {
    let _ = Description::parse(bytes);
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    for block in blocks {
        if let Ok(header) = Header::parse(block) {
            let padded = header.padded_size();
            assert!(padded.is_none_or(|padded| padded >= header.size));
        }
    }
});
