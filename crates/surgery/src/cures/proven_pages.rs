//! Pages that WAL, backups and other copies prove: single ones in memory, and runs of them, which
//! may be as long as a table, where the recovery keeps them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use pgclinic_cluster::wal::RecoveredBlocks;
use pgclinic_format::BlockNo;

/// A page that is proven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvenPage {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it is proven, a sentence each.
    pub evidence: Vec<String>,
    /// Whether the bytes of the copy that it begins with are right is unknown: it has no data
    /// checksums.
    pub is_unverified: bool,
}

/// Single pages, by the first file of their fork and their block.
pub type ProvenByBlock = BTreeMap<(String, BlockNo), ProvenPage>;

/// All that is proven of a cluster.
#[derive(Default)]
pub struct ProvenPages {
    /// Single pages.
    pub pages: ProvenByBlock,
    /// Blocks past the end of a segment of a table, by its first file and the first of them.
    pub runs: BTreeMap<(String, BlockNo), ProvenRun>,
}

impl ProvenPages {
    /// With what another search proved.
    pub fn add(&mut self, other: ProvenPages) {
        self.pages.extend(other.pages);
        self.runs.extend(other.runs);
    }

    /// The single page of a block.
    pub fn page(&self, path: &str, block: BlockNo) -> Option<&ProvenPage> {
        self.pages.get(&(path.to_owned(), block))
    }
}

impl From<ProvenByBlock> for ProvenPages {
    fn from(pages: ProvenByBlock) -> Self {
        ProvenPages {
            pages,
            ..ProvenPages::default()
        }
    }
}

/// Blocks of one fork without a hole, each of them proven.
#[derive(Clone)]
pub struct ProvenRun {
    /// Which ones.
    pub blocks: Range<BlockNo>,
    /// How the first is proven, a sentence each.
    pub evidence: Vec<String>,
    /// One of them begins with a page of a copy without data checksums.
    pub is_unverified: bool,
    /// Where they are kept: the first block was asked for first, and so on.
    pub recovered: Arc<RecoveredBlocks>,
}

impl ProvenRun {
    /// The page of a block of the run.
    pub(super) fn page(&self, block: BlockNo) -> io::Result<Vec<u8>> {
        let at = block.checked_sub(self.blocks.start).map(|at| at as usize);
        let own = at.and_then(|at| self.recovered.blocks.get(at));
        let own = own.filter(|own| own.address.block == block);
        let page = own.map(|own| self.recovered.page(own)).transpose()?;
        let lost = || io::Error::other(format!("the recovered page of block {block} is lost"));
        page.flatten().ok_or_else(lost)
    }
}

/// The bytes of pages of a run, in order.
#[derive(Clone)]
pub struct PageRun {
    pub(super) run: ProvenRun,
    pub(super) blocks: Range<BlockNo>,
    /// Bytes of the first page that are left out.
    pub(super) skip: usize,
}

impl PageRun {
    /// Hands the bytes out in order.
    pub(crate) fn each(&self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        for block in self.blocks.clone() {
            let page = self.run.page(block)?;
            let skip = if block == self.blocks.start {
                self.skip
            } else {
                0
            };
            take(page.get(skip..).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Of one recovery: what two of them prove is not compared.
impl PartialEq for PageRun {
    fn eq(&self, other: &Self) -> bool {
        (&self.blocks, self.skip) == (&other.blocks, other.skip)
            && Arc::ptr_eq(&self.run.recovered, &other.run.recovered)
    }
}

impl fmt::Debug for PageRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pages {:?} without {} bytes", self.blocks, self.skip)
    }
}
