//! Sorting records of bytes within a budget of memory.

use std::io;
use std::path::{Path, PathBuf};

use crate::budget::{Budget, Lease};
use crate::folder;
use crate::merge::Merge;
use crate::record::{self, Record};
use crate::run_file::RunFile;

/// Buffers for reading and writing runs, in bytes: below the first a disk seeks more than it reads,
/// above the second nothing is gained.
const BUFFER_MIN: usize = 4 << 10;
const BUFFER_MAX: usize = 256 << 10;

/// Takes records in any order and gives them back sorted by key as bytes, equal keys in the order
/// of insertion.
///
/// What exceeds the budget is written as sorted runs to a temporary file without a name. A single
/// record larger than the budget is held all the same.
pub struct SortedRuns {
    budget_bytes: usize,
    folder: PathBuf,
    records: Vec<u8>,
    starts: Vec<usize>,
    spilled: Option<RunFile>,
    /// Given back when the records are gone.
    lease: Option<Lease>,
}

impl SortedRuns {
    /// Sorts with about `budget_bytes` of memory and temporary files in `folder`, which must exist
    /// and lie in no cluster.
    pub fn new(budget_bytes: usize, folder: &Path) -> io::Result<Self> {
        folder::check(folder)?;
        let folder = folder.to_owned();
        Ok(Self {
            budget_bytes,
            folder,
            records: Vec::new(),
            starts: Vec::new(),
            spilled: None,
            lease: None,
        })
    }

    /// The same with what this part of the plan has left, at least a sixteenth of it.
    ///
    /// # Errors
    ///
    /// A folder that cannot be used.
    pub fn within(part: &Budget, folder: &Path) -> io::Result<Self> {
        let lease = part.take_some(part.limit(), part.limit() / 16);
        let budget_bytes = usize::try_from(lease.bytes()).unwrap_or(usize::MAX);
        let mut runs = Self::new(budget_bytes, folder)?;
        runs.lease = Some(lease);
        Ok(runs)
    }

    /// Adds a record. An error (a full disk, say) leaves what was added before as it is, and the
    /// record out.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let lengths = record::lengths(key, value)?;
        let room = self
            .held_bytes()
            .saturating_add(record::size(key, value))
            .saturating_add(size_of::<usize>());
        if room > self.budget_bytes && !self.starts.is_empty() {
            self.spill()?;
        }
        self.make_room(record::size(key, value));
        self.starts.push(self.records.len());
        for part in [&lengths, key, value] {
            self.records.extend_from_slice(part);
        }
        Ok(())
    }

    /// Number of runs written so far; 0 while everything fits in memory.
    pub fn runs(&self) -> usize {
        self.spilled.as_ref().map_or(0, |file| file.runs.len())
    }

    /// The records in order. Those in memory stay there when nothing was written before.
    pub fn finish(mut self) -> io::Result<SortedRecords> {
        if self.spilled.is_some() && !self.starts.is_empty() {
            self.spill()?;
        }
        let origin = match self.spilled.take() {
            Some(file) => Origin::Runs(Box::new(merged(file, self.budget_bytes, &self.folder)?)),
            None => {
                sort(&self.records, &mut self.starts);
                Origin::Memory {
                    records: self.records,
                    starts: self.starts.into_iter(),
                }
            }
        };
        Ok(SortedRecords {
            origin,
            _lease: self.lease,
        })
    }

    /// A vector that grows by itself holds up to twice the bytes in it.
    fn make_room(&mut self, bytes: usize) {
        let (len, capacity) = (self.records.len(), self.records.capacity());
        if capacity - len < bytes {
            let left = self.budget_bytes.saturating_sub(self.held_bytes());
            self.records.reserve_exact(len.min(left).max(bytes));
        }
    }

    fn held_bytes(&self) -> usize {
        self.records
            .len()
            .saturating_add(self.starts.len().saturating_mul(size_of::<usize>()))
    }

    fn spill(&mut self) -> io::Result<()> {
        sort(&self.records, &mut self.starts);
        let file = match &mut self.spilled {
            Some(file) => file,
            none => none.insert(RunFile::create(&self.folder)?),
        };
        let records = self
            .starts
            .iter()
            .map(|start| Ok(held(&self.records, *start)));
        file.append(
            (self.budget_bytes / 16).clamp(BUFFER_MIN, BUFFER_MAX),
            records,
        )?;
        self.records.clear();
        self.starts.clear();
        Ok(())
    }
}

/// Sorts by key; where a record starts tells equal keys apart by insertion.
fn sort(records: &[u8], starts: &mut [usize]) {
    starts.sort_unstable_by_key(|start| (held(records, *start).0, *start));
}

fn held(records: &[u8], start: usize) -> (&[u8], &[u8]) {
    match record::at(records, start) {
        Some(record) => record,
        None => unreachable!("no record begins at {start}, where this sorter put one"),
    }
}

/// One merge over all runs, after as many rounds of merging neighbours as bring their buffers into
/// the budget.
fn merged(mut file: RunFile, budget_bytes: usize, folder: &Path) -> io::Result<Merge> {
    let fan_in = (budget_bytes / BUFFER_MIN).max(2);
    while file.runs.len() > fan_in {
        let mut fewer = RunFile::create(folder)?;
        for first in (0..file.runs.len()).step_by(fan_in) {
            let mut merge = merge(&file, first, fan_in, budget_bytes)?;
            fewer.append_with(BUFFER_MIN, |writer| {
                while let Some((key, value)) = merge.next()? {
                    writer.put(&key, &value)?;
                }
                Ok(())
            })?;
        }
        file = fewer;
    }
    merge(&file, 0, fan_in, budget_bytes)
}

fn merge(file: &RunFile, first: usize, count: usize, budget_bytes: usize) -> io::Result<Merge> {
    let runs: Vec<_> = file.runs.iter().skip(first).take(count).collect();
    let buffer = (budget_bytes / runs.len().max(1)).clamp(BUFFER_MIN, BUFFER_MAX);
    Merge::new(
        runs.into_iter()
            .map(|run| file.reader(*run, buffer))
            .collect(),
    )
}

/// Records in order of their keys. After an error nothing more comes.
pub struct SortedRecords {
    origin: Origin,
    _lease: Option<Lease>,
}

enum Origin {
    Memory {
        records: Vec<u8>,
        starts: std::vec::IntoIter<usize>,
    },
    Runs(Box<Merge>),
    Nothing,
}

impl Iterator for SortedRecords {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.origin {
            Origin::Memory { records, starts } => {
                let (key, value) = held(records, starts.next()?);
                Ok(Some((key.to_vec(), value.to_vec())))
            }
            Origin::Runs(merge) => merge.next(),
            Origin::Nothing => Ok(None),
        };
        if !matches!(next, Ok(Some(_))) {
            self.origin = Origin::Nothing;
        }
        next.transpose()
    }
}
