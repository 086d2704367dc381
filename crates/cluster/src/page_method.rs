//! What a relation file seems to hold, by its first pages that say anything.

use pgclinic_format::Page;
use pgclinic_format::index_page::AccessMethod;

use crate::cluster::Cluster;
use crate::files::ForkFiles;

/// Bytes of each segment that are looked at.
const HEAD_BYTES: usize = 256 << 10;

impl Cluster {
    /// What the first pages that say anything are of.
    pub fn method_of_content(&self, files: &ForkFiles) -> Option<AccessMethod> {
        let page_bytes = usize::try_from(self.build.block_size).unwrap_or(8192);
        files.segments.iter().find_map(|segment| {
            let mut head = vec![0; HEAD_BYTES];
            let path = files.path(segment.number);
            let read = self.source.read_at(&path, 0, &mut head).unwrap_or(0);
            head.truncate(read);
            let mut pages = head.chunks_exact(page_bytes).filter_map(Page::parse);
            pages.find_map(|page| {
                if page.is_new() {
                    None
                } else {
                    AccessMethod::guess(page)
                }
            })
        })
    }
}
