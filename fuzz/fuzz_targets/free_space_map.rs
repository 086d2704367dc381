//! Pages of free space maps: any bytes are a tree, whose wrong nodes are inner ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Page;
use pgclinic_format::free_space_map::{tree_faults, upper_nodes};

fuzz_target!(|data: &[u8]| {
    if let Some(page) = Page::parse(data) {
        assert!(tree_faults(page).all(|fault| fault.node < upper_nodes(page)));
    }
});
