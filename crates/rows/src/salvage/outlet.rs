//! Where the threads of a salvage hand in what they printed: files in order, or a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::SalvageError;
use super::folder::Folder;
use super::key_cells::KeysOfTable;
use super::lines::Lines;
use super::server::{GiveRow, Loads, Streamed};

/// What became of one table's rows behind the threads.
#[derive(Default, Debug)]
pub(super) struct Finished {
    /// All of it is there, and has so many bytes.
    pub(super) bytes: Option<u64>,
    /// Rows that the destination did not take.
    pub(super) refused: u64,
    /// It took none of them at all.
    pub(super) has_failed: bool,
    /// What a person should know.
    pub(super) notes: Vec<String>,
}

/// The text of one table, in any order of its pieces.
#[derive(Default)]
pub(super) struct Memory {
    bytes: Mutex<Vec<u8>>,
    is_stopped: AtomicBool,
}

impl Memory {
    fn add(&self, bytes: &[u8]) {
        let held = self.bytes.lock();
        held.unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let held = self.bytes.into_inner();
        held.unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub(super) enum Outlet<'a> {
    Files(Lines<'a>),
    Server(Loads<'a>),
    Memory(&'a Memory),
    Keys(&'a KeysOfTable<'a>),
}

impl Outlet<'_> {
    /// Nothing more is written, by anyone.
    pub(super) fn stop(&self, failure: Option<SalvageError>) {
        match self {
            Outlet::Files(lines) => lines.stop(failure),
            Outlet::Server(loads) => loads.stop(failure),
            Outlet::Memory(memory) => memory.is_stopped.store(true, Ordering::Relaxed),
            Outlet::Keys(keys) => keys.stop(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        match self {
            Outlet::Files(lines) => lines.is_stopped(),
            Outlet::Server(loads) => loads.is_stopped(),
            Outlet::Memory(memory) => memory.is_stopped.load(Ordering::Relaxed),
            Outlet::Keys(keys) => keys.is_stopped(),
        }
    }

    /// Hands in all that is left of a piece.
    pub(super) fn hand_in(&self, table: usize, piece: u64, bytes: Vec<u8>) {
        match self {
            Outlet::Files(lines) => lines.hand_in(table, piece, bytes),
            Outlet::Server(loads) => loads.hand_in(table, &bytes),
            Outlet::Memory(memory) => memory.add(&bytes),
            Outlet::Keys(keys) => keys.add(&bytes),
        }
    }

    /// Hands in whole rows of a piece that is not at its end, and empties them.
    pub(super) fn write_ahead(&self, table: usize, piece: u64, bytes: &mut Vec<u8>) {
        match self {
            Outlet::Files(lines) => lines.write_ahead(table, piece, bytes),
            Outlet::Server(loads) => loads.write_ahead(table, bytes),
            Outlet::Memory(memory) => memory.add(&std::mem::take(bytes)),
            Outlet::Keys(keys) => keys.add(&std::mem::take(bytes)),
        }
    }

    /// A row with values larger than memory goes by itself into a server; nothing where rows do not go to one.
    pub(super) fn stream(&self, table: usize, give: GiveRow<'_>) -> Option<Streamed> {
        match self {
            Outlet::Server(loads) => Some(loads.stream(table, give)),
            Outlet::Files(_) | Outlet::Memory(_) | Outlet::Keys(_) => None,
        }
    }

    /// Rows go into a server.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Outlet::Server(_))
    }

    /// The folder in which tables have files, and the name of this one's.
    pub(super) fn file(&self, table: usize) -> Option<(&Folder, &str)> {
        match self {
            Outlet::Files(lines) => lines.file(table),
            Outlet::Server(_) | Outlet::Memory(_) | Outlet::Keys(_) => None,
        }
    }

    /// Nothing more is written of a table, and its file does not become whole.
    pub(super) fn void(&self, table: usize) {
        match self {
            Outlet::Files(lines) => lines.void(table),
            // None of them gathers rows into columns.
            Outlet::Server(_) | Outlet::Memory(_) | Outlet::Keys(_) => {}
        }
    }

    /// Files that became whole since this was asked last, with their bytes.
    pub(super) fn take_finished(&self) -> Vec<(usize, u64)> {
        match self {
            Outlet::Files(lines) => lines.take_finished(),
            Outlet::Server(_) | Outlet::Memory(_) | Outlet::Keys(_) => Vec::new(),
        }
    }

    /// Under which name each table is at the destination.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Outlet::Files(lines) => lines.names().to_vec(),
            Outlet::Server(loads) => loads.names(),
            Outlet::Memory(_) | Outlet::Keys(_) => vec![String::new()],
        }
    }

    /// For each table what became of it; or why nothing more could be written.
    pub(super) fn results(self) -> Result<Vec<Finished>, SalvageError> {
        match self {
            Outlet::Files(lines) => {
                let finished = |bytes| Finished {
                    bytes,
                    ..Finished::default()
                };
                Ok(lines.results()?.into_iter().map(finished).collect())
            }
            Outlet::Server(loads) => loads.results(),
            Outlet::Memory(_) | Outlet::Keys(_) => Ok(vec![Finished::default()]),
        }
    }
}
