//! Any bytes as a page of every kind. Bounded: each item is walked once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::attribute::Attributes;
use pgclinic_format::index_page::{self, AccessMethod};
use pgclinic_format::{HeapTuple, Page, checksum, flags, sequence, visibility_map};

const METHODS: [AccessMethod; 8] = [
    AccessMethod::Heap,
    AccessMethod::Btree,
    AccessMethod::Hash,
    AccessMethod::Gist,
    AccessMethod::Gin,
    AccessMethod::Spgist,
    AccessMethod::Brin,
    AccessMethod::Sequence,
];

/// The smallest block, so that the search need not write 8 kB to get anywhere, and the usual one.
const BLOCKS: [usize; 2] = [1024, 8192];

fuzz_target!(|bytes: &[u8]| {
    for length in BLOCKS {
        let mut block = bytes.to_vec();
        block.resize(length, 0);
        take_apart(Page::parse(&block).expect("a block size"));
    }
    if let Some(page) = Page::parse(bytes) {
        take_apart(page);
    }
});

fn take_apart(page: Page<'_>) {
    header(page);
    let count = page.line_pointer_count();
    assert_eq!(page.line_pointers().count(), usize::from(count));
    assert_eq!(page.line_pointer(0), None);
    for (number, pointer) in page.line_pointers() {
        assert_eq!(page.line_pointer(number), Some(pointer));
        let _ = pointer.flags().name();
        let Some(item) = page.item(pointer) else {
            continue;
        };
        assert_eq!(item.len(), usize::from(pointer.lp_len()));
        if let Some(tuple) = HeapTuple::parse(item) {
            Attributes::new(tuple, &sequence::COLUMNS).for_each(drop);
        }
    }
}

fn header(page: Page<'_>) {
    let _ = (
        page.pd_lsn(),
        page.page_size(),
        page.layout_version(),
        page.pd_prune_xid(),
    );
    let _ = (
        page.is_new(),
        page.is_zeroed(),
        page.header_is_sane_to_the_server(),
    );
    let _ = flags::names(page.pd_flags(), flags::PD_FLAGS);
    for method in METHODS {
        let _ = index_page::has_line_pointers(method, page);
    }
    let _ = (index_page::btree_links(page), sequence::magic(page));
    let covered = visibility_map::heap_blocks_per_page(page.len());
    assert!(visibility_map::bits(page, covered).is_none());
    let _ = (
        visibility_map::bits(page, u64::MAX),
        visibility_map::last_marked(page, u64::from(u32::MAX)),
    );
    let hash = checksum::page_hash(page.bytes());
    assert_eq!(
        checksum::page_checksum(page.bytes(), 7),
        checksum::checksum_at(hash, 7)
    );
}
