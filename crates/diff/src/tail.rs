//! Blocks behind an empty one, as witnesses: where a table was truncated and has grown again,
//! everything behind the cut is newer than the cut.
//!
//! ```text
//! A, later   old  old  0    new  0    new       was cut: B's version of block 2 may be gone
//! A, later   old  old  0    old  old  new       was not: something is lost
//! ```

use std::sync::{Mutex, PoisonError};

use pgclinic_cluster::{Cluster, ForkContext, ForkFiles};
use pgclinic_format::{BlockNo, Lsn};
use pgclinic_scan::PageReader;

use crate::page_comparison::GIST_BUILD_LSN;

/// The blocks of one fork of a copy behind a place, as far as they were asked.
#[derive(Default)]
pub(crate) struct Tail(Mutex<Option<Newer>>);

/// Every block from this one on is later than this, or empty.
#[derive(Clone, Copy)]
struct Newer {
    first: u64,
    than: Lsn,
}

impl Tail {
    /// One of the blocks from `first` on is not later than `lsn`.
    pub(crate) fn has_one_as_old(
        &self,
        (cluster, files): (&Cluster, &ForkFiles),
        first: u64,
        lsn: Lsn,
    ) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some_and(|own| own.first <= first && lsn <= own.than) {
            return false;
        }
        let found = is_one_as_old(cluster, files, first, lsn);
        if !found {
            *known = Some(Newer { first, than: lsn });
        }
        found
    }
}

fn is_one_as_old(cluster: &Cluster, files: &ForkFiles, first: u64, lsn: Lsn) -> bool {
    let build = cluster.build;
    let fork = ForkContext {
        blocks: files.blocks(build.block_size, build.segment_bytes),
        ..ForkContext::nameless(build, files)
    };
    let mut pages = PageReader::new(cluster.source().as_ref(), &fork);
    let behind = (first..pages.blocks()).map_while(|block| BlockNo::try_from(block).ok());
    let mut dates = behind.filter_map(|block| Some(pages.page(block)?.pd_lsn()));
    dates.any(|own| own > GIST_BUILD_LSN && own <= lsn)
}
