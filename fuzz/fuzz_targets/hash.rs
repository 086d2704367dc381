//! Pages of hash indexes: no bytes make a view panic, and what the meta page says of a block leads
//! back to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Page;
use pgclinic_format::hash::{self, Meta, Use};
use pgclinic_format::hash_value::{Hasher, hash_value};

const HASHERS: [Hasher; 11] = [
    Hasher::Bytes,
    Hasher::Padded,
    Hasher::Name,
    Hasher::Word,
    Hasher::DoubleWord,
    Hasher::Float4,
    Hasher::Float8,
    Hasher::Numeric,
    Hasher::Interval,
    Hasher::TimeTz,
    Hasher::Network,
];

fuzz_target!(|data: &[u8]| {
    for hasher in HASHERS {
        let _ = hash_value(hasher, data.get(..64).unwrap_or(data));
    }
    let Some(page) = Page::parse(data) else {
        return;
    };
    let _ = hash::opaque(page);
    let _ = hash::bitmap(page).map(<[u8]>::len);
    let mut entries = 0usize;
    hash::for_each_row(page, &mut |_| entries += 1);
    assert!(entries <= data.len(), "no more entries than line pointers");
    let Some(meta) = Meta::parse(page) else {
        return;
    };
    let _ = (meta.blocks(), meta.ntuples(), meta.mapp(meta.nmaps()));
    for block in [0, 1, 2, 3, 100, 65_536, u32::MAX] {
        match meta.use_of(block) {
            Use::Bucket(bucket) => drop(meta.block_of_bucket(bucket)),
            Use::Overflow(bit) => drop(meta.block_of_bit(bit)),
            Use::Meta | Use::Beyond => {}
        }
        let _ = (
            meta.bucket_of(block),
            meta.split_from(block),
            meta.spares(block),
        );
        let _ = (meta.block_of_bucket(block), meta.block_of_bit(block));
    }
});
