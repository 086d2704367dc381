//! GIN indexes that real servers made, in every state that is legal: silent. Hurt: found.

use pgclinic_model::Level;

use crate::index_clusters;

use index_clusters::{Made, OtherPage, told};
use pgclinic_format::Page;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::gin::{EntryTuple, GIN_INCOMPLETE_SPLIT, Opaque, PageKind};

const GIN: &str = include_str!("index_clusters/gin.sql");
const GIN_LATER: &str = include_str!("index_clusters/gin_later.sql");

fn is_silent(major: u16) {
    let made = Made::with(major, &[GIN, GIN_LATER]);
    made.is_silent();
}

#[test]
fn gin_of_13_is_silent() {
    is_silent(13);
}

#[test]
fn gin_of_15_is_silent() {
    is_silent(15);
}

#[test]
fn gin_of_18_is_silent() {
    is_silent(18);
}

/// The first leaf of keys, as block of its parent, its own, and that of its right neighbour, which
/// the first two links of the leftmost inner page name.
fn first_leaves(made: &Made, index: &str) -> (OtherPage, OtherPage, u32) {
    let mut parent = made.page(index, 1);
    loop {
        let page = Page::parse(&parent.bytes).expect("a page");
        let links: Vec<u32> = entries(page).map(|(_, entry)| entry.downlink()).collect();
        let child = made.page(index, u64::from(links[0]));
        let opaque = Opaque::of(Page::parse(&child.bytes).expect("a page")).expect("of GIN");
        if opaque.kind() == Some(PageKind::EntryLeaf) {
            assert_eq!(opaque.right(), Some(links[1]));
            return (parent, child, links[1]);
        }
        parent = child;
    }
}

fn entries(page: Page<'_>) -> impl Iterator<Item = (u16, EntryTuple<'_>)> {
    page.line_pointers()
        .filter_map(move |(item, pointer)| Some((item, EntryTuple::parse(page.item(pointer)?)?)))
}

/// Takes the first link away and lets the second lead to its page, as before a split is complete.
fn one_link_less(parent: &mut OtherPage, left: u64) {
    let page = Page::parse(&parent.bytes).expect("a page");
    let second = page.line_pointer(2).expect("two links");
    let (lower, at) = (usize::from(page.pd_lower()), usize::from(second.lp_off()));
    let left = u32::try_from(left).expect("a block");
    put_u16(
        &mut parent.bytes,
        at,
        u16::try_from(left >> 16).expect("half"),
    );
    put_u16(
        &mut parent.bytes,
        at + 2,
        u16::try_from(left & 0xFFFF).expect("half"),
    );
    parent.bytes.copy_within(28..lower, 24);
    put_u16(
        &mut parent.bytes,
        12,
        u16::try_from(lower - 4).expect("an offset"),
    );
}

#[test]
fn a_split_that_is_not_complete_is_silent_and_one_that_is_not_marked_is_told() {
    let made = Made::with(15, &[GIN]);
    let (mut parent, mut left, right) = first_leaves(&made, "things_ts");
    one_link_less(&mut parent, left.block);
    let unmarked = made.check_with(Level::Structure, vec![parent.clone().sealed()]);
    let words = told(&unmarked);
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].contains("not the right neighbour"), "{words:?}");
    assert!(
        words[0].contains(&format!("Some({})", left.block)),
        "{words:?}"
    );
    assert!(
        words[0].ends_with(&format!("neighbour {right}")),
        "{words:?}"
    );

    let flags = Opaque::of(Page::parse(&left.bytes).expect("a page"))
        .expect("of GIN")
        .flags;
    put_u16(&mut left.bytes, 8190, flags | GIN_INCOMPLETE_SPLIT);
    let marked = made.check_with(Level::Structure, vec![parent.sealed(), left.sealed()]);
    assert_eq!(told(&marked), Vec::<String>::new());
}

#[test]
fn a_cycle_ends_and_is_told() {
    let made = Made::with(15, &[GIN]);
    let (_, mut left, _) = first_leaves(&made, "things_ts");
    put_u32(&mut left.bytes, 8184, 1);
    let words = told(&made.check_with(Level::Structure, vec![left.sealed()]));
    assert!(words[0].starts_with("gin-tree-link things_ts"), "{words:?}");
}

#[test]
fn a_crash_leaves_nothing_above_a_note_and_recovery_nothing_at_all() {
    let made = Made::killed(18, &[GIN], GIN_LATER);
    assert_eq!(told(&made.check(Level::Full)), [""; 0]);
    made.recover();
    made.is_silent();
}
