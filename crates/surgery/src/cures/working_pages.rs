//! Pages as they are on disk, and as the cures of a plan leave them one after the other.

use pgclinic_cluster::{Cluster, ForkFiles, read_block};
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::document::PageChange;
use pgclinic_model::plan::{Change, Patch};

use crate::error::{Error, Result};

/// One page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WorkingPage {
    pub(super) path: String,
    pub(super) fork: Fork,
    pub(super) block: BlockNo,
    /// Of its first byte in the file.
    offset: u64,
    /// On disk.
    pub(super) before: Vec<u8>,
    /// After the cures up to now.
    pub(super) now: Vec<u8>,
}

/// Every page that a plan touches, in the order in which it met them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct WorkingPages {
    pages: Vec<WorkingPage>,
}

impl WorkingPages {
    /// A page, read once.
    pub(super) fn page(
        &mut self,
        cluster: &Cluster,
        files: &ForkFiles,
        block: BlockNo,
    ) -> Result<&mut WorkingPage> {
        let build = cluster.build;
        let per_segment = build.segment_blocks().max(1);
        let segment = u32::try_from(u64::from(block) / per_segment).unwrap_or(u32::MAX);
        let path = files.path(segment);
        let known = self
            .pages
            .iter()
            .position(|own| own.path == path && own.block == block);
        let index = match known {
            Some(index) => index,
            None => {
                let bytes = read_block(cluster.source().as_ref(), files, build, block);
                let before = bytes.ok_or_else(|| Error::Cure {
                    place: format!("{path}, block {block}"),
                    why: "the page cannot be read".into(),
                })?;
                self.pages.push(WorkingPage {
                    offset: u64::from(block) % per_segment * u64::from(build.block_size),
                    fork: files.fork,
                    block,
                    now: before.clone(),
                    before,
                    path,
                });
                self.pages.len() - 1
            }
        };
        Ok(self.pages.get_mut(index).expect("found or pushed above"))
    }

    /// All that differs from the disk. Maps come first: a map that says too little is right at any
    /// moment, one that says too much is not.
    pub(super) fn patch(&self) -> Patch {
        let is_map = |page: &&WorkingPage| page.fork == Fork::Vm;
        let maps = self.pages.iter().filter(is_map);
        let others = self.pages.iter().filter(|page| !is_map(page));
        let changes = maps.chain(others);
        Patch {
            changes: changes
                .filter_map(|page| page.change(&page.before, &page.now))
                .collect(),
        }
    }
}

impl WorkingPage {
    /// Takes the page on; what that changes, if anything.
    pub(super) fn put(&mut self, after: Vec<u8>) -> Option<PageChange> {
        let change = self.change(&self.now, &after)?;
        let page = PageChange {
            path: self.path.clone(),
            fork: self.fork,
            block: self.block,
            before: blake3::hash(&self.now).to_hex().to_string(),
            after: blake3::hash(&after).to_hex().to_string(),
            change,
        };
        self.now = after;
        Some(page)
    }

    fn change(&self, before: &[u8], after: &[u8]) -> Option<Change> {
        assert!(
            before.len() == after.len(),
            "a cure keeps the length of a page"
        );
        let differs = |(old, new): (&u8, &u8)| old != new;
        let start = before.iter().zip(after).position(differs)?;
        let end = before.iter().zip(after).rposition(differs)? + 1;
        Some(Change::Bytes {
            path: self.path.clone(),
            offset: self.offset + start as u64,
            before: before.get(start..end)?.to_vec(),
            after: after.get(start..end)?.to_vec(),
        })
    }
}
