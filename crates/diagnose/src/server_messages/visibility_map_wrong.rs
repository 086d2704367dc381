//! The visibility map and the table contradict each other.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct VisibilityMapWrong;

impl ServerMessage for VisibilityMapWrong {
    fn name(&self) -> &'static str {
        "visibility-map-wrong"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001", "01000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "page is not marked all-visible but visibility map bit is set in relation {relation} page {block}",
            "page containing lp_dead items is marked as all-visible in relation {relation} page {block}",
            "page containing dead tuples is marked as all-visible in relation {relation} page {block}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The visibility map has two bits for each page of a table: all rows visible to all, all rows frozen. \
Vacuum found a bit set where the page itself says otherwise. It clears the bit and goes on; it is a \
warning.

The map and the table are of different ages: one of the two files was restored alone, a write was lost, \
or a crash met storage that does not keep its promises. Some minor releases had bugs that left it \
behind, and clusters upgraded from them may carry it.

It matters more than it looks. An index-only scan believes the map and may have returned **deleted \
rows**, or rows that were never committed. And vacuum skips pages that are marked, so rows there were \
not frozen.

No rows are lost by the map itself: it is only a shortcut and can be made anew at any time.

It does **not** mean that the table's page is wrong; but of two files of different days the *table* may \
be the old one.

**Never** ignore it when it comes for many pages."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend(["The map can be thrown away and is made anew: `CREATE EXTENSION pg_visibility; SELECT pg_truncate_visibility_map('…'); VACUUM …;`".to_owned(), "Look for the cause: an old map beside a newer table means that files of different days were mixed".to_owned()]);
        steps
    }
}
