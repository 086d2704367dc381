//! Any bytes as a GiST page. Bounded: each entry is looked at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Page;
use pgclinic_format::build::put_u16;
use pgclinic_format::gist::{self, GistPage, PAGE_ID};

fuzz_target!(|bytes: &[u8]| {
    let mut block = bytes.to_vec();
    block.resize(1024, 0);
    take_apart(&block);
    // A page that is GiST's by its special space, whatever stands before it.
    put_u16(&mut block, 16, 1008);
    put_u16(&mut block, 1022, PAGE_ID);
    take_apart(&block);
});

fn take_apart(block: &[u8]) {
    let page = Page::parse(block).expect("a block size");
    let mut rows = 0;
    gist::for_each_row(page, &mut |_, _, _| rows += 1);
    let Some(gist) = GistPage::parse(page) else {
        assert_eq!(rows, 0);
        return;
    };
    let _ = (
        gist.nsn(),
        gist.rightlink(),
        gist.flags(),
        gist.delete_xid(),
    );
    let items = gist.items().count();
    assert!(items <= usize::from(gist.item_count()));
    assert!(rows == 0 || rows == items);
}
