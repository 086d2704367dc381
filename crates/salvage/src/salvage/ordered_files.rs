//! Files that several threads fill in order: each piece of a table is written when all before it
//! are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pgclinic_columnar::{ColumnarError, Packer, PackerPlan};
use pgclinic_spill::{Budget, Lease};

use super::error::SalvageError;
use super::folder::{Folder, PartFile};
use super::stream::{Stream, StreamFile};

/// Memory of a piece that is used again.
const SPARE_BYTES: usize = 4 << 20;

/// Where the writing of one file stands.
#[derive(Default)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, (Piece, Lease)>,
    file: Option<OpenFile>,
    is_writing: bool,
    finished: Option<u64>,
    /// What comes is dropped, and the file is removed in the end.
    is_void: bool,
}

/// What was printed of a piece.
#[derive(Default)]
pub(crate) struct Piece {
    /// Rows in the format of the file.
    pub(crate) rows: Vec<u8>,
    /// Rows that may not be what they say, for the file beside it.
    pub(crate) suspects: Vec<u8>,
}

impl Piece {
    fn clear(&mut self) {
        self.rows.clear();
        self.suspects.clear();
    }

    /// The same memory, unless it is that of a large row.
    fn emptied(mut self) -> Self {
        self.clear();
        self.rows.shrink_to(SPARE_BYTES);
        self.suspects = Vec::new();
        self
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() + self.suspects.len()
    }
}

/// Where files go.
#[derive(Clone, Copy)]
pub(crate) enum LineDestination<'a> {
    Folder(&'a Folder),
    /// To whoever takes it; a file that may have to be written anew is held in this folder first.
    Stream(&'a Stream, &'a Path),
}

impl LineDestination<'_> {
    fn begin(&self, of: &OutputFile) -> Result<Sink, SalvageError> {
        Ok(match self {
            LineDestination::Folder(folder) => Sink::Part(folder.begin(&of.name)?),
            LineDestination::Stream(stream, _) if of.packer.is_none() => {
                Sink::Stream(StreamFile::begin(stream))
            }
            LineDestination::Stream(stream, folder) => {
                Sink::Stream(StreamFile::held_in(stream, folder)?)
            }
        })
    }
}

enum Sink {
    Part(PartFile),
    Stream(StreamFile),
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SalvageError> {
        match self {
            Sink::Part(file) => file.write(bytes),
            Sink::Stream(file) => file.write(bytes),
        }
    }

    fn finish(self) -> Result<u64, SalvageError> {
        match self {
            Sink::Part(file) => file.finish(),
            Sink::Stream(file) => file.finish(),
        }
    }
}

/// A file that is to be written.
pub(crate) struct OutputFile {
    pub(crate) name: String,
    /// How many pieces it has.
    pub(crate) pieces: u64,
    /// What gathers its rows into columns, if they are gathered.
    pub(crate) packer: Option<PackerPlan>,
    /// The file of its suspect rows, where it has one.
    pub(crate) suspects: Option<SuspectFile>,
}

/// The file beside a table's, for rows that may not be what they say. There is none without them.
pub(crate) struct SuspectFile {
    pub(crate) name: String,
    /// What stands before the first row.
    pub(crate) head: Vec<u8>,
}

/// A file that is being written.
struct OpenFile {
    file: Sink,
    packer: Option<Packer>,
    packed: Vec<u8>,
    suspects: Option<Sink>,
}

impl OpenFile {
    fn begin(to: LineDestination<'_>, of: &OutputFile) -> Result<Self, SalvageError> {
        let packer = of.packer.as_ref().map(Packer::new).transpose();
        Ok(OpenFile {
            packer: packer.map_err(|error| unpacked(&of.name, error))?,
            file: to.begin(of)?,
            packed: Vec::new(),
            suspects: None,
        })
    }

    fn write(
        &mut self,
        to: LineDestination<'_>,
        of: &OutputFile,
        piece: &Piece,
    ) -> Result<(), SalvageError> {
        self.write_rows(of, &piece.rows)?;
        self.write_suspects(to, of, &piece.suspects)
    }

    fn write_suspects(
        &mut self,
        to: LineDestination<'_>,
        of: &OutputFile,
        rows: &[u8],
    ) -> Result<(), SalvageError> {
        let (LineDestination::Folder(folder), Some(own), false) =
            (to, &of.suspects, rows.is_empty())
        else {
            return Ok(());
        };
        let mut file = match self.suspects.take() {
            Some(file) => file,
            None => {
                let mut file = Sink::Part(folder.begin(&own.name)?);
                file.write(&own.head)?;
                file
            }
        };
        file.write(rows)?;
        self.suspects = Some(file);
        Ok(())
    }

    fn write_rows(&mut self, of: &OutputFile, bytes: &[u8]) -> Result<(), SalvageError> {
        let Some(packer) = &mut self.packer else {
            return self.file.write(bytes);
        };
        let added = packer.add(bytes, &mut self.packed);
        added.map_err(|error| unpacked(&of.name, error))?;
        let written = self.file.write(&self.packed);
        self.packed.clear();
        written
    }

    fn finish(mut self, of: &OutputFile) -> Result<u64, SalvageError> {
        if let Some(packer) = self.packer {
            let packed = packer.finish(&mut self.packed);
            packed.map_err(|error| unpacked(&of.name, error))?;
            self.file.write(&self.packed)?;
        }
        self.suspects.map_or(Ok(0), Sink::finish)?;
        self.file.finish()
    }
}

pub(super) fn unpacked(name: &str, error: ColumnarError) -> SalvageError {
    let source = std::io::Error::other(error);
    SalvageError::destination(std::path::Path::new(name), "gather the columns of", source)
}

struct State {
    lines: Vec<Line>,
    failure: Option<SalvageError>,
    is_stopped: bool,
    /// Memory of pieces that were written, for those to come: what the system gives anew it fills
    /// with zeros first.
    spare: Vec<Piece>,
    /// Tables whose files are whole, until somebody asks.
    fresh: Vec<(usize, u64)>,
}

/// The files of one database's tables.
pub(crate) struct OrderedFiles<'a> {
    to: LineDestination<'a>,
    names: Vec<String>,
    files: Vec<OutputFile>,
    waiting_max: usize,
    spare_max: usize,
    /// For pieces that wait: while it is used up, nobody begins another one but who has the next.
    ahead: Budget,
    state: Mutex<State>,
    changed: Condvar,
}

impl<'a> OrderedFiles<'a> {
    /// A file for each table.
    pub(crate) fn new(
        to: LineDestination<'a>,
        files: impl Iterator<Item = OutputFile>,
        threads: usize,
        ahead: Budget,
    ) -> Self {
        let files: Vec<OutputFile> = files.collect();
        let lines = files.iter().map(|_| Line::default()).collect();
        OrderedFiles {
            to,
            names: files.iter().map(|file| file.name.clone()).collect(),
            files,
            waiting_max: threads * 2,
            spare_max: threads,
            ahead,
            state: Mutex::new(State {
                lines,
                failure: None,
                is_stopped: false,
                spare: Vec::new(),
                fresh: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more is written, by anyone.
    pub(crate) fn stop(&self, failure: Option<SalvageError>) {
        let mut state = self.lock();
        state.is_stopped = true;
        if state.failure.is_none() {
            state.failure = failure;
        }
        self.changed.notify_all();
    }

    /// Nothing more is written of a table, and its file is taken away.
    pub(crate) fn void(&self, table: usize) {
        if let Some(line) = self.lock().lines.get_mut(table) {
            line.is_void = true;
        }
    }

    /// Tables whose files became whole since this was asked last, with their bytes.
    pub(crate) fn take_finished(&self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.lock().fresh)
    }

    /// The folder, if there is one, and the name of a table's file.
    pub(crate) fn file(&self, table: usize) -> Option<(&Folder, &str)> {
        match self.to {
            LineDestination::Folder(folder) => Some((folder, self.names.get(table)?)),
            LineDestination::Stream(..) => None,
        }
    }

    /// Suspect rows of a table have a file of their own.
    pub(crate) fn parts_suspects(&self, table: usize) -> bool {
        let file = self.files.get(table);
        file.is_some_and(|file| file.suspects.is_some())
    }

    /// The files' names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// An empty piece.
    pub(crate) fn piece(&self) -> Piece {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Hands in all that is left of a piece. Waits while too much is handed in ahead of its turn.
    pub(crate) fn hand_in(&self, table: usize, piece: u64, printed: Piece) {
        let mut state = self.lock();
        if let Some(line) = state.lines.get_mut(table) {
            let lease = self.ahead.take(printed.bytes() as u64);
            line.waiting.insert(piece, (printed, lease));
        }
        state = self.drain(state, table);
        while !state.is_stopped && self.is_too_far(&state, table, piece) {
            state = self.wait(state);
        }
    }

    fn is_too_far(&self, state: &State, table: usize, piece: u64) -> bool {
        let line = state.lines.get(table);
        let is_full = |line: &Line| {
            let is_used_up = self.ahead.free() == 0 && !line.waiting.is_empty();
            is_used_up || line.waiting.len() > self.waiting_max
        };
        line.is_some_and(|line| piece > line.next && is_full(line))
    }

    /// Writes what a piece has so far, when it is its turn, and empties it.
    pub(crate) fn write_ahead(&self, table: usize, piece: u64, printed: &mut Piece) {
        let mut state = self.lock();
        let is_turn = |state: &State| {
            let line = state.lines.get(table);
            line.is_some_and(|line| line.next == piece && !line.is_writing)
        };
        while !state.is_stopped && !is_turn(&state) {
            state = self.wait(state);
        }
        if !state.is_stopped {
            drop(self.write(state, table, printed));
        }
        printed.clear();
    }

    /// Writes pieces whose turn it is, unless another thread is at it.
    fn drain<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        table: usize,
    ) -> MutexGuard<'g, State> {
        loop {
            let is_stopped = state.is_stopped;
            let Some(line) = state.lines.get_mut(table) else {
                return state;
            };
            if line.is_writing || is_stopped {
                return state;
            }
            let Some((printed, lease)) = line.waiting.remove(&line.next) else {
                return state;
            };
            state = self.write(state, table, &printed);
            drop(lease);
            if state.spare.len() < self.spare_max {
                state.spare.push(printed.emptied());
            }
            let Some(line) = state.lines.get_mut(table) else {
                return state;
            };
            line.next += 1;
            let pieces = self.files.get(table).map(|file| file.pieces);
            let is_last = pieces == Some(line.next);
            if is_last && !state.is_stopped {
                state = self.finish(state, table);
            }
            self.changed.notify_all();
        }
    }

    /// Writes to a file while nobody else may, without holding the lock.
    fn write<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        table: usize,
        printed: &Piece,
    ) -> MutexGuard<'g, State> {
        let Some(line) = state.lines.get_mut(table) else {
            return state;
        };
        if line.is_void {
            line.file = None;
            return state;
        }
        line.is_writing = true;
        let file = line.file.take();
        drop(state);
        let written = self.written(file, table, printed);
        let mut state = self.lock();
        match (written, state.lines.get_mut(table)) {
            (Ok(file), Some(line)) => {
                line.file = Some(file);
                line.is_writing = false;
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                state.is_stopped = true;
                state.failure.get_or_insert(error);
            }
        }
        self.changed.notify_all();
        state
    }

    fn written(
        &self,
        file: Option<OpenFile>,
        table: usize,
        printed: &Piece,
    ) -> Result<OpenFile, SalvageError> {
        let of = self.files.get(table).expect("a line has its file");
        let mut file = match file {
            Some(file) => file,
            None => OpenFile::begin(self.to, of)?,
        };
        file.write(self.to, of, printed)?;
        Ok(file)
    }

    fn finish<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        table: usize,
    ) -> MutexGuard<'g, State> {
        let line = state.lines.get_mut(table);
        let taken = line.and_then(|line| Some((line.file.take()?, line.is_void)));
        let (Some((file, false)), Some(of)) = (taken, self.files.get(table)) else {
            return state;
        };
        drop(state);
        let finished = file.finish(of);
        let mut state = self.lock();
        match (finished, state.lines.get_mut(table)) {
            (Ok(bytes), Some(line)) => {
                line.finished = Some(bytes);
                state.fresh.push((table, bytes));
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                state.is_stopped = true;
                state.failure.get_or_insert(error);
            }
        }
        state
    }

    /// For each table the bytes of its file, if it is whole; or why nothing more could be written.
    pub(crate) fn results(self) -> Result<Vec<Option<u64>>, SalvageError> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(failure) => Err(failure),
            None => Ok(state.lines.iter().map(|line| line.finished).collect()),
        }
    }
}
