//! The threads of a salvage: they take pieces of tables in order, find the rows and print them.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_diagnose::Progress;

use super::account::{TableAccount, Tally};
use super::folder::Folder;
use super::lines::Lines;
use super::pieces::Pieces;
use super::plan::Planned;
use super::worker::Worker;
use super::{SalvageError, SalvageOptions};
use crate::charset::Charset;
use crate::shape::Table;
use crate::values::{ChunkIndex, ChunkRun};

/// A table at work.
pub(super) struct TableWork {
    pub(super) table: Table,
    pub(super) pieces: Pieces,
    pub(super) blocks: u64,
    pub(super) toast: Option<ToastWork>,
    account: Mutex<TableAccount>,
}

/// The TOAST relation of a table: its pieces, and the index that they give together.
pub(super) struct ToastWork {
    pub(super) pieces: Pieces,
    gathered: Mutex<Gathered>,
    is_ready: Condvar,
}

#[derive(Default)]
struct Gathered {
    runs: Vec<ChunkRun>,
    left: u64,
    index: Option<Arc<ChunkIndex>>,
}

/// What a thread takes next.
pub(super) enum Job {
    Chunks { table: usize, piece: u64 },
    Rows { table: usize, piece: u64 },
}

#[derive(Default)]
struct Cursor {
    table: usize,
    /// Pieces of the TOAST relation come before those of the table.
    chunks: u64,
    rows: u64,
}

/// All that the threads share.
pub(crate) struct Crew<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) options: &'a SalvageOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) charset: Charset,
    pub(super) tables: Vec<TableWork>,
    pub(super) lines: Lines<'a>,
    cursor: Mutex<Cursor>,
}

impl<'a> Crew<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        options: &'a SalvageOptions,
        progress: &'a dyn Progress,
        folder: &'a Folder,
        planned: Vec<Planned>,
        charset: Charset,
    ) -> Self {
        let names: Vec<String> = planned
            .iter()
            .map(|planned| format!("{}.{}", planned.file, options.form.extension()))
            .collect();
        let tables: Vec<TableWork> = planned
            .into_iter()
            .map(|planned| TableWork::of(planned, cluster))
            .collect();
        for work in &tables {
            let toast = work.toast.as_ref().map_or(0, |toast| toast.pieces.bytes());
            progress.expect(work.pieces.bytes() + toast);
        }
        let pieces = tables.iter().map(TableWork::piece_count);
        let lines = Lines::new(folder, names.into_iter().zip(pieces), options.threads.get());
        Crew {
            cluster,
            options,
            progress,
            charset,
            tables,
            lines,
            cursor: Mutex::default(),
        }
    }

    /// Does all the work; the account of every table, with its file where that is whole.
    pub(crate) fn run(self) -> Result<Vec<TableAccount>, SalvageError> {
        let threads = self.options.threads;
        self.run_on(threads);
        let names: Vec<String> = self.lines.names().to_vec();
        let finished = self.lines.results()?;
        let accounts = self.tables.into_iter().zip(names).zip(finished);
        Ok(accounts
            .map(|((work, name), bytes)| {
                let account = work.account.into_inner();
                let mut account = account.unwrap_or_else(PoisonError::into_inner);
                account.file = bytes.is_some().then_some(name);
                account.file_bytes = bytes.unwrap_or(0);
                account
            })
            .collect())
    }

    fn run_on(&self, threads: NonZeroUsize) {
        std::thread::scope(|scope| {
            for _ in 1..threads.get() {
                scope.spawn(|| Worker::new(self).work());
            }
            Worker::new(self).work();
        });
    }

    /// The largest value that a thread puts together.
    pub(super) fn value_bytes_max(&self) -> u64 {
        self.options.memory_bytes / 2
    }

    pub(super) fn next(&self) -> Option<Job> {
        if self.progress.is_interrupted() {
            self.lines.stop(None);
        }
        if self.lines.is_stopped() {
            return None;
        }
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let table = cursor.table;
            let work = self.tables.get(table)?;
            let chunks = work.toast.as_ref().map_or(0, |toast| toast.pieces.count());
            if cursor.chunks < chunks {
                let piece = cursor.chunks;
                cursor.chunks += 1;
                return Some(Job::Chunks { table, piece });
            }
            if cursor.rows < work.piece_count() {
                let piece = cursor.rows;
                cursor.rows += 1;
                return Some(Job::Rows { table, piece });
            }
            *cursor = Cursor {
                table: table + 1,
                ..Cursor::default()
            };
        }
    }
}

impl TableWork {
    fn of(planned: Planned, cluster: &Cluster) -> Self {
        let Planned { table, account, .. } = planned;
        let toast = table.toast.as_ref().and_then(|(_, files)| {
            let pieces = Pieces::of(files, cluster.build);
            let left = pieces.count();
            (left > 0).then(|| ToastWork {
                pieces,
                gathered: Mutex::new(Gathered {
                    left,
                    ..Gathered::default()
                }),
                is_ready: Condvar::new(),
            })
        });
        TableWork {
            pieces: Pieces::of(&table.files, cluster.build),
            blocks: blocks_of(&table.files, cluster),
            table,
            toast,
            account: Mutex::new(account),
        }
    }

    /// An empty table has a file too.
    pub(super) fn piece_count(&self) -> u64 {
        self.pieces.count().max(1)
    }

    pub(super) fn add(&self, tally: Tally) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.add(tally);
    }
}

/// Blocks up to the end of the last segment that is there.
fn blocks_of(files: &ForkFiles, cluster: &Cluster) -> u64 {
    let (page, segment) = (
        u64::from(cluster.build.block_size),
        cluster.build.segment_blocks(),
    );
    let last = files.segments.last();
    last.map_or(0, |last| u64::from(last.number) * segment + last.len / page)
}

impl ToastWork {
    /// Takes in the runs of a piece; the last piece makes the index.
    pub(super) fn gather(&self, runs: Vec<ChunkRun>) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.runs.extend(runs);
        gathered.left -= 1;
        if gathered.left == 0 {
            let runs = std::mem::take(&mut gathered.runs);
            gathered.index = Some(Arc::new(ChunkIndex::new(runs)));
            self.is_ready.notify_all();
        }
    }

    /// The index, once it is there: the pieces that make it were all taken before any piece of the table.
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
