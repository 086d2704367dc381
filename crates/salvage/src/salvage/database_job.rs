//! The threads of a salvage: they take pieces of tables in order, find the rows and print them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pgclinic_cluster::{
    Charset, ChunkIndex, ChunkRun, Cluster, ForkFiles, MapPositions, Pieces, RunCollector,
};
use pgclinic_format::datum::Style;
use pgclinic_format::{BlockNo, Lsn, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{TableAccount, Tally};
use pgclinic_spill::{Limit, Part};

use super::finished_tables::FinishedTables;
use super::plan::Planned;
use super::row_sink::{Finished, RowSink};
use super::suspects::suspect_name;
use super::{SalvageError, SalvageOptions, pass};
use crate::shape::Table;
use crate::texts::Refusal;

/// A table at work.
pub(super) struct TableWork {
    pub(super) table: Table,
    pub(super) pieces: Pieces,
    pub(super) blocks: u64,
    pub(super) toast: Option<ToastWork>,
    account: Mutex<TableAccount>,
    /// By column, what had no place in it.
    refusals: Mutex<BTreeMap<usize, Refusal>>,
    /// Pieces of the table that are not printed yet.
    left: AtomicU64,
}

/// The TOAST relation of a table: its pieces, and the index that they give together.
pub(super) struct ToastWork {
    pub(super) pieces: Pieces,
    gathered: Mutex<Gathered>,
    is_ready: Condvar,
    /// Pages of it whose bytes may not be what the server wrote.
    doubted: Mutex<BTreeSet<BlockNo>>,
}

struct Gathered {
    /// Until the last piece comes.
    collector: Option<RunCollector>,
    left: u64,
    index: Option<Arc<ChunkIndex>>,
}

/// All that the threads share.
pub(crate) struct DatabaseJob<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) options: &'a SalvageOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) charset: Charset,
    pub(super) style: Arc<Style>,
    pub(super) tables: Vec<TableWork>,
    pub(super) outlet: RowSink<'a>,
    /// Whose pages they are, by visibility maps.
    pub(super) maps: MapPositions,
    alone: Mutex<()>,
    /// Nothing but these blocks, which are in order.
    only: Option<&'a [BlockNo]>,
    /// Where tables are noted that are whole.
    notes: Option<&'a FinishedTables<'a>>,
    /// The end of the write-ahead log that was followed, beside a server at work.
    moment: Option<Lsn>,
    /// See [`last_change`].
    wal_end: Option<Lsn>,
}

/// Where the write-ahead log ends, if all of it seems to be there, or nothing is to be recovered:
/// no page can have been changed later.
pub(super) fn last_change(cluster: &Cluster) -> Option<Lsn> {
    let end = cluster.wal_end().or_else(|| cluster.settled_wal_end());
    end.filter(|_| !cluster.is_running())
}

impl<'a> DatabaseJob<'a> {
    /// `outlet` is made for tables, each with the number of its pieces.
    pub(crate) fn new(
        cluster: &'a Cluster,
        options: &'a SalvageOptions,
        progress: &'a dyn Progress,
        planned: Vec<Planned>,
        charset: Charset,
        outlet: impl FnOnce(&[(&Table, u64)]) -> RowSink<'a>,
    ) -> Self {
        let tables: Vec<TableWork> = planned
            .into_iter()
            .map(|planned| TableWork::of(planned, cluster, options))
            .collect();
        for work in &tables {
            let toast = work.toast.as_ref().map_or(0, |toast| toast.pieces.bytes());
            progress.expect(work.pieces.bytes() + toast);
        }
        let pieces: Vec<(&Table, u64)> = tables
            .iter()
            .map(|work| (&work.table, work.piece_count()))
            .collect();
        let outlet = outlet(&pieces);
        // Through a server each look would be a question.
        let database = tables.first().map(|work| work.table.database_oid);
        let database = database.filter(|oid| *oid != 0 && !cluster.is_running());
        let maps = database.map(|oid| MapPositions::of(cluster, oid));
        DatabaseJob {
            maps: maps.unwrap_or_default(),
            cluster,
            options,
            progress,
            charset,
            style: Arc::clone(&options.text.style),
            tables,
            outlet,
            alone: Mutex::default(),
            only: None,
            notes: None,
            moment: cluster.replayed_to().filter(|_| cluster.is_running()),
            wal_end: last_change(cluster),
        }
    }

    /// The same in a style that knows the names of objects.
    pub(crate) fn styled(mut self, style: Arc<Style>) -> Self {
        self.style = style;
        self
    }

    /// The same with a place where tables are noted that are whole.
    pub(crate) fn noting(mut self, notes: Option<&'a FinishedTables<'a>>) -> Self {
        self.notes = notes;
        self
    }

    /// Notes the tables that became whole.
    pub(super) fn note_finished(&self) {
        for (table, finished) in self.outlet.take_finished() {
            let Some(work) = self.tables.get(table) else {
                continue;
            };
            let account = work.account.lock();
            let account = account.unwrap_or_else(PoisonError::into_inner).clone();
            let name = self.outlet.names().into_iter().nth(table);
            let mut account = with_end(account, name.unwrap_or_default(), finished);
            account.settle();
            let noted = self.notes.map_or(Ok(()), |notes| notes.add(&account));
            match noted {
                Ok(()) => self.outlet.note(table, &account),
                Err(failure) => self.outlet.stop(Some(failure)),
            }
        }
    }

    /// The same for some blocks of its tables, in order; heads and tails of files are left out.
    pub(crate) fn only(mut self, blocks: &'a [BlockNo]) -> Self {
        self.only = Some(blocks);
        self
    }

    /// Bytes of a page.
    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(self.cluster.build.block_size).max(1)
    }

    /// Rows are all that is wanted.
    pub(super) fn is_partial(&self) -> bool {
        self.only.is_some()
    }

    pub(super) fn takes_block(&self, block: BlockNo) -> bool {
        let is_one = |only: &[BlockNo]| only.binary_search(&block).is_ok();
        self.only.is_none_or(is_one) && self.options.selection.takes_block(block.into())
    }

    /// Some of these blocks are wanted.
    pub(super) fn takes_some(&self, blocks: Range<BlockNo>) -> bool {
        self.only.is_none_or(|only| {
            let first = only.partition_point(|block| *block < blocks.start);
            only.get(first).is_some_and(|block| *block < blocks.end)
        })
    }

    /// A server at work has written the page since the moment of which the rows are.
    pub(super) fn is_later(&self, page: Page<'_>) -> bool {
        self.moment.is_some_and(|moment| page.pd_lsn() > moment)
    }

    /// The page was changed by WAL that is not there.
    pub(super) fn is_beyond_wal(&self, page: Page<'_>) -> bool {
        self.wal_end.is_some_and(|end| page.pd_lsn() > end)
    }

    /// Values had no place in their columns: the table's file will not be of use.
    pub(super) fn refuse(&self, table: usize, refusals: Vec<Refusal>) {
        let Some(work) = self.tables.get(table).filter(|_| !refusals.is_empty()) else {
            return;
        };
        let mut known = work.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        for refusal in refusals {
            let before = known.get(&refusal.column);
            if before.is_none_or(|before| before.holding < refusal.holding) {
                known.insert(refusal.column, refusal);
            }
        }
        self.outlet.void(table);
    }

    /// Does all the work; the account of every table, with its place at the destination where that
    /// is whole.
    pub(crate) fn run(self) -> Result<Vec<TableAccount>, SalvageError> {
        let tables = self.run_refusing()?;
        Ok(tables.into_iter().map(|(account, _)| account).collect())
    }

    /// The same with what had no place in a table's columns: then there is no file.
    pub(super) fn run_refusing(self) -> Result<Vec<(TableAccount, Vec<Refusal>)>, SalvageError> {
        pass::run(&self);
        let names = self.outlet.names();
        let finished = self.outlet.results()?;
        let accounts = self.tables.into_iter().zip(names).zip(finished);
        Ok(accounts
            .map(|((work, name), finished)| {
                let account = work.account.into_inner();
                let account = account.unwrap_or_else(PoisonError::into_inner);
                let account = with_end(account, name, finished);
                let refusals = work.refusals.into_inner();
                let refusals = refusals.unwrap_or_else(PoisonError::into_inner);
                (account, refusals.into_values().collect())
            })
            .collect())
    }

    /// What the long values of a row may need: they are there as they are stored, put together, and
    /// printed.
    pub(super) fn value_bytes_max(&self) -> u64 {
        let (memory, threads) = (&self.options.memory, self.options.threads);
        memory.limit(Limit::ValueBytes, threads)
    }

    /// Rows that need more are held by one thread at a time.
    pub(super) fn large_row_bytes(&self) -> u64 {
        self.value_bytes_max() / 8 / self.options.threads.get() as u64
    }

    /// While this is held no other thread holds a large row.
    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TableWork {
    fn of(planned: Planned, cluster: &Cluster, options: &SalvageOptions) -> Self {
        let Planned { table, account, .. } = planned;
        let toast = table.toast.as_ref().and_then(|(_, files)| {
            let pieces = Pieces::of(files, cluster.build);
            let left = pieces.count();
            (left > 0).then(|| ToastWork {
                pieces,
                gathered: Mutex::new(Gathered {
                    // Tables come one after the other, and the end of one overlaps with the
                    // beginning of the next.
                    collector: Some(RunCollector::new(
                        &options.memory.part(Part::ToastRuns),
                        &options.spill_folder,
                    )),
                    left,
                    index: None,
                }),
                is_ready: Condvar::new(),
                doubted: Mutex::default(),
            })
        });
        let pieces = Pieces::of(&table.files, cluster.build);
        TableWork {
            left: AtomicU64::new(pieces.count().max(1)),
            pieces,
            blocks: blocks_of(&table.files, cluster),
            table,
            toast,
            account: Mutex::new(account),
            refusals: Mutex::default(),
        }
    }

    /// An empty table has a file too.
    pub(super) fn piece_count(&self) -> u64 {
        self.pieces.count().max(1)
    }

    /// A piece was printed; after the last one nobody asks for long values of the table.
    pub(super) fn piece_is_done(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(toast) = &self.toast
        {
            let gathered = toast.gathered.lock();
            gathered.unwrap_or_else(PoisonError::into_inner).index = None;
        }
    }

    pub(super) fn add(&self, tally: Tally) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.add(tally);
    }
}

/// The account of a table with what became of its rows behind the threads.
fn with_end(mut account: TableAccount, name: String, finished: Finished) -> TableAccount {
    account.file = finished.bytes.is_some().then_some(name);
    account.file_bytes = finished.bytes.unwrap_or(0);
    let has_suspects = account.rows.suspect > 0;
    account.suspect_file = account
        .file
        .as_deref()
        .filter(|_| has_suspects)
        .map(suspect_name);
    account.refuse(if finished.has_failed {
        account.rows.written
    } else {
        finished.refused
    });
    account.notes.extend(finished.notes);
    account
}

/// Blocks up to the end of the last segment that has any.
fn blocks_of(files: &ForkFiles, cluster: &Cluster) -> u64 {
    let (page, segment) = (
        u64::from(cluster.build.block_size),
        cluster.build.segment_blocks(),
    );
    let last = files.segments.iter().rfind(|own| own.len > 0);
    last.map_or(0, |last| u64::from(last.number) * segment + last.len / page)
}

impl ToastWork {
    /// Takes in the runs of a piece; the last piece makes the index. After an error there is an
    /// index all the same, for those who wait for it.
    pub(super) fn gather(&self, runs: Vec<ChunkRun>) -> io::Result<()> {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.left = gathered.left.saturating_sub(1);
        let is_last = gathered.left == 0;
        let Some(mut collector) = gathered.collector.take() else {
            return Ok(());
        };
        let index = match collector.add(runs) {
            Ok(()) if !is_last => {
                gathered.collector = Some(collector);
                return Ok(());
            }
            Ok(()) => collector.finish(),
            Err(error) => Err(error),
        };
        let (index, outcome) = match index {
            Ok(index) => (index, Ok(())),
            Err(error) => (ChunkIndex::new(Vec::new()), Err(error)),
        };
        gathered.index = Some(Arc::new(index));
        self.is_ready.notify_all();
        outcome
    }

    /// A page of it may not be what the server wrote.
    pub(super) fn doubt(&self, block: BlockNo) {
        let doubted = self.doubted.lock();
        doubted
            .unwrap_or_else(PoisonError::into_inner)
            .insert(block);
    }

    /// All of them, once the index is there.
    pub(super) fn doubted(&self) -> BTreeSet<BlockNo> {
        let doubted = self.doubted.lock();
        doubted.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The index, once it is there: the pieces that make it were all taken before any piece of the
    /// table.
    pub(super) fn index(&self) -> Arc<ChunkIndex> {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(index) = &gathered.index {
                return Arc::clone(index);
            }
            gathered = self
                .is_ready
                .wait(gathered)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
