//! Any bytes as a tar header, as a description of a member, and as a map of holes in each of its
//! forms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::tar::{
    BLOCK, Description, Header, MapInContent, OldMap, PaxSparse, SparseMap,
};

/// Runs follow each other to the end of the file, and what they take is stored.
fn walk(mut map: SparseMap, cut: u64) {
    for _ in 0..2 {
        let mut offset = 0u64;
        while let Some(run) = map.run_at(offset) {
            assert!(run.len > 0);
            let end = run.stored_at.map_or(0, |at| at + run.len);
            assert!(end <= map.stored_bytes());
            offset += run.len;
        }
        assert!(offset == map.real_size());
        map.cut_to(cut);
        assert!(map.stored_bytes() <= cut);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.len() as u64;
    let described = Description::parse(bytes);
    if let Some(map) = described.sparse.and_then(PaxSparse::finish) {
        walk(map, cut);
    }
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let mut in_content = MapInContent::default();
    let taken = blocks.iter().map(|block| in_content.take(block));
    let ended = taken
        .take_while(|taken| taken.is_some())
        .any(|taken| taken == Some(true));
    if ended && let Some(map) = in_content.finish(1 << 30) {
        walk(map, cut);
    }
    for (at, block) in blocks.iter().enumerate() {
        if let Ok(header) = Header::parse(block) {
            let padded = header.padded_size();
            assert!(padded.is_none_or(|padded| padded >= header.size));
        }
        let mut old = OldMap::begin(block);
        for block in blocks.iter().skip(at + 1) {
            if old.goes_on() {
                old.go_on(block);
            }
        }
        if let Some(map) = old.finish() {
            walk(map, cut);
        }
    }
});
