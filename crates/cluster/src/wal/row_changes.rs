//! The last record that changed the rows of each block, who wrote them, and how transactions ended,
//! by WAL from before the redo point: the checkpoint wrote those pages and their statuses, so that
//! none of them is older than its record.

use std::collections::{BTreeMap, HashMap};

use pgclinic_format::wal::{Ended, Event, FileNumber, Outcome, Record, RowsWritten};
use pgclinic_format::{BlockNo, Fork, Lsn, Xid};

/// Blocks that are remembered: some 16 MiB. More are not, and what is known of these stays true.
const BLOCKS_MAX: usize = 1 << 18;
/// Ends of transactions that are remembered: some 4 MiB.
const ENDS_MAX: usize = 1 << 18;
/// Transactions that are remembered of a file: one that was committed is enough.
const WRITERS_MAX: usize = 8;

/// What records say of rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RowChanges {
    files: HashMap<FileNumber, FileChanges>,
    known: usize,
    /// Whether they committed.
    ends: BTreeMap<u32, bool>,
}

/// Of one file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FileChanges {
    /// Where the last record of each block ends.
    pub(crate) blocks: BTreeMap<BlockNo, Lsn>,
    /// The last transactions that wrote to it.
    pub(crate) writers: Vec<Xid>,
}

impl RowChanges {
    /// Only records of rows count: others name pages that they leave as they are.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        if RowsWritten::of(record).is_none() {
            return;
        }
        let main = record.blocks.iter().filter(|own| own.fork == Fork::Main);
        for own in main {
            let file = self.files.entry(own.file).or_default();
            file.written_by(record.header.xid);
            if let Some(end) = file.blocks.get_mut(&own.block) {
                *end = record.end;
            } else if self.known < BLOCKS_MAX {
                file.blocks.insert(own.block, record.end);
                self.known += 1;
            }
        }
    }

    /// What was cut off may come back as another page, and what was removed need not be there.
    pub(crate) fn note_files(&mut self, event: &Event<'_>) {
        match event {
            Event::Ended(ended) => {
                self.note_end(ended);
                ended.files().for_each(|file| self.forget(file));
            }
            Event::Truncated {
                file,
                blocks: Some(blocks),
            } => self.cut(*file, *blocks),
            Event::DatabaseCreated { database, .. } | Event::DatabaseDropped { database } => {
                self.forget_all(|file| file.database == *database);
            }
            Event::TablespaceDropped(tablespace) => {
                self.forget_all(|file| file.tablespace == *tablespace);
            }
            _ => {}
        }
    }

    fn note_end(&mut self, ended: &Ended<'_>) {
        let committed = match ended.outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Prepared => return,
        };
        for xid in std::iter::once(ended.xid).chain(ended.subxids()) {
            if xid.is_normal() && self.ends.len() < ENDS_MAX {
                self.ends.insert(xid.0, committed);
            }
        }
    }

    /// Transactions and whether they committed, in order of their numbers.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (Xid, bool)> {
        self.ends
            .iter()
            .map(|(xid, committed)| (Xid(*xid), *committed))
    }

    fn cut(&mut self, file: FileNumber, blocks: BlockNo) {
        if let Some(changes) = self.files.get_mut(&file) {
            self.known -= changes.blocks.split_off(&blocks).len();
        }
    }

    fn forget(&mut self, file: FileNumber) {
        let gone = self.files.remove(&file);
        self.known -= gone.map_or(0, |changes| changes.blocks.len());
    }

    fn forget_all(&mut self, is_gone: impl Fn(&FileNumber) -> bool) {
        self.files.retain(|file, _| !is_gone(file));
        let kept = self.files.values();
        self.known = kept.map(|changes| changes.blocks.len()).sum();
    }

    /// What is known of a file.
    pub(crate) fn of(&self, file: FileNumber) -> Option<&FileChanges> {
        self.files.get(&file)
    }

    /// All files, in no order.
    pub(crate) fn files(&self) -> impl Iterator<Item = (FileNumber, &FileChanges)> {
        self.files.iter().map(|(file, changes)| (*file, changes))
    }
}

impl FileChanges {
    fn written_by(&mut self, xid: Xid) {
        if self.writers.last() == Some(&xid) || self.writers.contains(&xid) {
            return;
        }
        if self.writers.len() == WRITERS_MAX {
            self.writers.remove(0);
        }
        self.writers.push(xid);
    }
}
