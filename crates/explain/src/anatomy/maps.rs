//! Free space map and visibility map: what their bits and nodes say, in sum.
//!
//! Truth: `src/include/storage/fsm_internals.h`, `src/backend/access/heap/visibilitymap.c`.

use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::visibility_map::{bits, heap_blocks_per_page};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::Field;
use pgclinic_model::{plural, verb_of};

use super::bytes::u32_at;
use super::cover::{Cover, Part};
use super::field::{field, offsets};

/// Nodes that are named one by one.
const NODES_SHOWN: usize = 32;

/// `fp_next_slot` and the binary tree of free space behind it: a byte a node, 0 to 255.
pub(super) fn free_space(page: Page<'_>, cover: &mut Cover) -> Vec<Field> {
    let nodes_at = HEADER_BYTES + 4;
    cover.paint(HEADER_BYTES..nodes_at, Part::Special, "fp_next_slot");
    let inner = page.len() / 2 - 1;
    let leaves_at = nodes_at.saturating_add(inner);
    cover.paint(nodes_at..leaves_at, Part::Special, "fp_nodes: inner nodes");
    cover.paint(leaves_at..page.len(), Part::Special, "fp_nodes: leaves");
    let next = u32_at(page.bytes(), HEADER_BYTES)
        .map(u32::cast_signed)
        .unwrap_or_default();
    let nodes = page.bytes().get(nodes_at..).unwrap_or_default();
    let leaves = page.bytes().get(leaves_at..).unwrap_or_default();
    let mut slots = field("fp_next_slot", HEADER_BYTES..nodes_at, next.to_string());
    slots.meaning.push("where the next search begins".into());
    let mut root = field(
        "fp_nodes[0]",
        nodes_at..nodes_at + 1,
        nodes.first().copied().unwrap_or_default().to_string(),
    );
    root.meaning
        .push("the most free space below, in steps of 1/256 of a page".into());
    root.fault = inconsistent(nodes);
    let used: Vec<String> = leaves
        .iter()
        .zip(0u32..)
        .filter(|(value, _)| **value != 0)
        .take(NODES_SHOWN)
        .map(|(value, slot)| format!("{slot}: {value}"))
        .collect();
    let count = leaves.iter().filter(|value| **value != 0).count();
    let mut leaf = field(
        "leaves",
        leaves_at..page.len(),
        format!("{count} of {} are not zero", leaves.len()),
    );
    leaf.meaning = used;
    vec![slots, root, leaf]
}

/// Each inner node is the larger one of the two below it. A map that lags is legal, a node that
/// contradicts its children is repaired by the server when it comes upon it.
fn inconsistent(nodes: &[u8]) -> Option<String> {
    let below = |at: usize| nodes.get(at).copied().unwrap_or_default();
    let wrong = (0..nodes.len() / 2)
        .filter(|at| below(*at) != below(at * 2 + 1).max(below(at * 2 + 2)))
        .count();
    (wrong > 0).then(|| format!("{wrong} inner nodes differ from the larger one below them; the server mends that by itself"))
}

/// Two bits for each heap page.
pub(super) fn visibility(page: Page<'_>, block: BlockNo, cover: &mut Cover) -> Vec<Field> {
    cover.paint(
        HEADER_BYTES..page.len(),
        Part::Special,
        "two bits a heap page",
    );
    let per_page = heap_blocks_per_page(page.len());
    let first = u64::from(block).saturating_mul(per_page);
    // By pair of bits: none, visible, frozen, both.
    let mut counts = [0u64; 4];
    for index in 0..per_page {
        let pair = bits(page, index).unwrap_or_default();
        if let Some(count) = counts.get_mut(usize::from(pair)) {
            *count += 1;
        }
    }
    let [_, visible, frozen_alone, both] = counts;
    let whole = HEADER_BYTES..page.len();
    let line = |name: &str, value: String| Field {
        bytes: offsets(&whole),
        ..field(name, 0..0, value)
    };
    let mut frozen = line("ALL_FROZEN", plural(both + frozen_alone, "page"));
    frozen.fault = (frozen_alone > 0).then(|| {
        format!(
            "{frozen_alone} {are} marked frozen and not visible to all",
            frozen_alone = plural(frozen_alone, "page"),
            are = verb_of(frozen_alone, "are")
        )
    });
    vec![
        line(
            "heap pages",
            format!(
                "{first} to {}",
                first.saturating_add(per_page).saturating_sub(1)
            ),
        ),
        line("ALL_VISIBLE", plural(visible + both, "page")),
        frozen,
    ]
}
