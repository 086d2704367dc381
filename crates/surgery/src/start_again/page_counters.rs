//! The highest numbers that pages carry: transactions and multixacts of rows, OIDs of catalogs,
//! LSNs; and what rows say of transactions whose status is lost.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use pgclinic_cluster::{Cluster, ForkContext, Persistence, RelKind};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::heap_tuple::{
    HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_INVALID,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, HeapTuple, LpFlags, Lsn, MultiXactId, Oid, Page, Xid};
use pgclinic_model::Progress;
use pgclinic_model::document::NotChecked;
use pgclinic_scan::{
    Consumer, Cursor, Fault, ForkTask, InternalFault, LegOf, Scan, Window, Writes,
};

use super::databases::each_database;

/// Where a number was seen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Seen {
    /// The first file of the fork.
    pub(super) path: String,
    pub(super) block: BlockNo,
    /// 0 for the page.
    pub(super) item: u16,
}

/// A number with the place of the row or page that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Highest<T> {
    pub(super) value: T,
    pub(super) at: Seen,
}

/// The highest numbers of some pages. Transactions and multixacts count from `from`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Numbers {
    /// Distance from the oldest one.
    pub(super) xid: Option<Highest<u32>>,
    pub(super) multi: Option<Highest<u32>>,
    pub(super) oid: Option<Highest<Oid>>,
    pub(super) lsn: Option<Highest<Lsn>>,
    /// Of unlogged relations, which have no place in WAL.
    pub(super) unlogged_lsn: Option<Highest<Lsn>>,
    /// Numbers that lie farther than files reach, and one of them.
    pub(super) beyond: u64,
    pub(super) one_beyond: Option<Highest<u32>>,
    /// Pages that were changed after the redo point.
    pub(super) younger_pages: u64,
}

/// What rows say of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Votes {
    pub(super) committed: u64,
    pub(super) aborted: u64,
    /// Rows that would ask `pg_xact`.
    pub(super) unhinted: u64,
}

/// All that was counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PageCounters {
    pub(super) pages: u64,
    pub(super) checksums_right: u64,
    pub(super) checksums_none: u64,
    pub(super) checksums_wrong: u64,
    /// Of pages whose checksum is right, or that have none.
    pub(super) sound: Numbers,
    /// Of the others.
    pub(super) wrong: Numbers,
    pub(super) votes: BTreeMap<u32, Votes>,
    pub(super) not_read: Vec<NotChecked>,
}

/// What numbers are counted from, and how far they may be believed.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) oldest_xid: Xid,
    /// Transactions that are farther from the oldest one than this are not believed.
    pub(super) xids_max: u32,
    pub(super) oldest_multi: MultiXactId,
    pub(super) multis_max: u32,
    /// An LSN after this is not believed.
    pub(super) lsn_max: Lsn,
    pub(super) redo: Option<Lsn>,
    /// Transactions whose status is lost: from here, so many.
    pub(super) asked: Vec<(Xid, u32)>,
}

/// Reads all pages of all databases.
pub(super) fn count_pages(
    cluster: &Cluster,
    bounds: &Bounds,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> PageCounters {
    let all: Mutex<PageCounters> = Mutex::default();
    each_database(cluster, &mut |database| {
        let contexts: Vec<ForkContext<'_>> = database
            .forks
            .iter()
            .map(|files| ForkContext::new(&database, files))
            .collect();
        let pass = Pass {
            contexts: &contexts,
            bounds,
            all: &all,
        };
        let forks = database.forks.iter().enumerate();
        let forks = forks.map(|(number, files)| ForkTask::whole(number, files, cluster.build));
        let scan = Scan {
            source: cluster.source().as_ref(),
            forks: forks.collect(),
            threads,
            progress,
            writes: Writes::Nobody,
        };
        progress.expect(scan.bytes());
        let report = scan.run(&pass);
        let internal = report.internal.iter().map(InternalFault::not_checked);
        lock(&all).not_read.extend(internal);
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock(all: &Mutex<PageCounters>) -> std::sync::MutexGuard<'_, PageCounters> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Pass<'p> {
    contexts: &'p [ForkContext<'p>],
    bounds: &'p Bounds,
    all: &'p Mutex<PageCounters>,
}

/// What one worker has counted of one fork.
struct Share {
    number: usize,
    path: String,
    counters: PageCounters,
}

impl Consumer for Pass<'_> {
    type Worker = ();
    type Share = Share;

    fn begin_worker(&self) {}

    fn begin_fork(&self, fork: &ForkTask<'_>, (): &mut ()) -> Share {
        Share {
            number: fork.number,
            path: fork.files.path(0),
            counters: PageCounters::default(),
        }
    }

    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64 {
        let Some(context) = self.contexts.get(leg.share.number) else {
            return window.bytes().len() as u64;
        };
        for (block, bytes) in window.pages() {
            cursor.at(block);
            self.page(context, bytes, block, &mut leg.share);
        }
        window.half_page().len() as u64
    }

    fn fault(&self, fault: &Fault<'_>, leg: &mut LegOf<Self>) {
        leg.share.counters.not_read.push(NotChecked {
            what: format!("{} from block {}", fault.path, fault.first_block),
            why: fault.kind.why(),
            inherent: false,
        });
    }

    fn merge(&self, _: &ForkTask<'_>, shares: Vec<Share>) {
        let mut all = lock(self.all);
        for share in shares {
            all.add(share.counters);
        }
    }
}

impl Pass<'_> {
    fn page(&self, fork: &ForkContext<'_>, bytes: &[u8], block: BlockNo, share: &mut Share) {
        let Some(page) = Page::parse(bytes).filter(|page| !page.is_new()) else {
            return;
        };
        let counters = &mut share.counters;
        counters.pages += 1;
        let stored = page.pd_checksum();
        let numbers = if stored == 0 {
            counters.checksums_none += 1;
            &mut counters.sound
        } else if stored == page_checksum(bytes, block) {
            counters.checksums_right += 1;
            &mut counters.sound
        } else {
            counters.checksums_wrong += 1;
            &mut counters.wrong
        };
        if !page.header_is_sane_to_the_server() {
            return;
        }
        let at = |item| Seen {
            path: share.path.clone(),
            block,
            item,
        };
        self.lsn(fork, page.pd_lsn(), &|| at(0), numbers);
        if is_heap(fork, page) {
            let catalog = has_oid_first(fork);
            for (item, pointer) in page.line_pointers() {
                let is_row = pointer.flags() == LpFlags::Normal;
                let tuple = is_row.then(|| page.item(pointer)).flatten();
                let Some(tuple) = tuple.and_then(HeapTuple::parse) else {
                    continue;
                };
                self.tuple(tuple, catalog, &|| at(item), numbers);
                self.vote(tuple, &mut counters.votes);
            }
        }
    }

    fn lsn(&self, fork: &ForkContext<'_>, lsn: Lsn, at: &dyn Fn() -> Seen, numbers: &mut Numbers) {
        let is_unlogged = fork
            .relation
            .is_some_and(|relation| relation.persistence != Persistence::Permanent);
        if is_unlogged {
            return raise(&mut numbers.unlogged_lsn, lsn, at);
        }
        if self.bounds.redo.is_some_and(|redo| lsn > redo) {
            numbers.younger_pages += 1;
        }
        if lsn <= self.bounds.lsn_max {
            raise(&mut numbers.lsn, lsn, at);
        }
    }

    fn tuple(
        &self,
        tuple: HeapTuple<'_>,
        first_is_oid: FirstColumn,
        at: &dyn Fn() -> Seen,
        numbers: &mut Numbers,
    ) {
        let bounds = self.bounds;
        let mut xid = |xid: Xid| {
            if !xid.is_normal() {
                return;
            }
            let distance = xid.0.wrapping_sub(bounds.oldest_xid.0);
            if distance <= bounds.xids_max {
                raise(&mut numbers.xid, distance, at);
            } else if distance < u32::MAX / 2 {
                numbers.beyond += 1;
                raise(&mut numbers.one_beyond, distance, at);
            }
        };
        if !tuple.xmin_is_frozen() {
            xid(tuple.t_xmin());
        }
        if tuple.has(HEAP_XMAX_IS_MULTI) {
            let distance = tuple.t_xmax().0.wrapping_sub(bounds.oldest_multi.0);
            if distance <= bounds.multis_max {
                raise(&mut numbers.multi, distance, at);
            }
        } else {
            xid(tuple.t_xmax());
        }
        if first_is_oid == FirstColumn::Oid
            && let Some(oid) = first_word(tuple)
        {
            raise(&mut numbers.oid, oid, at);
        }
    }

    /// What the row's hint bits say of its transactions, where the status of those is lost.
    fn vote(&self, tuple: HeapTuple<'_>, votes: &mut BTreeMap<u32, Votes>) {
        let asked = &self.bounds.asked;
        let is_asked = |xid: Xid| {
            let within = |(first, count): &(Xid, u32)| xid.0.wrapping_sub(first.0) < *count;
            xid.is_normal() && asked.iter().any(within)
        };
        let xmin = tuple.t_xmin();
        if is_asked(xmin) && !tuple.xmin_is_frozen() {
            let own = votes.entry(xmin.0).or_default();
            if tuple.has(HEAP_XMIN_COMMITTED) {
                own.committed += 1;
            } else if tuple.has(HEAP_XMIN_INVALID) {
                own.aborted += 1;
            } else {
                own.unhinted += 1;
            }
        }
        let xmax = tuple.t_xmax();
        // An xmax that counts for nothing may be that of a lock: it says nothing of its
        // transaction, and nobody asks.
        let counts = !tuple.has(HEAP_XMAX_IS_MULTI)
            && !tuple.has(HEAP_XMAX_INVALID)
            && !tuple.xmax_is_locked_only();
        if counts && is_asked(xmax) {
            let own = votes.entry(xmax.0).or_default();
            if tuple.has(HEAP_XMAX_COMMITTED) {
                own.committed += 1;
            } else {
                own.unhinted += 1;
            }
        }
    }
}

/// Whether a row begins with an OID that the server counted up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstColumn {
    Oid,
    Other,
}

/// Catalogs whose rows have an OID, and TOAST values, which take one each.
fn has_oid_first(fork: &ForkContext<'_>) -> FirstColumn {
    let first = fork.relation.and_then(|relation| {
        let is_own = relation.kind == RelKind::Toast || relation.schema == "pg_catalog";
        let first = relation.columns.as_ref()?.first()?;
        is_own.then_some(first.name.as_str())
    });
    match first {
        Some("oid" | "chunk_id" | "loid") => FirstColumn::Oid,
        _ => FirstColumn::Other,
    }
}

fn first_word(tuple: HeapTuple<'_>) -> Option<u32> {
    let data = tuple.bytes().get(usize::from(tuple.t_hoff())..)?;
    Some(u32::from_le_bytes(*data.first_chunk()?))
}

/// By the catalogs; where they do not tell, by the page.
fn is_heap(fork: &ForkContext<'_>, page: Page<'_>) -> bool {
    let method = fork.method.or_else(|| AccessMethod::guess(page));
    fork.files.fork == Fork::Main && method == Some(AccessMethod::Heap)
}

/// Pages of a worker come in rising order, so that the first of equal numbers stays.
fn raise<T: PartialOrd + Copy>(own: &mut Option<Highest<T>>, value: T, at: &dyn Fn() -> Seen) {
    if own.as_ref().is_none_or(|own| value > own.value) {
        *own = Some(Highest { value, at: at() });
    }
}

/// Of equal numbers the one at the lowest place, whoever saw it.
fn raise_to<T: PartialOrd + Copy>(own: &mut Option<Highest<T>>, other: Option<Highest<T>>) {
    let Some(other) = other else { return };
    let is_higher = own.as_ref().is_none_or(|own| {
        other.value > own.value || (other.value == own.value && other.at < own.at)
    });
    if is_higher {
        *own = Some(other);
    }
}

impl Numbers {
    /// Those of both.
    pub(super) fn add(&mut self, other: Numbers) {
        raise_to(&mut self.xid, other.xid);
        raise_to(&mut self.multi, other.multi);
        raise_to(&mut self.oid, other.oid);
        raise_to(&mut self.lsn, other.lsn);
        raise_to(&mut self.unlogged_lsn, other.unlogged_lsn);
        raise_to(&mut self.one_beyond, other.one_beyond);
        self.beyond += other.beyond;
        self.younger_pages += other.younger_pages;
    }
}

impl PageCounters {
    fn add(&mut self, other: PageCounters) {
        self.pages += other.pages;
        self.checksums_right += other.checksums_right;
        self.checksums_none += other.checksums_none;
        self.checksums_wrong += other.checksums_wrong;
        self.sound.add(other.sound);
        self.wrong.add(other.wrong);
        for (xid, votes) in other.votes {
            let own = self.votes.entry(xid).or_default();
            own.committed += votes.committed;
            own.aborted += votes.aborted;
            own.unhinted += votes.unhinted;
        }
        self.not_read.extend(other.not_read);
    }

    /// Nearly every page carries a right checksum, so that data checksums were on. A page whose
    /// checksum is wrong then is a damaged one.
    pub(super) fn has_checksums(&self) -> bool {
        self.checksums_right > 0 && self.checksums_right >= self.pages / 100 * 99
    }

    /// The numbers of pages that can be believed.
    pub(super) fn numbers(&self) -> Numbers {
        let mut numbers = self.sound.clone();
        if !self.has_checksums() {
            numbers.add(self.wrong.clone());
        }
        numbers
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.item {
            0 => write!(f, "{}:{}", self.path, self.block),
            item => write!(f, "{}:{}:{item}", self.path, self.block),
        }
    }
}
