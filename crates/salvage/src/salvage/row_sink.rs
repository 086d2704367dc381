//! Where the threads of a salvage hand in what they printed: files in order, a server, or somebody
//! in this program.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pgclinic_model::document::TableAccount;

use super::error::SalvageError;
use super::folder::Folder;
use super::ordered_files::{OrderedFiles, Piece};
use super::server::{GiveRow, Loads, Streamed};

/// What became of one table's rows behind the threads.
#[derive(Clone, Default, Debug)]
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

impl Finished {
    /// A file with so many bytes, if it is whole.
    fn of(bytes: Option<u64>) -> Self {
        Finished {
            bytes,
            ..Finished::default()
        }
    }
}

/// Takes whole rows as they come, in any order; says when it wants no more.
pub(crate) struct TakeRows<'a> {
    /// Those that may not be what they say come apart from the others.
    pub(crate) parts_suspects: bool,
    /// Takes some of them.
    pub(crate) take: &'a mut (dyn FnMut(&Piece) -> ControlFlow<()> + Send + 'a),
}

/// Takes the rows of one table, from all threads.
pub(super) trait RowTaker: Sync {
    /// Whole rows, in any order.
    fn add(&self, printed: &Piece);
    /// Suspect rows come apart from the others.
    fn parts_suspects(&self) -> bool {
        false
    }
    /// Nothing more is wanted.
    fn stop(&self);
    fn is_stopped(&self) -> bool;
}

/// Hands them to somebody who takes them one after the other.
pub(super) struct InTurn<'a> {
    take: Mutex<TakeRows<'a>>,
    parts_suspects: bool,
    is_stopped: AtomicBool,
}

impl<'a> InTurn<'a> {
    pub(super) fn new(take: TakeRows<'a>) -> Self {
        InTurn {
            parts_suspects: take.parts_suspects,
            take: Mutex::new(take),
            is_stopped: AtomicBool::new(false),
        }
    }
}

impl RowTaker for InTurn<'_> {
    fn add(&self, printed: &Piece) {
        let mut take = self.take.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped() && (take.take)(printed).is_break() {
            self.stop();
        }
    }

    fn parts_suspects(&self) -> bool {
        self.parts_suspects
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// The destination of what the threads of a salvage print.
pub(super) enum RowSink<'a> {
    Files(OrderedFiles<'a>),
    Server(Loads<'a>),
    Rows(&'a dyn RowTaker),
}

impl RowSink<'_> {
    /// Nothing more is written, by anyone.
    pub(super) fn stop(&self, failure: Option<SalvageError>) {
        match self {
            RowSink::Files(lines) => lines.stop(failure),
            RowSink::Server(loads) => loads.stop(failure),
            RowSink::Rows(rows) => rows.stop(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        match self {
            RowSink::Files(lines) => lines.is_stopped(),
            RowSink::Server(loads) => loads.is_stopped(),
            RowSink::Rows(rows) => rows.is_stopped(),
        }
    }

    /// An empty piece.
    pub(super) fn piece(&self) -> Piece {
        match self {
            RowSink::Files(lines) => lines.piece(),
            RowSink::Server(_) | RowSink::Rows(_) => Piece::default(),
        }
    }

    /// Hands in all that is left of a piece.
    pub(super) fn hand_in(&self, table: usize, piece: u64, printed: Piece) {
        match self {
            RowSink::Files(lines) => lines.hand_in(table, piece, printed),
            RowSink::Server(loads) => loads.hand_in(table, &printed.rows),
            RowSink::Rows(rows) => rows.add(&printed),
        }
    }

    /// Hands in whole rows of a piece that is not at its end, and empties them.
    pub(super) fn write_ahead(&self, table: usize, piece: u64, printed: &mut Piece) {
        match self {
            RowSink::Files(lines) => lines.write_ahead(table, piece, printed),
            RowSink::Server(loads) => loads.write_ahead(table, &mut printed.rows),
            RowSink::Rows(rows) => rows.add(&std::mem::take(printed)),
        }
    }

    /// A row with values larger than memory goes by itself into a server; nothing where rows do not
    /// go to one.
    pub(super) fn stream(&self, table: usize, give: GiveRow<'_>) -> Option<Streamed> {
        match self {
            RowSink::Server(loads) => Some(loads.stream(table, give)),
            RowSink::Files(_) | RowSink::Rows(_) => None,
        }
    }

    /// Suspect rows of a table go apart from the others.
    pub(super) fn parts_suspects(&self, table: usize) -> bool {
        match self {
            RowSink::Files(lines) => lines.parts_suspects(table),
            RowSink::Rows(rows) => rows.parts_suspects(),
            RowSink::Server(_) => false,
        }
    }

    /// Rows go into a server.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, RowSink::Server(_))
    }

    /// The folder in which tables have files, and the name of this one's.
    pub(super) fn file(&self, table: usize) -> Option<(&Folder, &str)> {
        match self {
            RowSink::Files(lines) => lines.file(table),
            RowSink::Server(_) | RowSink::Rows(_) => None,
        }
    }

    /// Nothing more is written of a table, and its file does not become whole.
    pub(super) fn void(&self, table: usize) {
        match self {
            RowSink::Files(lines) => lines.void(table),
            // None of them gathers rows into columns.
            RowSink::Server(_) | RowSink::Rows(_) => {}
        }
    }

    /// Tables that became whole since this was asked last.
    pub(super) fn take_finished(&self) -> Vec<(usize, Finished)> {
        match self {
            RowSink::Files(lines) => {
                let fresh = lines.take_finished().into_iter();
                fresh
                    .map(|(table, bytes)| (table, Finished::of(Some(bytes))))
                    .collect()
            }
            RowSink::Server(loads) => loads.take_finished(),
            RowSink::Rows(_) => Vec::new(),
        }
    }

    /// The destination itself notes what was told of a table that became whole, if it does so.
    pub(super) fn note(&self, table: usize, account: &TableAccount) {
        match self {
            RowSink::Server(loads) => loads.note(table, account),
            RowSink::Files(_) | RowSink::Rows(_) => {}
        }
    }

    /// Under which name each table is at the destination.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            RowSink::Files(lines) => lines.names().to_vec(),
            RowSink::Server(loads) => loads.names(),
            RowSink::Rows(_) => vec![String::new()],
        }
    }

    /// For each table what became of it; or why nothing more could be written.
    pub(super) fn results(self) -> Result<Vec<Finished>, SalvageError> {
        match self {
            RowSink::Files(lines) => Ok(lines.results()?.into_iter().map(Finished::of).collect()),
            RowSink::Server(loads) => loads.results(),
            RowSink::Rows(_) => Ok(vec![Finished::default()]),
        }
    }
}
