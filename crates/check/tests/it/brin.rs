//! BRIN indexes that real servers made, in every state that is legal: silent. Summaries of the
//! wrong range: told.

use pgclinic_model::Level;

use crate::index_clusters;

use std::collections::BTreeSet;

use index_clusters::{Made, OtherPage, told};
use pgclinic_format::Page;
use pgclinic_format::brin::{Meta, map_entry, map_entry_at};
use pgclinic_format::build::put_u32;

const BRIN: &str = include_str!("index_clusters/brin.sql");
const BRIN_14: &str = include_str!("index_clusters/brin_14.sql");
const BRIN_WRITES: &str = include_str!("index_clusters/brin_writes.sql");

#[test]
fn brin_of_13_is_silent() {
    Made::with(13, &[BRIN]).is_silent();
}

#[test]
fn brin_of_15_is_silent() {
    Made::with(15, &[BRIN, BRIN_14]).is_silent();
}

#[test]
fn brin_of_18_is_silent() {
    Made::with(18, &[BRIN, BRIN_14]).is_silent();
}

/// The pages of an index in which the summaries of two ranges have changed places.
fn exchanged(made: &Made, index: &str, ranges: [u32; 2]) -> Vec<OtherPage> {
    let meta = made.page(index, 0);
    let meta = Meta::of(Page::parse(&meta.bytes).expect("a page")).expect("a meta page");
    let mut map = made.page(index, 1);
    let places = ranges.map(|range| {
        let page = Page::parse(&map.bytes).expect("a page");
        map_entry(page, range).expect("a summary")
    });
    let bytes = ranges.map(|range| {
        let at = map_entry_at(range);
        map.bytes[at..at + 6].to_vec()
    });
    for (range, bytes) in ranges.iter().zip(bytes.iter().rev()) {
        let at = map_entry_at(*range);
        map.bytes[at..at + 6].copy_from_slice(bytes);
    }
    let mut pages = vec![map];
    for (tid, range) in places.iter().zip(ranges.iter().rev()) {
        let block = u64::from(tid.block);
        if !pages.iter().any(|page| page.block == block) {
            pages.push(made.page(index, block));
        }
        let page = pages
            .iter_mut()
            .find(|page| page.block == block)
            .expect("just put there");
        let pointer = Page::parse(&page.bytes).and_then(|page| page.line_pointer(tid.offset));
        let at = usize::from(pointer.expect("a summary").lp_off());
        put_u32(&mut page.bytes, at, range * meta.pages_per_range);
    }
    pages.into_iter().map(OtherPage::sealed).collect()
}

#[test]
fn summaries_of_other_ranges_miss_rows_in_every_column() {
    let made = Made::with(15, &[BRIN, BRIN_14]);
    for (index, columns) in [
        ("log_default", 10),
        ("log_inclusion", 2),
        ("log_bloom", 9),
        ("log_multi", 8),
        ("log_multi_few", 1),
    ] {
        let pages = exchanged(&made, index, [1, 9]);
        assert_eq!(
            told(&made.check_with(Level::Structure, pages.clone())),
            [""; 0],
            "{index}"
        );
        let document = made.check_with(Level::Full, pages);
        let findings = document.findings.iter();
        let rules: BTreeSet<&str> = findings
            .clone()
            .map(|finding| finding.rule.as_str())
            .collect();
        assert_eq!(
            Vec::from_iter(rules),
            ["brin-summary-misses-row"],
            "{index}"
        );
        let missed: BTreeSet<u16> = findings
            .filter_map(|finding| Some(finding.place.attribute.as_ref()?.number))
            .collect();
        let unchecked = &document.coverage.not_checked;
        assert!(missed.len() >= columns, "{index}: {missed:?} {unchecked:?}");
    }
}

#[test]
fn a_crash_leaves_nothing_above_a_note_and_recovery_nothing_at_all() {
    let made = Made::killed(15, &[BRIN, BRIN_14], BRIN_WRITES);
    assert_eq!(told(&made.check(Level::Full)), [""; 0]);
    made.recover();
    made.is_silent();
}
