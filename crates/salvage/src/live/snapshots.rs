//! One snapshot for all sessions, so that tables which are read side by side fit together.
//!
//! A session of its own holds the snapshot (`pg_export_snapshot`), all others begin their
//! transactions with it. When the server goes down the snapshot is gone with it: the next session
//! that begins takes a new one, and each table knows from which its rows came.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pgclinic_model::document::SnapshotAccount;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError, TextRow};

use super::{careful_session, locks};
use crate::schema::literal;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Who takes snapshots, and those that were taken.
pub(super) struct Snapshots<'a> {
    target: &'a ConnectionTarget,
    connect: &'a ConnectOptions,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    session: Option<Session>,
    /// What `SET TRANSACTION SNAPSHOT` takes.
    name: String,
    taken: Vec<SnapshotAccount>,
    /// Why the server gives none.
    refused: Option<String>,
}

impl<'a> Snapshots<'a> {
    pub(super) fn new(target: &'a ConnectionTarget, connect: &'a ConnectOptions) -> Self {
        Snapshots {
            target,
            connect,
            held: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that sees the snapshot; a server that is starting again is waited for.
    pub(super) fn reader(&'a self, patience: Duration) -> Result<Reader<'a>, SqlError> {
        let number = Cell::new(0);
        let session = careful_session(self.target, self.connect, patience, |session| {
            number.set(self.enter(session)?);
            Ok(())
        })?;
        Ok(Reader {
            session,
            snapshots: self,
            snapshot: number.get(),
            is_lost: false,
        })
    }

    /// Those that were taken, and why there are no more.
    pub(super) fn into_account(self) -> (Vec<SnapshotAccount>, Option<String>) {
        let held = self.held.into_inner();
        let held = held.unwrap_or_else(PoisonError::into_inner);
        (held.taken, held.refused)
    }

    /// Begins a transaction that sees the snapshot; its number, 0 where the server gives none.
    fn enter(&self, session: &mut Session) -> Result<u32, SqlError> {
        let mut held = self.lock();
        if held.session.is_some() && held.begin_in(session).is_ok() {
            return Ok(held.number());
        }
        // The first one, or the one that was held went away with the server.
        if session.is_over() {
            return Err(SqlError::Gone);
        }
        if held.refused.is_some() {
            return Ok(0);
        }
        if held.is_alive() {
            return held.begin_in(session).map(|()| held.number());
        }
        held.take(self.target, self.connect)?;
        if held.session.is_none() {
            return Ok(0);
        }
        held.begin_in(session)?;
        Ok(held.number())
    }
}

impl Held {
    fn number(&self) -> u32 {
        self.taken.last().map_or(0, |snapshot| snapshot.number)
    }

    /// The session that holds the snapshot still answers.
    fn is_alive(&mut self) -> bool {
        let session = self.session.as_mut();
        session.is_some_and(|session| session.execute("SELECT 1").is_ok())
    }

    fn begin_in(&self, session: &mut Session) -> Result<(), SqlError> {
        let name = literal(&self.name);
        let begun = session.execute(&format!("{BEGIN}; SET TRANSACTION SNAPSHOT {name}"));
        if begun.is_err() && !session.is_over() {
            session.execute("ROLLBACK")?;
        }
        begun
    }

    /// Takes a new snapshot. A server that refuses is no error: its tables are then read each for
    /// itself.
    fn take(
        &mut self,
        target: &ConnectionTarget,
        connect: &ConnectOptions,
    ) -> Result<(), SqlError> {
        self.session = None;
        let mut session = careful_session(target, connect, Duration::ZERO, |_| Ok(()))?;
        session.execute(BEGIN)?;
        let question = "SELECT pg_catalog.pg_export_snapshot(), pg_catalog.pg_current_snapshot(), \
                        pg_catalog.transaction_timestamp()";
        let answer = match session.query(question) {
            Ok(answer) => answer,
            Err(error) if session.is_over() => return Err(error),
            Err(error) => {
                self.refused = Some(error.to_string());
                return Ok(());
            }
        };
        if let Some([Some(name), Some(transactions), Some(at)]) = answer.first().map(Vec::as_slice)
        {
            self.name.clone_from(name);
            self.taken.push(SnapshotAccount {
                number: self.number() + 1,
                transactions: transactions.clone(),
                taken_at: at.clone(),
            });
            self.session = Some(session);
        }
        Ok(())
    }
}

/// A session in a transaction that sees the snapshot. What the server refuses ends a transaction:
/// another one is begun.
pub(super) struct Reader<'a> {
    session: Session,
    snapshots: &'a Snapshots<'a>,
    /// Number of the snapshot that is seen now.
    pub(super) snapshot: u32,
    /// No transaction could be begun any more.
    is_lost: bool,
}

impl Reader<'_> {
    /// See [`Session::query`].
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, SqlError> {
        locks::insist(|| {
            let answer = self.session.query(sql);
            self.after(answer)
        })
    }

    /// See [`Session::query_value`].
    pub(super) fn query_value(&mut self, sql: &str) -> Result<Option<String>, SqlError> {
        locks::insist(|| {
            let answer = self.session.query_value(sql);
            self.after(answer)
        })
    }

    /// See [`Session::copy_out`]; says how many rows there were.
    pub(super) fn copy_out(
        &mut self,
        sql: &str,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, SqlError> {
        let copied = self.session.copy_out(sql, sink);
        self.after(copied)?;
        Ok(self.session.last_count().unwrap_or(0))
    }

    /// Nothing more can be asked here.
    pub(super) fn is_over(&self) -> bool {
        self.is_lost || self.session.is_over()
    }

    fn after<T>(&mut self, answer: Result<T, SqlError>) -> Result<T, SqlError> {
        if answer.is_err() && !self.session.is_over() && self.snapshot != 0 {
            let begun = self.session.execute("ROLLBACK");
            match begun.and_then(|()| self.snapshots.enter(&mut self.session)) {
                Ok(number) => self.snapshot = number,
                Err(_) => self.is_lost = true,
            }
        }
        answer
    }
}
