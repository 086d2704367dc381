//! Rows on their way into the tables of a server: each batch is a COPY of its own, in as many
//! sessions as there are threads.
//!
//! A batch that the server refuses is halved until the rows stand alone that it does not take.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pgclinic_model::document::{REFUSED_ROW, TableAccount};
use pgclinic_model::{plural, verb_of};
use pgclinic_servers::{ConnectionTarget, CopyIn, Session, SqlError};

use super::super::error::SalvageError;
use super::super::row_sink::Finished;
use super::super::staging::Staging;
use super::{ledger, open_session};

/// Refused rows that are shown of one table, and bytes of each.
const REFUSED_SHOWN: usize = 20;
const SHOWN_BYTES: usize = 200;

/// A table of the destination.
pub(super) struct LoadTable {
    /// Quoted, with its schema.
    pub(super) name: String,
    /// `COPY … FROM STDIN`.
    pub(super) copy: String,
    /// What stands around it, where the rows do not go straight into the table.
    pub(super) staging: Option<Staging>,
    /// Pieces that are still to come.
    pub(super) left: u64,
}

/// A value needs more memory than the server has.
const OUT_OF_MEMORY: &str = "53200";
/// What the server says of a request for more memory than it ever asks for.
const INTERNAL_ERROR: &str = "XX000";

/// Where the loading of one table stands.
struct Loading {
    table: LoadTable,
    bytes: u64,
    finished: Finished,
    /// The server takes nothing for this table.
    has_failed: bool,
}

/// What became of a row whose values came in parts.
pub(crate) enum Streamed {
    /// It is there, or nothing is loaded any more.
    Taken,
    /// The value of this column did not come to its end.
    Broken(usize, String),
    /// The server did not take it.
    Refused(String),
}

/// Writes a row into a COPY; says which column's value did not come to its end, and why.
pub(crate) type GiveRow<'g> =
    &'g mut dyn FnMut(&mut CopyIn<'_>) -> Result<Option<(usize, String)>, SqlError>;

struct State {
    tables: Vec<Loading>,
    sessions: Vec<Session>,
    failure: Option<SalvageError>,
    is_stopped: bool,
    /// Tables all of whose rows are there, until somebody asks.
    fresh: Vec<usize>,
}

/// The tables of one database.
pub(crate) struct Loads<'a> {
    target: &'a ConnectionTarget,
    state: Mutex<State>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(target: &'a ConnectionTarget, tables: Vec<LoadTable>) -> Self {
        let begun = |table| Loading {
            table,
            bytes: 0,
            finished: Finished::default(),
            has_failed: false,
        };
        Loads {
            target,
            state: Mutex::new(State {
                tables: tables.into_iter().map(begun).collect(),
                sessions: Vec::new(),
                failure: None,
                is_stopped: false,
                fresh: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, failure: Option<SalvageError>) {
        let mut state = self.lock();
        state.is_stopped = true;
        if state.failure.is_none() {
            state.failure = failure;
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let state = self.lock();
        let names = state.tables.iter();
        names.map(|loading| loading.table.name.clone()).collect()
    }

    pub(crate) fn write_ahead(&self, table: usize, bytes: &mut Vec<u8>) {
        self.with_session(|session| self.load(session, table, bytes));
        bytes.clear();
    }

    pub(crate) fn hand_in(&self, table: usize, bytes: &[u8]) {
        self.with_session(|session| {
            self.load(session, table, bytes)?;
            self.count_piece(table);
            Ok(())
        });
    }

    /// Tables all of whose rows came since this was asked last.
    pub(crate) fn take_finished(&self) -> Vec<(usize, Finished)> {
        let mut state = self.lock();
        let fresh = std::mem::take(&mut state.fresh);
        let of = |table: usize| {
            let loading = state.tables.get(table)?;
            let finished = Finished {
                bytes: Some(loading.bytes),
                ..loading.finished.clone()
            };
            Some((table, finished))
        };
        fresh.into_iter().filter_map(of).collect()
    }

    /// Notes a table with its account: from now on it is whole.
    pub(crate) fn note(&self, table: usize, account: &TableAccount) {
        let name = self.names().into_iter().nth(table).unwrap_or_default();
        self.with_session(|session| {
            session.execute(&ledger::table_is_whole(&name, account))?;
            self.book(table, |loading| {
                loading.finished.bytes = Some(loading.bytes);
            });
            Ok(())
        });
    }

    /// What ends a session ends the whole work: it can be taken up again.
    fn with_session(&self, work: impl FnOnce(&mut Session) -> Result<(), SqlError>) {
        if self.is_stopped() {
            return;
        }
        let kept = self.lock().sessions.pop();
        let mut session = match kept.map_or_else(|| open_session(self.target), Ok) {
            Ok(session) => session,
            Err(error) => return self.stop(Some(error)),
        };
        match work(&mut session) {
            Ok(()) => self.lock().sessions.push(session),
            Err(source) => self.stop(Some(SalvageError::server("load rows", source))),
        }
    }

    /// Loads one row, which `give` writes.
    pub(crate) fn stream(&self, table: usize, give: GiveRow<'_>) -> Streamed {
        let mut streamed = Streamed::Taken;
        let Some((copy, staging)) = self.copy_of(table) else {
            return streamed;
        };
        self.with_session(|session| {
            let mut given = RowInParts::default();
            let loaded = staged(session, staging.as_ref(), |session| {
                given.stream(session, &copy, give)
            });
            if let Some(error) = given.broken_session {
                return Err(error);
            }
            match (loaded, given.broken) {
                (Ok(missing), None) => self.book(table, |loading| {
                    loading.bytes += given.bytes;
                    loading.miss(missing);
                }),
                (_, Some((column, why))) => streamed = Streamed::Broken(column, why),
                (Err(error), None) => return self.refused(table, error, &mut streamed),
            }
            Ok(())
        });
        streamed
    }

    /// The server did not take a row that came in parts. For want of memory it does not take that
    /// one, and may take others.
    fn refused(
        &self,
        table: usize,
        error: SqlError,
        streamed: &mut Streamed,
    ) -> Result<(), SqlError> {
        let state = error.message().map(|message| message.sqlstate.clone());
        let is_memory = matches!(state.as_deref(), Some(OUT_OF_MEMORY | INTERNAL_ERROR));
        match trouble(&error) {
            CopyErrorKind::Session if !is_memory => return Err(error),
            CopyErrorKind::Table if !is_memory => self.book(table, |loading| loading.fail(&error)),
            _ => *streamed = Streamed::Refused(error.to_string()),
        }
        Ok(())
    }

    /// The statement that loads a table; none where the server takes nothing for it.
    fn copy_of(&self, table: usize) -> Option<(String, Option<Staging>)> {
        let state = self.lock();
        let loading = state.tables.get(table)?;
        let LoadTable { copy, staging, .. } = &loading.table;
        (!loading.has_failed).then(|| (copy.clone(), staging.clone()))
    }

    /// Loads whole rows.
    fn load(&self, session: &mut Session, table: usize, bytes: &[u8]) -> Result<(), SqlError> {
        let Some((copy, staging)) = self.copy_of(table) else {
            return Ok(());
        };
        let mut open = vec![bytes];
        while let Some(rows) = open.pop().filter(|rows| !rows.is_empty()) {
            let loaded = staged(session, staging.as_ref(), |session| {
                session.copy_in(&copy, rows)
            });
            let error = match loaded {
                Ok(missing) => {
                    self.book(table, |loading| {
                        loading.bytes += rows.len() as u64;
                        loading.miss(missing);
                    });
                    continue;
                }
                Err(error) => error,
            };
            match trouble_of(&error, staging.is_some()) {
                CopyErrorKind::Session => return Err(error),
                CopyErrorKind::Table => {
                    self.book(table, |loading| loading.fail(&error));
                    return Ok(());
                }
                CopyErrorKind::Row => match halves(rows) {
                    Some((first, second)) => open.extend([second, first]),
                    None => self.book(table, |loading| loading.refuse(rows, &error)),
                },
            }
        }
        Ok(())
    }

    fn book(&self, table: usize, what: impl FnOnce(&mut Loading)) {
        if let Some(loading) = self.lock().tables.get_mut(table) {
            what(loading);
        }
    }

    /// After the last piece all rows are there.
    fn count_piece(&self, table: usize) {
        let mut state = self.lock();
        let Some(loading) = state.tables.get_mut(table) else {
            return;
        };
        loading.table.left = loading.table.left.saturating_sub(1);
        if loading.table.left == 0 && !loading.has_failed {
            state.fresh.push(table);
        }
    }

    pub(crate) fn results(self) -> Result<Vec<Finished>, SalvageError> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(failure) => Err(failure),
            None => Ok(state
                .tables
                .into_iter()
                .map(|loading| loading.finished)
                .collect()),
        }
    }
}

impl Loading {
    fn fail(&mut self, error: &SqlError) {
        self.has_failed = true;
        self.finished.has_failed = true;
        let note = format!("the server does not take its rows: {error}");
        self.finished.notes.push(note);
    }

    /// Rows that others stand in the place of.
    fn miss(&mut self, rows: u64) {
        self.finished.refused += rows;
        if rows > 0 && self.finished.notes.len() < REFUSED_SHOWN {
            let note = format!(
                "{rows} {were} left out: the extension brings others with the same keys, and they stay",
                rows = plural(rows, "row"),
                were = verb_of(rows, "were")
            );
            self.finished.notes.push(note);
        }
    }

    fn refuse(&mut self, row: &[u8], error: &SqlError) {
        self.finished.refused += 1;
        if self.finished.notes.len() < REFUSED_SHOWN {
            let row = row.get(..SHOWN_BYTES).unwrap_or(row);
            let row = String::from_utf8_lossy(row);
            let note = format!("{REFUSED_ROW}{error}; it begins {:?}", row.trim_end());
            self.finished.notes.push(note);
        }
    }
}

/// What became of a row that came in parts.
#[derive(Default)]
struct RowInParts {
    bytes: u64,
    /// The column whose value did not come to its end, and why.
    broken: Option<(usize, String)>,
    /// The row could not even be given.
    broken_session: Option<SqlError>,
}

impl RowInParts {
    /// A row that is broken is taken back: an error ends the transaction around it too.
    fn stream(
        &mut self,
        session: &mut Session,
        copy: &str,
        give: GiveRow<'_>,
    ) -> Result<(), SqlError> {
        let mut copying = session.begin_copy_in(copy)?;
        match give(&mut copying) {
            Ok(broken) => self.broken = broken,
            Err(error) => {
                let told = SqlError::Protocol("the row could not be given".into());
                self.broken_session = Some(error);
                return Err(told);
            }
        }
        self.bytes = copying.sent_bytes();
        match &self.broken {
            None => copying.finish(),
            Some((_, why)) => {
                copying.cancel()?;
                Err(SqlError::Protocol(why.clone()))
            }
        }
    }
}

/// Loads rows by way of a stage, where there is one. Says how many of them the table has others in
/// the place of.
fn staged(
    session: &mut Session,
    staging: Option<&Staging>,
    load: impl FnOnce(&mut Session) -> Result<(), SqlError>,
) -> Result<u64, SqlError> {
    let Some(staging) = staging else {
        return load(session).map(|()| 0);
    };
    let work = |session: &mut Session| -> Result<u64, SqlError> {
        session.execute(&format!("BEGIN; {}", staging.create))?;
        load(session)?;
        session.execute(&staging.insert)?;
        let missing = match &staging.missing {
            Some(question) => session.query_value(question)?,
            None => None,
        };
        session.execute("COMMIT")?;
        Ok(missing.and_then(|rows| rows.parse().ok()).unwrap_or(0))
    };
    let done = work(session);
    if done.is_err() && !session.is_over() {
        session.execute("ROLLBACK")?;
    }
    done
}

/// What an error of a COPY is about.
enum CopyErrorKind {
    Row,
    Table,
    Session,
}

/// Classes of SQLSTATE: 22 is data, 23 a constraint, 53 resources, 57 and 58 the server itself.
fn trouble(error: &SqlError) -> CopyErrorKind {
    let Some(message) = error.message() else {
        return CopyErrorKind::Session;
    };
    let is_over = matches!(message.severity.as_str(), "FATAL" | "PANIC");
    match message.sqlstate.get(..2) {
        _ if is_over => CopyErrorKind::Session,
        Some("22" | "23" | "54" | "P0") => CopyErrorKind::Row,
        Some("53" | "57" | "58") => CopyErrorKind::Session,
        _ => CopyErrorKind::Table,
    }
}

/// Functions of an extension in C that a stage leads through call values of one row an internal
/// error.
fn trouble_of(error: &SqlError, is_staged: bool) -> CopyErrorKind {
    let state = error.message().map(|message| message.sqlstate.as_str());
    match trouble(error) {
        CopyErrorKind::Table if is_staged && state == Some(INTERNAL_ERROR) => CopyErrorKind::Row,
        other => other,
    }
}

/// Two parts of several rows. A line break inside a value is escaped, so that each row is a line.
fn halves(rows: &[u8]) -> Option<(&[u8], &[u8])> {
    let middle = rows.len() / 2;
    let is_break = |byte: &u8| *byte == b'\n';
    let (before, after) = rows.split_at_checked(middle)?;
    let from = match after.iter().position(is_break) {
        Some(at) if middle + at + 1 < rows.len() => middle + at + 1,
        _ => before.iter().rposition(is_break)? + 1,
    };
    rows.split_at_checked(from)
}

#[cfg(test)]
mod tests {
    use super::halves;

    #[test]
    fn rows_are_halved_between_lines_until_one_is_left() {
        assert_eq!(halves(b"a\nbb\nc\n"), Some((&b"a\nbb\n"[..], &b"c\n"[..])));
        assert_eq!(
            halves(b"a\nlong line\n"),
            Some((&b"a\n"[..], &b"long line\n"[..]))
        );
        assert_eq!(
            halves(b"long line\na\n"),
            Some((&b"long line\n"[..], &b"a\n"[..]))
        );
        assert_eq!(halves(b"one\n"), None);
        assert_eq!(halves(b"\n"), None);
    }
}
