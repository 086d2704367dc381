//! Whose file a table's file is, by its visibility map: the record that marks a page as all-visible
//! gives the page and the page of the map the same LSN, where hint bits are logged. No two records
//! have one LSN, so that a page with the LSN of another table's map stood in that table's file.
//!
//! Truth: `visibilitymap_set` in `src/backend/access/heap/visibilitymap.c`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pgclinic_format::{Fork, Lsn, Oid, Page};

use crate::cluster::Cluster;
use crate::files::{ForkFiles, read_block};

/// Tablespace and number of a file.
type FileOfTable = (Oid, Oid);

/// LSNs of the pages of visibility maps, with the files that they belong to.
#[derive(Default, Debug)]
pub struct MapPositions {
    /// Nothing where two maps have the same.
    owners: HashMap<Lsn, Option<FileOfTable>>,
}

impl MapPositions {
    /// Of all tables of a database.
    pub fn of(cluster: &Cluster, database: Oid) -> Self {
        let mut found = MapPositions::default();
        let homes = cluster.homes.iter();
        let homes = homes.filter(|home| home.database == database);
        for files in homes.flat_map(|home| cluster.files(home).unwrap_or_default()) {
            if files.fork == Fork::Vm && files.temporary.is_none() {
                found.take(cluster, &files);
            }
        }
        found
    }

    fn take(&mut self, cluster: &Cluster, files: &ForkFiles) {
        let own = (files.home.tablespace, files.filenode);
        let blocks = files.bytes() / u64::from(cluster.build.block_size);
        for block in 0..u32::try_from(blocks).unwrap_or(u32::MAX) {
            let page = read_block(cluster.source().as_ref(), files, cluster.build, block);
            let position = page.as_deref().and_then(Page::parse);
            let Some(position) = position.map(|page| page.pd_lsn()) else {
                return;
            };
            if position == Lsn(0) {
                continue;
            }
            match self.owners.entry(position) {
                Entry::Vacant(free) => {
                    free.insert(Some(own));
                }
                Entry::Occupied(mut taken) if *taken.get() != Some(own) => {
                    taken.insert(None);
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// The file in which a page of a table with this LSN stood; nothing where no map tells.
    #[inline]
    pub fn owner(&self, position: Lsn) -> Option<FileOfTable> {
        self.owners.get(&position).copied().flatten()
    }
}
