//! In what state the files of a cluster are. It decides what of them may be compared
//! ([`crate::Comparison`]), and how they are read.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::digest::Algorithm;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{Lsn, MultiXactId, Oid, Xid};

use crate::wal::Replay;

/// The state of an opened cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// No server runs, and no recovery is due as far as is known.
    Stopped,
    /// No server runs, and recovery is due: the last one crashed, or a `backup_label` sends it back
    /// to an earlier checkpoint.
    Crashed {
        /// What recovery in memory reached, where the files are seen through one.
        replayed: Option<ReplayInMemory>,
    },
    /// A server runs on the files: any of them may change at any time. They are those of a crash
    /// that has not happened yet.
    Running {
        /// As of a crash.
        replayed: Option<ReplayInMemory>,
        /// The files of `pg_xact` that the server writes to, as they were before the end of its WAL
        /// was looked for.
        status_before: BTreeMap<String, Vec<u8>>,
    },
    /// A part of the files is known not to be there, as of an archive that is truncated: one that
    /// is missing, or short, proves nothing.
    Partial,
    /// The files passed by once, and most of them cannot be read again.
    Streamed(StreamedFiles),
}

/// What is left of files that passed by once.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StreamedFiles {
    /// The checksums that were made then, by path. A file without one cannot be summed any more.
    pub checksums: BTreeMap<String, (Algorithm, Vec<u8>)>,
    /// The stream ended before its end: a part of the files never came.
    pub is_partial: bool,
    /// What the server that sent them says of its databases; `None` where nobody could be asked.
    pub databases: Option<DatabasesOfServer>,
    /// Files that did not pass, and that the server was asked for: its manifest has none of them.
    pub fetched: BTreeSet<String>,
    /// Relations whose files are missing by the word of the server, by database, 0 for the shared
    /// ones, and OID, with the path.
    pub without_file: BTreeMap<(Oid, Oid), String>,
}

/// What a server says of its databases before and after it sent its files: it makes, moves and
/// drops some meanwhile.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DatabasesOfServer {
    /// Those that have a row and no directory.
    pub without_directory: BTreeSet<Oid>,
    /// What it had before and has now, where it lists its directories.
    pub looks: Option<LooksAtDatabases>,
}

/// The databases of a server before it sent its files, and now.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LooksAtDatabases {
    /// Before.
    pub before: LookAtDatabases,
    /// Now.
    pub now: LookAtDatabases,
}

/// The databases of a server at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LookAtDatabases {
    /// Those that have a row.
    pub named: BTreeSet<Oid>,
    /// Those that have a directory.
    pub directories: BTreeSet<Oid>,
}

impl DatabasesOfServer {
    /// It was not there before, or is not there now, or is just being made.
    pub fn made_or_dropped(&self, database: Oid) -> bool {
        let looks = self.looks.as_ref().filter(|_| database != 0);
        looks.is_some_and(|LooksAtDatabases { before, now }| {
            let has_row = now.named.contains(&database);
            let is_made = has_row && !before.named.contains(&database);
            let is_nameless = !has_row && !before.directories.contains(&database);
            let is_gone = !has_row && !now.directories.contains(&database);
            is_made || is_nameless || is_gone
        })
    }
}

impl StreamedFiles {
    /// The database was moved, made or dropped while the files passed.
    pub(crate) fn passed_on_its_way(&self, database: Oid) -> bool {
        let asked = self.databases.as_ref();
        asked.is_some_and(|asked| !asked.without_directory.contains(&database))
    }
}

/// How far recovery in memory came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayInMemory {
    /// Up to where the records of all WAL that there is were followed; `None` where some of it is
    /// missing.
    pub(crate) end: Option<Lsn>,
    /// What is known behind it, where every record was applied.
    pub(crate) recovered: Option<Recovered>,
    /// Main forks that its records truncated, and the fewest blocks that each had: indexes as they
    /// lie there may still lead past them.
    pub(crate) truncated: BTreeMap<FileNumber, u32>,
    /// Pages that were changed later than its last record, and lie under an image of it.
    pub(crate) later_pages: u64,
}

/// What is known of a cluster behind a complete recovery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The next transaction.
    pub next_xid: Xid,
    /// The next multixact.
    pub next_multi: MultiXactId,
    /// The next member of multixacts.
    pub next_multi_offset: u32,
    /// Databases whose folders recovery removes or copies, which is not done in memory.
    pub remade_databases: BTreeSet<Oid>,
    /// Tablespaces in which recovery makes files, and their folders where it must.
    pub grown_tablespaces: BTreeSet<Oid>,
}

/// Whether each record of a replay was applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Applied {
    All,
    NotAll,
}

impl State {
    /// A server that runs, before anything else is known of it.
    pub(crate) fn running() -> Self {
        State::Running {
            replayed: None,
            status_before: BTreeMap::new(),
        }
    }

    /// A part of the files is not there.
    pub(crate) fn is_partial(&self) -> bool {
        match self {
            State::Partial => true,
            State::Streamed(files) => files.is_partial,
            State::Stopped | State::Crashed { .. } | State::Running { .. } => false,
        }
    }

    /// Recovery in memory, where the files are seen through one.
    pub(crate) fn replayed(&self) -> Option<&ReplayInMemory> {
        match self {
            State::Crashed { replayed } | State::Running { replayed, .. } => replayed.as_ref(),
            State::Stopped | State::Partial | State::Streamed(_) => None,
        }
    }

    /// The same files seen through recovery in memory.
    pub(crate) fn after(self, replay: ReplayInMemory) -> Self {
        let replayed = Some(replay);
        match self {
            State::Running { status_before, .. } => State::Running {
                replayed,
                status_before,
            },
            // Nothing else is ever replayed: the opening of files seen through recovery gives one
            // of these.
            State::Stopped | State::Crashed { .. } | State::Partial | State::Streamed(_) => {
                State::Crashed { replayed }
            }
        }
    }
}

impl ReplayInMemory {
    pub(crate) fn of(replay: &Replay, applied: Applied, later_pages: u64) -> Self {
        let recovered = || Recovered {
            next_xid: replay.next_xid,
            next_multi: replay.next_multi,
            next_multi_offset: replay.next_multi_offset,
            remade_databases: replay.remade_databases().clone(),
            grown_tablespaces: replay.grown_tablespaces(),
        };
        ReplayInMemory {
            end: replay.is_complete().then_some(replay.end.record),
            recovered: (applied == Applied::All).then(recovered),
            truncated: replay.truncated_to(),
            later_pages,
        }
    }
}
