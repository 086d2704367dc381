//! The tree on a page of a free space map contradicts itself.
//!
//! What the map says about the heap is not compared: it lags behind, it is not in the WAL, and
//! after a crash it may speak of blocks that were never made. The server asks the page itself
//! before it uses the room.
//!
//! Truth: `src/backend/storage/freespace/README`.

use pgclinic_format::Page;
use pgclinic_format::free_space_map::{NODES_AT, tree_faults};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static FREE_SPACE_MAP_TREE: Rule =
    Rule::from_page(include_str!("../../rules/free-space-map-tree.md"));

/// See [`FREE_SPACE_MAP_TREE`].
pub struct FreeSpaceMapTree;

impl PageCheck for FreeSpaceMapTree {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&FREE_SPACE_MAP_TREE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::FreeSpaceMap,
            screened: false,
        }
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        if page.is_new() {
            return;
        }
        let mut faults = tree_faults(page);
        let Some(first) = faults.next() else { return };
        let words = format!(
            "node {} says {}, and the larger of its children is {}",
            first.node, first.value, first.expected
        );
        let at = NODES_AT + first.node;
        let draft = Draft::new(&FREE_SPACE_MAP_TREE, words).bytes(at, at + 1);
        out.add(draft.fact("nodes", 1 + faults.count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::PageBuilder;
    use pgclinic_format::index_page::AccessMethod;

    #[test]
    fn the_first_wrong_node_is_told_and_all_are_counted() {
        let mut page = PageBuilder::new(8192, &[]).finish(0);
        let trial = |page: &[u8]| {
            ForkTrial::new(AccessMethod::Heap, &[page.to_vec()]).messages(&FreeSpaceMapTree, 0)
        };
        assert!(trial(&page).is_empty());
        page[NODES_AT + 5] = 9;
        let told = trial(&page);
        assert_eq!(told, ["node 2 says 0, and the larger of its children is 9"]);
    }
}
