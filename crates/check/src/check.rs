//! What a check is, and what it is given.

use std::ops::Deref;

use pgclinic_cluster::wal::{Recovery, Replay, StartKind, Stop};
use pgclinic_cluster::{Cluster, Comparison, DatabaseContext, ForkContext, read_block};
use pgclinic_format::{BlockNo, Lsn, MultiXactId, Page, Xid};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::btree::KeyOrder;
use crate::findings::Findings;
use crate::heap::context::HeapContext;

/// A check that needs one page and remembers nothing.
pub trait PageCheck: Sync {
    /// What it can say.
    fn rules(&self) -> &'static [&'static Rule];
    /// Which pages it is handed.
    fn wants(&self) -> Wants;
    /// For a screened check: the screen stands in for it only on pages whose rows are all plain,
    /// [`crate::fast_path::FastPathVerdict::Plain`].
    fn passes_plain_rows_only(&self) -> bool {
        false
    }
    /// Looks at the page. Pages of zeros only are never handed out.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings);
    /// Of a page of zeros only, says whether it should have been another.
    fn check_zeroed(&self, _cx: &PageCx<'_>, _out: &mut Findings) {}
}

/// A check of what is no page and belongs to no database: control file, maps, folders.
pub trait ClusterCheck: Sync {
    /// What it can say.
    fn rules(&self) -> &'static [&'static Rule];
    /// Rules of other checks that it says too.
    fn borrows(&self) -> &'static [&'static Rule] {
        const { &[] }
    }
    /// The lowest level at which it runs.
    fn level(&self) -> Level;
    /// Of a cluster that needs recovery it is asked again, about the cluster that recovery leaves.
    fn asks_recovered(&self) -> bool {
        false
    }
    /// Looks at the cluster as a whole.
    fn check(&self, cluster: &Cluster, out: &mut Findings);
}

/// A check of a database's files against its catalogs.
pub trait DatabaseCheck: Sync {
    /// What it can say.
    fn rules(&self) -> &'static [&'static Rule];
    /// The lowest level at which it runs.
    fn level(&self) -> Level;
    /// Of a cluster that needs recovery it is asked again, about the cluster that recovery leaves.
    fn asks_recovered(&self) -> bool {
        false
    }
    /// Looks at one database, or at the shared relations.
    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings);
}

/// Which pages a check is handed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wants {
    /// The lowest level at which it runs.
    pub level: Level,
    /// Kinds of pages.
    pub pages: PageClass,
    /// The check is silent on every page that [`crate::screen`] calls plainly right, so that it
    /// can be left out there; a test holds it to that.
    pub screened: bool,
}

impl Wants {
    /// Every page, at every level.
    pub const EVERY_PAGE: Wants = Wants {
        level: Level::Pages,
        pages: PageClass::Any,
        screened: true,
    };
    /// Pages of tables, TOAST relations and materialised views.
    pub const HEAP: Wants = Wants {
        level: Level::Structure,
        pages: PageClass::Heap,
        screened: true,
    };
    /// Pages of indexes; no screen knows them.
    pub const INDEX: Wants = Wants {
        level: Level::Structure,
        pages: PageClass::Index,
        screened: false,
    };
    /// Pages with line pointers: heap, sequences, and those of indexes that have them.
    pub const LINE_POINTERS: Wants = Wants {
        level: Level::Structure,
        pages: PageClass::LinePointers,
        screened: true,
    };
}

/// Kinds of pages that checks ask for. All but `Any` only get pages whose header the server
/// would accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageClass {
    /// Every page that is not all zero.
    Any,
    /// Main fork of a heap.
    Heap,
    /// Main fork of a TOAST relation.
    Toast,
    /// Main fork, with an array of line pointers.
    LinePointers,
    /// Main fork of an index.
    Index,
    /// Main fork of a sequence.
    Sequence,
    /// Visibility map.
    VisibilityMap,
    /// Free space map.
    FreeSpaceMap,
}

/// Numbers that no transaction, multixact or WAL position on disk can reach, in a cluster that
/// was shut down in good order; nothing is known of one that was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Next transaction.
    pub next_xid: Xid,
    /// Oldest transaction that may still be looked up.
    pub oldest_xid: Xid,
    /// Next multixact.
    pub next_multi: MultiXactId,
    /// Oldest multixact that may still be looked up.
    pub oldest_multi: MultiXactId,
    /// End of the WAL.
    pub wal_end: Lsn,
}

/// Whether the stored checksum is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// Data checksums are off, or nothing tells whether they are on.
    Off,
    /// Right.
    Right,
    /// Wrong.
    Wrong {
        /// What the bytes give.
        computed: u16,
    },
}

/// What is known of the fork a page belongs to, and what its checks ask beside.
pub struct ForkCx<'a> {
    /// The fork.
    pub base: ForkContext<'a>,
    /// The order of a btree's keys.
    pub key_order: Option<KeyOrder>,
    /// Limits, in a cluster that was shut down in good order.
    pub limits: Option<Limits>,
    /// Level of this run.
    pub level: Level,
    /// What checks of heap pages may ask beside.
    pub heap: HeapContext<'a>,
}

impl<'a> Deref for ForkCx<'a> {
    type Target = ForkContext<'a>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl<'a> ForkCx<'a> {
    /// A fork of which nothing is known but what stands in `base`.
    pub fn alone(base: ForkContext<'a>, level: Level) -> Self {
        ForkCx {
            base,
            key_order: None,
            limits: None,
            level,
            heap: HeapContext::default(),
        }
    }

    /// Numbers that nothing on disk can reach: the limits of a cluster that was shut down, or those
    /// that its WAL raises them to in one that needs recovery, if all of that WAL is there. There,
    /// the oldest numbers hold for no single page, and `is_overtaken` must be asked before telling.
    pub fn reach(&self) -> Option<Limits> {
        self.limits.or_else(|| {
            let cluster = self.cluster.filter(|_| !self.may_be_ahead())?;
            let replay = cluster.replay().filter(|replay| replay.is_complete())?;
            let checkpoint = &cluster.control.trusted()?.checkpoint;
            Some(Limits {
                next_xid: replay.next_xid,
                oldest_xid: checkpoint.oldest_xid,
                next_multi: replay.next_multi,
                oldest_multi: checkpoint.oldest_multi,
                wal_end: replay.end.record,
            })
        })
    }

    /// The end of the WAL that is there; nothing where more of it is expected elsewhere, or lies
    /// here and cannot be read.
    pub fn wal_end(&self) -> Option<Lsn> {
        let running = self.is_running();
        let here = |replay: &&Replay| match replay.stop {
            Stop::End => true,
            Stop::GoesOn { .. } => !running,
            Stop::Elsewhere => !running && self.has_all_of_a_crash(replay),
        };
        let replayed = || self.cluster?.replay().filter(here);
        match self.limits {
            Some(limits) => Some(limits.wal_end),
            None => replayed().map(|replay| replay.end.record),
        }
    }

    /// It crashed, and all WAL that there was after the checkpoint lies here or is lost.
    fn has_all_of_a_crash(&self, replay: &Replay) -> bool {
        let recovery = self.cluster.and_then(Cluster::recovery);
        let crashed = |recovery: &Recovery| {
            recovery.start.kind == StartKind::Crash && !recovery.files.is_unreadable
        };
        recovery.is_some_and(crashed) && replay.troubles.is_empty() && replay.checkpoint.is_some()
    }

    /// A server is at work, and has gone on since its WAL was read.
    pub fn is_overtaken(&self) -> bool {
        self.limits.is_none() && !self.may_compare(Comparison::AnythingWithWalEnd)
    }
}

/// What is known of a page.
pub struct PageCx<'a> {
    /// Its fork.
    pub fork: &'a ForkCx<'a>,
    /// Block through all segments.
    pub block: BlockNo,
    /// Its checksum.
    pub checksum: Checksum,
}

impl PageCx<'_> {
    /// Another block of the same fork, for asking whether it holds the same; `None` when it is
    /// not there or there is no cluster to read it from.
    pub fn read_block(&self, block: BlockNo) -> Option<Vec<u8>> {
        let source = self.fork.source?;
        read_block(source, self.fork.files, self.fork.build, block)
    }
}
