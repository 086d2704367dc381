//! A page that stood in the file of another table when it was marked as all-visible.

use pgclinic_cluster::MapPositions;
use pgclinic_format::{Fork, Page};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static PAGE_OF_ANOTHER_TABLE: Rule =
    Rule::from_page(include_str!("../../rules/page-of-another-table.md"));

/// See [`PAGE_OF_ANOTHER_TABLE`].
pub struct PageOfAnotherTable;

impl PageCheck for PageOfAnotherTable {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PAGE_OF_ANOTHER_TABLE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::Heap,
            screened: false,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let files = cx.fork.files;
        let own = (files.home.tablespace, files.filenode);
        let maps = cx.fork.heap.map_positions();
        let lsn = page.pd_lsn();
        let owner = maps.and_then(|maps: &MapPositions| maps.owner(lsn));
        let Some((tablespace, filenode)) = owner.filter(|owner| *owner != own) else {
            return;
        };
        let catalog = cx.fork.heap.catalog();
        let Some(other) = catalog.and_then(|catalog| catalog.by_file(tablespace, filenode)) else {
            return;
        };
        let name = other.qualified_name();
        let message = format!(
            "the page has the LSN {lsn} of the visibility map of {name} (file {filenode}{map}): it is a page of that table, or the map is this one's",
            map = Fork::Vm.suffix()
        );
        let draft = Draft::new(&PAGE_OF_ANOTHER_TABLE, message).bytes(0, 8);
        out.add(
            draft
                .fact("lsn", lsn.to_string())
                .fact("other_table", name)
                .fact("other_filenode", filenode),
        );
    }
}
