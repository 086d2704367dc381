//! The highest numbers that pages carry: transactions and multixacts of rows, OIDs of catalogs,
//! LSNs; and what rows say of transactions whose status is lost.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use pgclinic_cluster::{Cluster, ForkContext, Persistence, RelKind};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::heap_tuple::HEAP_XMAX_IS_MULTI;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, HeapTuple, LpFlags, Lsn, MultiXactId, Page, Xid};
use pgclinic_model::Progress;
use pgclinic_model::document::NotChecked;
use pgclinic_scan::{
    Consumer, Cursor, Fault, ForkTask, InternalFault, LegOf, Scan, Window, Writes,
};

use super::asked::Asked;
use super::databases::each_database;
use super::far_lsns::{FarLsns, Judged, PageSum};
use super::numbers::{Numbers, Seen, raise, raise_to};
use super::votes::{Votes, add_votes, vote};

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
    /// Pages whose LSN lies far ahead of all WAL that is known.
    pub(super) far: FarLsns,
    /// What rows say of the transactions that are asked of. Where nearly all pages have a right
    /// checksum, those of the others are not heard.
    pub(super) votes: BTreeMap<u32, Votes>,
    votes_of_wrong: BTreeMap<u32, Votes>,
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
    /// An LSN after this needs proof.
    pub(super) lsn_max: Lsn,
    pub(super) redo: Option<Lsn>,
    /// Transactions whose status is lost.
    pub(super) asked: Asked,
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
        progress.foresee();
        let report = scan.run(&pass);
        let internal = report.internal.iter().map(InternalFault::not_checked);
        lock(&all).not_read.extend(internal);
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let of_wrong = std::mem::take(&mut all.votes_of_wrong);
    if !all.has_checksums() {
        add_votes(&mut all.votes, of_wrong);
    }
    all
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
        let sum = sum_of(page, bytes, block);
        let (count, numbers) = match sum {
            PageSum::None => (&mut counters.checksums_none, &mut counters.sound),
            PageSum::Right => (&mut counters.checksums_right, &mut counters.sound),
            PageSum::Wrong => (&mut counters.checksums_wrong, &mut counters.wrong),
        };
        *count += 1;
        if !page.header_is_sane_to_the_server() {
            return;
        }
        let at = |item| Seen {
            path: share.path.clone(),
            block,
            item,
        };
        let lsn = page.pd_lsn();
        if has_place_in_wal(fork) && lsn > self.bounds.lsn_max {
            let relation = format!("{}/{}", fork.files.home.folder, fork.files.filenode);
            counters.far.see(lsn, sum, &relation, at(0));
        } else {
            self.lsn(fork, lsn, &|| at(0), numbers);
        }
        if is_heap(fork, page) {
            let catalog = has_oid_first(fork);
            for (item, pointer) in page.line_pointers() {
                let is_row = pointer.flags() == LpFlags::Normal;
                let tuple = is_row.then(|| page.item(pointer)).flatten();
                let Some(tuple) = tuple.and_then(HeapTuple::parse) else {
                    continue;
                };
                self.tuple(tuple, catalog, &|| at(item), numbers);
                let votes = match sum {
                    PageSum::Wrong => &mut counters.votes_of_wrong,
                    PageSum::Right | PageSum::None => &mut counters.votes,
                };
                vote(tuple, &self.bounds.asked, votes);
            }
        }
    }

    fn lsn(&self, fork: &ForkContext<'_>, lsn: Lsn, at: &dyn Fn() -> Seen, numbers: &mut Numbers) {
        if !has_place_in_wal(fork) {
            return raise(&mut numbers.unlogged_lsn, lsn, at);
        }
        if self.bounds.redo.is_some_and(|redo| lsn > redo) {
            numbers.younger_pages += 1;
        }
        raise(&mut numbers.lsn, lsn, at);
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
}

fn sum_of(page: Page<'_>, bytes: &[u8], block: BlockNo) -> PageSum {
    match page.pd_checksum() {
        0 => PageSum::None,
        stored if stored == page_checksum(bytes, block) => PageSum::Right,
        _ => PageSum::Wrong,
    }
}

/// LSNs of unlogged relations are counted by themselves.
fn has_place_in_wal(fork: &ForkContext<'_>) -> bool {
    let relation = fork.relation;
    relation.is_none_or(|relation| relation.persistence == Persistence::Permanent)
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

impl PageCounters {
    fn add(&mut self, other: PageCounters) {
        self.pages += other.pages;
        self.checksums_right += other.checksums_right;
        self.checksums_none += other.checksums_none;
        self.checksums_wrong += other.checksums_wrong;
        self.sound.add(other.sound);
        self.wrong.add(other.wrong);
        self.far.add(other.far);
        add_votes(&mut self.votes, other.votes);
        add_votes(&mut self.votes_of_wrong, other.votes_of_wrong);
        self.not_read.extend(other.not_read);
    }

    /// Nearly every page carries a right checksum, so that data checksums were on. A page whose
    /// checksum is wrong then is a damaged one.
    pub(super) fn has_checksums(&self) -> bool {
        let (right, all) = (self.checksums_right, self.pages);
        right > 0 && right.saturating_mul(100) >= all.saturating_mul(99)
    }

    /// The numbers of pages that can be believed.
    pub(super) fn numbers(&self) -> Numbers {
        let mut numbers = self.sound.clone();
        if !self.has_checksums() {
            numbers.add(self.wrong.clone());
        }
        raise_to(&mut numbers.lsn, self.far().believed);
        numbers
    }

    /// What is made of pages whose LSN lies far ahead of all WAL that is known.
    pub(super) fn far(&self) -> Judged {
        self.far.judged(self.has_checksums())
    }
}
