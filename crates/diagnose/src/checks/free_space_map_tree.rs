//! The tree on a page of a free space map contradicts itself.
//!
//! What the map says about the heap is not compared: it lags behind, it is not in the WAL, and after a crash it may
//! speak of blocks that were never made. The server asks the page itself before it uses the room.
//!
//! Truth: `src/backend/storage/freespace/README`.

use pgclinic_format::Page;
use pgclinic_format::free_space_map::{NODES_AT, tree_faults};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static FREE_SPACE_MAP_TREE: Rule = Rule {
    name: "free-space-map-tree",
    severity: Severity::Note,
    summary: "a page of a free space map contradicts itself",
    explain: "\
The free space map helps to find a block with room for a new row. On each of its pages a small tree holds, for each \
pair of blocks or branches, the larger amount of room. Here a node says something else than what is under it.

Nothing is lost: the map is only a hint. The server notices such a page when it searches it, mends it, and says so \
only in its debug log (`fixing corrupt FSM block …`). At worst some room is not used until the next `VACUUM`.

It comes about when the machine stops in the middle of writing the page, which no WAL protects. On a page whose \
checksum is wrong too, it is a trace of the same damage.

Nothing needs to be done. `VACUUM` of the table writes the map anew; with the server stopped, the file with the \
ending `_fsm` may also be removed.",
};

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
