//! Any bytes as an SP-GiST page. Bounded: each tuple and each of its nodes is looked at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Page;
use pgclinic_format::build::put_u16;
use pgclinic_format::spgist::{self, PAGE_ID, SpgistPage};

fuzz_target!(|bytes: &[u8]| {
    let mut block = bytes.to_vec();
    block.resize(1024, 0);
    take_apart(&block);
    // A page that is SP-GiST's by its special space, whatever stands before it.
    put_u16(&mut block, 16, 1016);
    put_u16(&mut block, 1022, PAGE_ID);
    take_apart(&block);
});

fn take_apart(block: &[u8]) {
    let page = Page::parse(block).expect("a block size");
    let mut rows = 0;
    spgist::for_each_row(page, &mut |_, _| rows += 1);
    let Some(page) = SpgistPage::parse(page) else {
        assert_eq!(rows, 0);
        return;
    };
    assert!(page.last_used().len() <= 8);
    for (number, tuple) in page.tuples() {
        assert_eq!(
            page.tuple(number).map(|again| again.bytes()),
            Some(tuple.bytes())
        );
        let _ = (
            tuple.state(),
            tuple.pointer(),
            tuple.xid(),
            tuple.leaf_size(),
        );
        let leaf = tuple.leaf();
        let _ = (leaf.row(), leaf.next(), leaf.null_bitmap(), leaf.data());
        let inner = tuple.inner();
        let _ = (inner.prefix(), inner.all_the_same());
        let nodes = inner.nodes().take(1 << 13);
        assert!(
            nodes
                .map(|node| (node.downlink(), node.label_number()))
                .count()
                <= usize::from(inner.node_count())
        );
    }
}
