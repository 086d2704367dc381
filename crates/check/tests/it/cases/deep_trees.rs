//! Trees of absurd depth: each page has one child, and there are thousands.

use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
use pgclinic_format::gin::{GIN_DATA, GIN_LEAF};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{gist, spgist};

use crate::cases::scene::{Index, PAGE, Scene, damage, put_block, replaced, seal};

/// Pages of a tree, each the only child of the one before.
const DEPTH: u32 = 2000;

fn chain(first: u32, page: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (first..DEPTH).flat_map(page).collect()
}

/// A tuple without a key that leads to a page.
fn downlink(to: u32, offset: u16) -> [u8; 8] {
    let mut tuple = [0; 8];
    put_block(&mut tuple, 0, to);
    put_u16(&mut tuple, 4, offset);
    put_u16(&mut tuple, 6, 8);
    tuple
}

fn btree_page(block: u32) -> Vec<u8> {
    let mut special = [0; 16];
    let level = DEPTH - 1 - block;
    put_u32(&mut special, 8, level);
    let flags = u16::from(level == 0) | if block == 1 { 2 } else { 0 };
    put_u16(&mut special, 12, flags);
    let builder = PageBuilder::new(8192, &special);
    match level {
        0 => builder.finish(block),
        _ => builder.item(&downlink(block + 1, 0)).finish(block),
    }
}

fn gist_page(block: u32) -> Vec<u8> {
    let mut special = [0; 16];
    put_u32(&mut special, 8, INVALID_BLOCK);
    put_u16(&mut special, 12, u16::from(block + 1 == DEPTH));
    put_u16(&mut special, 14, gist::PAGE_ID);
    let builder = PageBuilder::new(8192, &special);
    builder.item(&downlink(block + 1, 0xFFFF)).finish(block)
}

/// An inner tuple with one node.
fn spgist_page(block: u32) -> Vec<u8> {
    let mut special = [0; 8];
    put_u16(&mut special, 6, spgist::PAGE_ID);
    let mut tuple = [0; 16];
    put_u32(&mut tuple, 0, 1 << 3);
    put_u16(&mut tuple, 4, 16);
    tuple[8..].copy_from_slice(&downlink(block + 1, 1));
    PageBuilder::new(8192, &special).item(&tuple).finish(block)
}

fn gin_page(block: u32, flags: u16) -> Vec<u8> {
    let mut special = [0; 8];
    put_u32(&mut special, 0, INVALID_BLOCK);
    put_u16(&mut special, 4, 1);
    put_u16(&mut special, 6, flags);
    let builder = PageBuilder::new(8192, &special);
    if flags & GIN_DATA == 0 {
        // Instead of a row's number stands that of the tree of rows.
        let offset = if flags & GIN_LEAF == 0 { 0 } else { 0xFFFF };
        return builder.item(&downlink(block + 1, offset)).finish(block);
    }
    let mut page = builder.finish(block);
    put_block(&mut page, 32, block + 1);
    put_u16(&mut page, 12, 42);
    page
}

/// A page of a bucket's chain, between two others.
fn hash_page(block: u32) -> Vec<u8> {
    let mut special = [0; 16];
    put_u32(&mut special, 0, block - 1);
    put_u32(&mut special, 4, block + 1);
    put_u16(&mut special, 12, 1);
    put_u16(&mut special, 14, 0xFF80);
    PageBuilder::new(8192, &special).finish(block)
}

/// The index as a tree of one page a level; a bucket whose chain does not end, for a hash index.
fn deepened(index: &Index) -> Option<Vec<u8>> {
    let head = |pages: usize| index.bytes[..pages * PAGE].to_vec();
    let mut file = match index.method {
        AccessMethod::Btree => {
            let mut file = head(1);
            for (at, value) in [(32, 1), (36, DEPTH - 2), (40, 1), (44, DEPTH - 2)] {
                put_u32(&mut file, at, value);
            }
            file.extend(chain(1, btree_page));
            file
        }
        AccessMethod::Gist => chain(0, gist_page),
        AccessMethod::Spgist => {
            let mut file = head(1);
            file.extend(chain(1, spgist_page));
            file
        }
        AccessMethod::Gin => {
            let mut file = head(1);
            // A tree of keys or one of rows; the leaves are missing.
            let flags = match index.name.as_str() {
                "measurements_gin" => GIN_DATA,
                _ => 0,
            };
            file.extend(gin_page(1, if flags == 0 { 0 } else { GIN_LEAF }));
            file.extend(chain(2, |block| gin_page(block, flags)));
            file
        }
        AccessMethod::Hash => {
            let pages = index.bytes.len() / PAGE;
            let mut file = head(pages);
            let first = u32::try_from(pages).expect("a small file");
            put_u32(&mut file, 2 * PAGE - 12, first);
            file.extend(chain(first, hash_page));
            file
        }
        _ => return None,
    };
    seal(&mut file);
    Some(file)
}

#[test]
fn trees_of_thousands_of_levels() {
    let scene = Scene::new();
    let kinds = [
        "measurements_dedup",
        "places_gist_at",
        "places_spgist_at",
        "places_spgist_label",
        "docs_gin_words",
        "measurements_gin",
        "measurements_hash",
    ];
    let indexes = scene.indexes();
    for name in kinds {
        let index = indexes.iter().find(|index| index.name == name);
        let index = index.unwrap_or_else(|| panic!("{name} is not there"));
        let file = deepened(index).expect("a tree");
        let document = scene.checked(replaced(&index.path, file));
        let own = damage(&document).filter(|one| one.place.relation_oid == Some(index.oid));
        assert!(own.count() > 0, "{name}");
    }
}
