//! Several pages in one fork of a made-up cluster, for tests of checks.

use std::sync::Arc;

use pgclinic_cluster::{Build, DatabaseDirectory, ForkContext, ForkFiles, Segment};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Layout, Lsn, MultiXactId, Page, Xid};
use pgclinic_model::document::Level;
use pgclinic_source::{Memory, Source};

use crate::check::{Checksum, ForkCx, Limits, PageCheck, PageCx};
use crate::findings::{Draft, Findings};

/// Pages of 8 kB as the main fork `base/5/16384` of PostgreSQL 18.
pub(crate) struct ForkTrial {
    source: Arc<Memory>,
    files: ForkFiles,
    method: AccessMethod,
    limits: Option<Limits>,
    pages: Vec<Vec<u8>>,
}

impl ForkTrial {
    /// The next transaction of the cluster.
    pub(crate) const NEXT_XID: Xid = Xid(1000);
    /// The end of its WAL.
    pub(crate) const WAL_END: Lsn = Lsn(1 << 32);

    /// These pages of a relation of this access method.
    pub(crate) fn new(method: AccessMethod, pages: &[Vec<u8>]) -> Self {
        let bytes = pages.concat();
        let home = DatabaseDirectory {
            tablespace: pgclinic_format::oid::DEFAULT_TABLESPACE,
            database: 5,
            folder: "base/5".into(),
        };
        let segments = vec![Segment {
            number: 0,
            len: bytes.len() as u64,
        }];
        let files = ForkFiles {
            home,
            filenode: 16384,
            fork: Fork::Main,
            temporary: None,
            segments,
        };
        let limits = Limits {
            next_xid: Self::NEXT_XID,
            oldest_xid: Xid(700),
            next_multi: MultiXactId(10),
            oldest_multi: MultiXactId(1),
            wal_end: Self::WAL_END,
        };
        let source = Arc::new(Memory::new("trial").with("base/5/16384", bytes));
        ForkTrial {
            source,
            files,
            method,
            limits: Some(limits),
            pages: pages.to_vec(),
        }
    }

    /// The same in a cluster that was not shut down in good order.
    pub(crate) fn without_limits(mut self) -> Self {
        self.limits = None;
        self
    }

    /// What the check says about a block.
    pub(crate) fn drafts(&self, check: &dyn PageCheck, block: BlockNo) -> Vec<Draft> {
        let fork = self.fork();
        let page = &self.pages[block as usize];
        let page = Page::parse(page).expect("a page of 8 kB");
        let cx = PageCx {
            fork: &fork,
            block,
            checksum: Checksum::Off,
        };
        let mut out = Findings::default();
        check.check(page, &cx, &mut out);
        out.take_drafts()
    }

    /// The fork, for a pass over all of its pages.
    pub(crate) fn fork(&self) -> ForkCx<'_> {
        let source: &dyn Source = self.source.as_ref();
        let base = ForkContext {
            source: Some(source),
            layout: Layout::of_major(18),
            method: Some(self.method),
            blocks: self.pages.len() as u64,
            ..ForkContext::nameless(Build::USUAL, &self.files)
        };
        ForkCx {
            limits: self.limits,
            ..ForkCx::alone(base, Level::Structure)
        }
    }

    /// The same, only the words.
    pub(crate) fn messages(&self, check: &dyn PageCheck, block: BlockNo) -> Vec<String> {
        self.drafts(check, block)
            .into_iter()
            .map(|draft| draft.message)
            .collect()
    }
}
