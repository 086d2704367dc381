//! One connection of a client: the few frames of the protocol that a load needs, on one task.
//!
//! ```text
//! simple     Query                                    ──►  … ReadyForQuery
//! extended   Parse Bind Describe Execute Sync         ──►  … ReadyForQuery
//! prepared   (Parse Sync once)  Bind Describe Execute Sync
//! ```
//!
//! These are the frames that libpq sends for `PQsendQuery`, `PQsendQueryParams` and
//! `PQsendQueryPrepared`, so that a server has the same work from us as from any program. Rows are
//! read and thrown away without being gathered. The protocol is described in
//! `doc/src/sgml/protocol.sgml`.

mod authentication;
mod frames;
mod stream;

use std::io;

use frames::Outgoing;
use pgclinic_servers::ConnectionTarget;
use stream::Stream;

/// Bodies that are looked at (errors, authentication) are short; a longer one is no server's.
const BODY_MAX: usize = 1 << 20;

/// A session with a server.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    incoming: Box<[u8]>,
    /// What of `incoming` was received and not read yet.
    unread: std::ops::Range<usize>,
    outgoing: Outgoing,
    key: Option<[u8; 8]>,
}

/// How the server answered one request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The first error.
    pub(crate) error: Option<ServerError>,
    /// Whether a transaction block is left open: `I`, `T` or `E` of `ReadyForQuery`.
    pub(crate) status: u8,
}

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    /// `FATAL` and `PANIC`: the server hangs up instead of being ready for more.
    pub(crate) is_last: bool,
}

/// Why a connection could not be made or is over.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The network or the server hung up.
    Io(io::Error),
    /// The server refused us.
    Refused(ServerError),
    /// What came is not understood.
    Protocol(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Refused(error) => write!(f, "{} ({})", error.message, error.sqlstate),
            Self::Protocol(why) => f.write_str(why),
        }
    }
}

impl Connection {
    /// Connects, proves who we are, and waits until the server takes statements.
    pub(crate) async fn open(target: &ConnectionTarget) -> Result<Self, Broken> {
        let mut connection = Self {
            stream: Stream::connect(&target.address).await?,
            incoming: vec![0; 16 * 1024].into(),
            unread: 0..0,
            outgoing: Outgoing::default(),
            key: None,
        };
        let mut parameters = vec![
            ("user", target.user.as_str()),
            ("database", target.database.as_str()),
            ("application_name", "pgclinic lab"),
            ("client_encoding", "UTF8"),
        ];
        let settings = target.settings.iter();
        parameters.extend(settings.map(|(name, value)| (name.as_str(), value.as_str())));
        connection.outgoing.startup(&parameters);
        connection.send().await?;
        authentication::prove(&mut connection, target).await?;
        let answer = connection.answer().await?;
        match answer.error {
            None => Ok(connection),
            Some(error) => Err(Broken::Refused(error)),
        }
    }

    /// The same session on a thread that drives no other.
    pub(crate) fn alone(self) -> io::Result<Self> {
        Ok(Self {
            stream: self.stream.alone()?,
            ..self
        })
    }

    /// Runs SQL as text.
    pub(crate) async fn simple(&mut self, sql: &str) -> Result<Answer, Broken> {
        self.outgoing.query(sql);
        self.send().await?;
        self.answer().await
    }

    /// Parses and runs SQL with `$1` … in one go.
    pub(crate) async fn extended(&mut self, sql: &str, values: &[i64]) -> Result<Answer, Broken> {
        self.outgoing.parse("", sql);
        self.outgoing.bind_and_execute("", values);
        self.send().await?;
        self.answer().await
    }

    /// Makes a prepared statement.
    pub(crate) async fn prepare(&mut self, name: &str, sql: &str) -> Result<Answer, Broken> {
        self.outgoing.parse(name, sql);
        self.outgoing.sync();
        self.send().await?;
        self.answer().await
    }

    /// Runs a prepared statement.
    pub(crate) async fn execute(&mut self, name: &str, values: &[i64]) -> Result<Answer, Broken> {
        self.outgoing.bind_and_execute(name, values);
        self.send().await?;
        self.answer().await
    }

    /// Says goodbye, so that the server logs no lost connection.
    pub(crate) async fn close(mut self) {
        self.outgoing.terminate();
        let _ = self.send().await;
    }

    /// Asks the server, over another connection, to end what runs here; then hangs up.
    pub(crate) async fn abandon(self, target: &ConnectionTarget) {
        let Some(key) = self.key else { return };
        if let Ok(mut stream) = Stream::connect(&target.address).await {
            let mut request = Outgoing::default();
            request.cancel(key);
            let _ = stream.write_all(request.bytes()).await;
        }
    }

    async fn send(&mut self) -> Result<(), Broken> {
        let sent = self.stream.write_all(self.outgoing.bytes()).await;
        self.outgoing.clear();
        Ok(sent?)
    }

    /// Reads up to `ReadyForQuery`.
    async fn answer(&mut self) -> Result<Answer, Broken> {
        let mut answer = Answer::default();
        loop {
            let (kind, length) = self.header().await?;
            match kind {
                b'Z' => {
                    answer.status = self
                        .body(length)
                        .await?
                        .first()
                        .copied()
                        .unwrap_or_default();
                    return Ok(answer);
                }
                b'E' => {
                    let error = ServerError::parse(&self.body(length).await?);
                    if error.is_last {
                        return Err(Broken::Refused(error));
                    }
                    answer.error.get_or_insert(error);
                }
                b'K' => self.key = self.body(length).await?.try_into().ok(),
                b'G' => {
                    self.skip(length).await?;
                    self.outgoing.copy_fail("a load sends no data");
                    self.send().await?;
                }
                _ => self.skip(length).await?,
            }
        }
    }

    /// Kind and length of the next frame's body.
    async fn header(&mut self) -> Result<(u8, usize), Broken> {
        while self.unread.len() < 5 {
            self.receive().await?;
        }
        let header = self.take(5);
        let (Some(kind), Some(length)) = (
            header.first().copied(),
            header
                .last_chunk::<4>()
                .map(|bytes| u32::from_be_bytes(*bytes)),
        ) else {
            return Err(Broken::Protocol("a frame is truncated".to_owned()));
        };
        let body = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_sub(4));
        body.map(|length| (kind, length))
            .ok_or_else(|| Broken::Protocol(format!("a frame of length {length}")))
    }

    async fn body(&mut self, length: usize) -> Result<Vec<u8>, Broken> {
        if length > BODY_MAX {
            return Err(Broken::Protocol(format!("an answer of {length} bytes")));
        }
        let mut body = Vec::with_capacity(length);
        while body.len() < length {
            if self.unread.is_empty() {
                self.receive().await?;
            }
            let missing = length - body.len();
            body.extend_from_slice(self.take(missing));
        }
        Ok(body)
    }

    async fn skip(&mut self, length: usize) -> Result<(), Broken> {
        let mut left = length;
        while left > 0 {
            if self.unread.is_empty() {
                self.receive().await?;
            }
            left -= self.take(left).len();
        }
        Ok(())
    }

    /// Up to `length` unread bytes.
    fn take(&mut self, length: usize) -> &[u8] {
        let begin = self.unread.start;
        let end = self.unread.end.min(begin.saturating_add(length));
        self.unread.start = end;
        self.incoming.get(begin..end).unwrap_or_default()
    }

    async fn receive(&mut self) -> Result<(), Broken> {
        self.incoming.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let free = self.incoming.get_mut(self.unread.end..).unwrap_or_default();
        let received = self.stream.read(free).await?;
        if received == 0 {
            return Err(Broken::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        self.unread.end += received;
        Ok(())
    }
}

impl ServerError {
    /// `ErrorResponse`: a letter and a text ended by zero for each field.
    fn parse(body: &[u8]) -> Self {
        let field = |letter: u8| {
            let mut fields = body.split(|byte| *byte == 0);
            let found = fields.find(|field| field.first() == Some(&letter));
            let text = found.and_then(|field| field.get(1..)).unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        Self {
            sqlstate: field(b'C'),
            message: field(b'M'),
            is_last: matches!(field(b'V').as_str(), "FATAL" | "PANIC"),
        }
    }
}
