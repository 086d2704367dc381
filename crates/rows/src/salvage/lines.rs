//! Files that several threads fill in order: each piece of a table is written when all before it are.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::SalvageError;
use super::folder::{Folder, PartFile};

/// Where the writing of one file stands.
#[derive(Default)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
    file: Option<PartFile>,
    is_writing: bool,
    finished: Option<u64>,
}

struct State {
    lines: Vec<Line>,
    failure: Option<SalvageError>,
    is_stopped: bool,
    /// Tables whose files are whole, until somebody asks.
    fresh: Vec<(usize, u64)>,
}

/// The files of one database's tables.
pub(crate) struct Lines<'a> {
    folder: &'a Folder,
    names: Vec<String>,
    pieces: Vec<u64>,
    waiting_max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl<'a> Lines<'a> {
    /// A file of this name and number of pieces for each table.
    pub(crate) fn new(
        folder: &'a Folder,
        files: impl Iterator<Item = (String, u64)>,
        threads: usize,
    ) -> Self {
        let (names, pieces): (Vec<_>, Vec<_>) = files.unzip();
        let lines = names.iter().map(|_| Line::default()).collect();
        Lines {
            folder,
            names,
            pieces,
            waiting_max: threads * 2,
            state: Mutex::new(State {
                lines,
                failure: None,
                is_stopped: false,
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

    /// Tables whose files became whole since this was asked last, with their bytes.
    pub(crate) fn take_finished(&self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.lock().fresh)
    }

    /// The files' names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Hands in all that is left of a piece. Waits while too much is handed in ahead of its turn.
    pub(crate) fn hand_in(&self, table: usize, piece: u64, bytes: Vec<u8>) {
        let mut state = self.lock();
        if let Some(line) = state.lines.get_mut(table) {
            line.waiting.insert(piece, bytes);
        }
        state = self.drain(state, table);
        while !state.is_stopped && self.is_too_far(&state, table, piece) {
            state = self.wait(state);
        }
    }

    fn is_too_far(&self, state: &State, table: usize, piece: u64) -> bool {
        let line = state.lines.get(table);
        line.is_some_and(|line| piece > line.next && line.waiting.len() > self.waiting_max)
    }

    /// Writes what a piece has so far, when it is its turn, and empties it.
    pub(crate) fn write_ahead(&self, table: usize, piece: u64, bytes: &mut Vec<u8>) {
        let mut state = self.lock();
        let is_turn = |state: &State| {
            let line = state.lines.get(table);
            line.is_some_and(|line| line.next == piece && !line.is_writing)
        };
        while !state.is_stopped && !is_turn(&state) {
            state = self.wait(state);
        }
        if !state.is_stopped {
            drop(self.write(state, table, bytes));
        }
        bytes.clear();
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
            let Some(bytes) = line.waiting.remove(&line.next) else {
                return state;
            };
            state = self.write(state, table, &bytes);
            let Some(line) = state.lines.get_mut(table) else {
                return state;
            };
            line.next += 1;
            let is_last = self.pieces.get(table) == Some(&line.next);
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
        bytes: &[u8],
    ) -> MutexGuard<'g, State> {
        let Some(line) = state.lines.get_mut(table) else {
            return state;
        };
        line.is_writing = true;
        let file = line.file.take();
        drop(state);
        let written = self.written(file, table, bytes);
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
        file: Option<PartFile>,
        table: usize,
        bytes: &[u8],
    ) -> Result<PartFile, SalvageError> {
        let name = self.names.get(table).map_or("", String::as_str);
        let mut file = match file {
            Some(file) => file,
            None => self.folder.begin(name)?,
        };
        file.write(bytes)?;
        Ok(file)
    }

    fn finish<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        table: usize,
    ) -> MutexGuard<'g, State> {
        let Some(file) = state.lines.get_mut(table).and_then(|line| line.file.take()) else {
            return state;
        };
        drop(state);
        let finished = file.finish();
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
