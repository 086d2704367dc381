//! A session with a server over the simple query protocol: rows as text, COPY as bytes, every
//! message kept.

use std::time::{Duration, Instant};

use crate::message::{Message, SqlError};
use crate::target::ConnectionTarget;
use crate::wire::{Limit, Wire};

mod base_backup;
mod bearer;
mod copy_in;
mod password;
mod proof;

pub use base_backup::{Archive, BackupOptions, BaseBackup};
pub use bearer::Login;
pub use copy_in::CopyIn;
pub use proof::{Proof, Prover};

/// Notices of one session that are kept; a damaged relation can cause one for each page.
const MESSAGES_MAX: usize = 1000;

/// Between two tries to reach a server that is starting.
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// Limits and settings of a session.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The role; without one the superuser with which the cluster was made.
    pub user: Option<String>,
    /// The server ends a statement after this (`statement_timeout`).
    pub statement_timeout: Option<Duration>,
    /// We stop waiting for a statement after this, whatever the server does.
    pub wall_limit: Duration,
    /// We stop waiting for the session to begin after this, where that is less.
    pub open_limit: Option<Duration>,
    /// More settings for this session.
    pub settings: Vec<(String, String)>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            user: None,
            statement_timeout: None,
            wall_limit: Duration::from_secs(120),
            open_limit: None,
            settings: Vec::new(),
        }
    }
}

/// One connection. Dropping it hangs up.
#[derive(Debug)]
pub struct Session {
    wire: Wire,
    wall_limit: Duration,
    messages: Vec<Message>,
    messages_omitted: u64,
    is_over: bool,
    last_count: Option<u64>,
}

/// One row as text, `None` for null.
pub type TextRow = Vec<Option<String>>;

enum Answer<'a> {
    Row(&'a [u8]),
    Copy(&'a [u8]),
}

impl Session {
    /// Connects to a server by its URL; the role is the URL's, the rest of the options hold.
    pub fn open(target: &ConnectionTarget, options: &ConnectOptions) -> Result<Self, SqlError> {
        let (mut session, limit) = Self::begin(target, options)?;
        session.prove(target, limit)?;
        session.read_answer(limit, &mut |_| Ok(()))?;
        Ok(session)
    }

    /// As [`Session::open`], with `prepare` done in the session; a server that does not take
    /// connections now, or ends this one before it is prepared, is asked again for so long.
    pub fn open_when_ready(
        target: &ConnectionTarget,
        options: &ConnectOptions,
        patience: Duration,
        prepare: impl Fn(&mut Self) -> Result<(), SqlError>,
    ) -> Result<Self, SqlError> {
        let end = Instant::now() + patience;
        loop {
            let opened = Self::open(target, options);
            let prepared = opened.and_then(|mut session| prepare(&mut session).map(|()| session));
            match prepared {
                Err(error) if is_passing(&error) && Instant::now() < end => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                prepared => return prepared,
            }
        }
    }

    /// Says who we are; the server's answer is still to be read.
    fn begin(
        target: &ConnectionTarget,
        options: &ConnectOptions,
    ) -> Result<(Self, Limit), SqlError> {
        let wall_limit = options.wall_limit;
        let limit = Limit::from_now(options.open_limit.unwrap_or(wall_limit).min(wall_limit));
        let wire = Wire::connect(target, limit)?;
        let mut session = Self {
            wire,
            wall_limit,
            messages: Vec::new(),
            messages_omitted: 0,
            is_over: false,
            last_count: None,
        };
        let timeout = options
            .statement_timeout
            .unwrap_or_default()
            .as_millis()
            .to_string();
        let mut parameters = vec![
            ("user", target.user.as_str()),
            ("database", target.database.as_str()),
            ("application_name", "pgclinic"),
            ("client_encoding", "UTF8"),
            ("statement_timeout", timeout.as_str()),
        ];
        parameters.extend(
            target
                .settings
                .iter()
                .chain(&options.settings)
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        session.wire.send_startup(&parameters, limit)?;
        Ok((session, limit))
    }

    /// Runs one or more statements and drops their rows.
    pub fn execute(&mut self, sql_batch: &str) -> Result<(), SqlError> {
        self.run(sql_batch, &mut |_| Ok(()))
    }

    /// Runs a statement and gives its rows as the server prints them.
    pub fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, SqlError> {
        let mut rows = Vec::new();
        self.run(sql, &mut |answer| {
            if let Answer::Row(body) = answer {
                rows.push(
                    parse_row(body)
                        .ok_or_else(|| SqlError::Protocol("a row is truncated".to_owned()))?,
                );
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first column of the first row; `None` for null and for no row.
    pub fn query_value(&mut self, sql: &str) -> Result<Option<String>, SqlError> {
        let first = self.query(sql)?.into_iter().next();
        Ok(first.and_then(|row| row.into_iter().next()).flatten())
    }

    /// Runs `COPY … TO STDOUT` and hands its bytes to `sink` as they come; says how many there
    /// were.
    pub fn copy_out(&mut self, sql: &str, sink: &mut dyn FnMut(&[u8])) -> Result<u64, SqlError> {
        let mut bytes = 0_u64;
        self.run(sql, &mut |answer| {
            if let Answer::Copy(data) = answer {
                bytes += data.len() as u64;
                sink(data);
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Notices and warnings since the last call, oldest first, at most 1000.
    pub fn take_messages(&mut self) -> Vec<Message> {
        self.messages_omitted = 0;
        std::mem::take(&mut self.messages)
    }

    /// How many more messages there were since the last [`Session::take_messages`].
    pub fn messages_omitted(&self) -> u64 {
        self.messages_omitted
    }

    /// How many rows the last statement was about, as the server said when it was done.
    pub fn last_count(&self) -> Option<u64> {
        self.last_count
    }

    /// Whether the session has ended: the server hung up, or a limit passed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn run(
        &mut self,
        sql: &str,
        on: &mut dyn FnMut(Answer<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if self.is_over {
            return Err(SqlError::Gone);
        }
        let limit = Limit::from_now(self.wall_limit);
        self.wire.send_text(b'Q', sql, limit)?;
        self.read_answer(limit, on)
    }

    /// Reads until the server is ready for the next statement. The first error wins; what follows
    /// it is read too.
    fn read_answer(
        &mut self,
        limit: Limit,
        on: &mut dyn FnMut(Answer<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut failed: Option<Message> = None;
        loop {
            let (kind, body) = match self.wire.receive(limit) {
                Ok(frame) => frame,
                Err(error) => {
                    self.is_over = true;
                    return Err(match (error, failed) {
                        (SqlError::Gone, Some(message)) => SqlError::Server(Box::new(message)),
                        (error, _) => error,
                    });
                }
            };
            match kind {
                b'Z' => {
                    return failed
                        .map_or(Ok(()), |message| Err(SqlError::Server(Box::new(message))));
                }
                b'E' => failed = failed.or_else(|| Some(Message::parse(body))),
                b'N' if self.messages.len() < MESSAGES_MAX => {
                    self.messages.push(Message::parse(body))
                }
                b'N' => self.messages_omitted += 1,
                b'D' => on(Answer::Row(body)).inspect_err(|_| self.is_over = true)?,
                b'd' => on(Answer::Copy(body))?,
                b'G' => self
                    .wire
                    .send_text(b'f', "no data is sent from here", limit)?,
                b'C' => self.last_count = count_of(body),
                // Parameter status, key data, row description, copy start and end, notification.
                b'S' | b'K' | b'T' | b'I' | b'H' | b'c' | b'A' => {}
                other => {
                    self.is_over = true;
                    return Err(SqlError::Protocol(format!(
                        "a frame of unknown kind {other}"
                    )));
                }
            }
        }
    }
}

/// A server that starts, recovers or has no room says so; one that is down does not answer.
fn is_passing(error: &SqlError) -> bool {
    match error {
        SqlError::Server(message) => ["57P", "53"]
            .iter()
            .any(|class| message.sqlstate.starts_with(class)),
        SqlError::Gone | SqlError::Io(_) => true,
        _ => false,
    }
}

/// The last word of `COPY 12` or `INSERT 0 12`.
fn count_of(tag: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(tag.strip_suffix(b"\0")?).ok()?;
    text.rsplit(' ').next()?.parse().ok()
}

/// `DataRow`: a count, then for each value its length (-1 is null) and bytes.
fn parse_row(body: &[u8]) -> Option<TextRow> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            row.push(None);
            continue;
        };
        row.push(Some(
            String::from_utf8_lossy(rest.get(..length)?).into_owned(),
        ));
        rest = rest.get(length..)?;
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_is_not_an_empty_text_and_a_cut_row_is_no_row() {
        let row = b"\0\x02\0\0\0\0\xff\xff\xff\xff";
        assert_eq!(parse_row(row), Some(vec![Some(String::new()), None]));
        assert_eq!(parse_row(b"\0\x01\0\0\0\x05abc"), None);
    }
}
