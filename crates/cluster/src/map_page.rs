//! Pages of visibility maps as the server takes them: it throws away what it cannot read
//! (`vm_readbuf` in `src/backend/access/heap/visibilitymap.c`).

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, Fork, Page};
use pgclinic_source::Source;

use crate::build::Build;
use crate::cluster::Cluster;
use crate::files::{ForkFiles, read_block};

/// A page of the map in `files`, whose pages have checksums if `is_summed`; nothing where the map
/// ends before it, and where the page is damaged or was never written.
pub fn map_page(
    source: &dyn Source,
    files: &ForkFiles,
    (build, is_summed): (Build, bool),
    number: BlockNo,
) -> Option<Vec<u8>> {
    let bytes = read_block(source, files, build, number)?;
    let page = Page::parse(&bytes).filter(|page| !page.is_new())?;
    // Another page has come to its place: a map has no line pointers.
    (page.line_pointer_count() == 0).then_some(())?;
    let is_right = !is_summed || page_checksum(&bytes, number) == page.pd_checksum();
    (is_right && page.header_is_sane_to_the_server()).then_some(bytes)
}

impl Cluster {
    /// A page of the visibility map of the table with these files.
    pub fn map_page_of(&self, table: &ForkFiles, number: BlockNo) -> Option<Vec<u8>> {
        let map = ForkFiles {
            fork: Fork::Vm,
            ..table.clone()
        };
        let is_summed = self.checksums() == Some(true);
        map_page(
            self.source().as_ref(),
            &map,
            (self.build, is_summed),
            number,
        )
    }
}
