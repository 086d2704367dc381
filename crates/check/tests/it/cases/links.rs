//! Every link of every index leads in a circle, to its own page, to the root or nowhere.

use std::collections::BTreeSet;

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Page, brin, gin, spgist};

use crate::cases::scene::{Index, PAGE, Scene, bytes, damage, put_block, seal};

/// Where all links of a page lead.
struct Leads {
    words: &'static str,
    to: fn(block: u32, blocks: u32) -> u32,
}

const WAYS: [Leads; 6] = [
    Leads {
        words: "to its own page",
        to: |block, _| block,
    },
    Leads {
        words: "to the first page",
        to: |_, _| 0,
    },
    Leads {
        words: "to the root",
        to: |_, _| 1,
    },
    Leads {
        words: "to the next page, in a circle",
        to: |block, blocks| (block + 1) % blocks,
    },
    Leads {
        words: "to the page before, in a circle",
        to: |block, blocks| (block + blocks - 1) % blocks,
    },
    Leads {
        words: "to a block that no file has",
        to: |_, blocks| blocks + 1_000_000,
    },
];

/// Offsets of what stands on the page's line pointers.
fn items(page: &[u8]) -> Vec<usize> {
    let Some(page) = Page::parse(page) else {
        return Vec::new();
    };
    let numbers = 1..=page.line_pointer_count();
    let pointers = numbers.filter_map(|number| page.line_pointer(number));
    pointers
        .map(|pointer| usize::from(pointer.lp_off()))
        .collect()
}

/// Offsets of the links of a page: words of four bytes, and numbers of blocks in the numbers of
/// rows.
fn links(method: AccessMethod, block: u32, bytes: &[u8]) -> (Vec<usize>, Vec<usize>) {
    let Some(page) = Page::parse(bytes) else {
        return (Vec::new(), Vec::new());
    };
    let special = usize::from(page.pd_special());
    match method {
        AccessMethod::Btree if block == 0 => (vec![32, 40], Vec::new()),
        AccessMethod::Btree => {
            let leaf = bytes.get(special + 8..special + 12) == Some(&[0; 4]);
            let down = if leaf { Vec::new() } else { items(bytes) };
            (vec![special, special + 4], down)
        }
        AccessMethod::Gist => {
            let leaf = bytes.get(special + 12).is_some_and(|flags| flags & 1 != 0);
            let down = if leaf { Vec::new() } else { items(bytes) };
            (vec![special + 8], down)
        }
        AccessMethod::Hash => (vec![special, special + 4], Vec::new()),
        AccessMethod::Gin => gin_links(page, bytes, special),
        AccessMethod::Brin if brin::page_type(page) == Some(brin::PAGE_REVMAP) => {
            let is_used = |at: &usize| bytes.get(at + 4..at + 6) != Some(&[0; 2]);
            let rows = (24..special - 6).step_by(6).filter(is_used);
            (Vec::new(), rows.collect())
        }
        AccessMethod::Spgist => (Vec::new(), node_links(page)),
        _ => (Vec::new(), Vec::new()),
    }
}

fn gin_links(page: Page<'_>, bytes: &[u8], special: usize) -> (Vec<usize>, Vec<usize>) {
    let kind = gin::Opaque::of(page).and_then(gin::Opaque::kind);
    match kind {
        Some(gin::PageKind::Meta) => (vec![24, 28], Vec::new()),
        Some(gin::PageKind::PostingInner) => {
            let count = gin::posting_items(page).count();
            let down = (0..count).map(|at| gin::DATA_AT + at * gin::PostingItem::BYTES);
            (vec![special], down.collect())
        }
        Some(gin::PageKind::EntryInner) => (vec![special], items(bytes)),
        Some(gin::PageKind::EntryLeaf) => {
            let trees = items(bytes).into_iter();
            let trees = trees.filter(|at| bytes.get(at + 4..at + 6) == Some(&[0xFF; 2]));
            (vec![special], trees.collect())
        }
        _ => (vec![special], Vec::new()),
    }
}

/// The nodes of inner tuples of SP-GiST.
fn node_links(page: Page<'_>) -> Vec<usize> {
    let Some(own) = spgist::SpgistPage::parse(page).filter(|own| !own.is_leaf() && !own.is_meta())
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (number, tuple) in own.tuples() {
        let Some(pointer) = page.line_pointer(number) else {
            continue;
        };
        let inner = tuple.inner();
        let end = usize::from(pointer.lp_off()) + usize::from(inner.size());
        let mut nodes = inner.nodes();
        loop {
            let left = nodes.rest().len();
            if nodes.next().is_none() {
                break;
            }
            found.push(end - left);
        }
    }
    found
}

/// The chain of a leaf of SP-GiST leads from each row to itself.
fn chain_to_itself(page: &mut [u8]) {
    let is_leaf = Page::parse(page).and_then(spgist::SpgistPage::parse);
    if !is_leaf.is_some_and(spgist::SpgistPage::is_leaf) {
        return;
    }
    for (number, at) in (1_u16..).zip(items(page)) {
        put_u16(page, at + 4, number);
    }
}

/// The index with all its links led elsewhere; nothing when that changes none.
fn led(index: &Index, way: &Leads) -> Option<Vec<u8>> {
    let mut file = index.bytes.clone();
    let blocks = u32::try_from(file.len() / PAGE).expect("a small file");
    for (block, page) in (0..).zip(file.chunks_exact_mut(PAGE)) {
        let to = (way.to)(block, blocks);
        let (words, rows) = links(index.method, block, page);
        words.into_iter().for_each(|at| put_u32(page, at, to));
        rows.into_iter().for_each(|at| put_block(page, at, to));
        if index.method == AccessMethod::Spgist {
            chain_to_itself(page);
        }
    }
    seal(&mut file);
    (file != index.bytes).then_some(file)
}

#[test]
fn links_in_circles() {
    let scene = Scene::new();
    let indexes = scene.indexes();
    for way in WAYS {
        let mut patches = Vec::new();
        let mut changed = BTreeSet::new();
        for index in &indexes {
            if let Some(file) = led(index, &way) {
                patches.push(bytes(&index.path, 0, file));
                changed.insert(index.oid);
            }
        }
        assert!(changed.len() > 20, "{} indexes", changed.len());
        let document = scene.checked(patches);
        let found: BTreeSet<_> = damage(&document)
            .filter_map(|finding| finding.place.relation_oid)
            .collect();
        let missed = indexes
            .iter()
            .filter(|index| changed.contains(&index.oid) && !found.contains(&index.oid));
        let missed: Vec<&str> = missed.map(|index| index.name.as_str()).collect();
        assert_eq!(missed, [""; 0], "links lead {}", way.words);
    }
}
