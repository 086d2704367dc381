//! What a server says beside its rows: errors, warnings, notices (`protocol-error-fields` in
//! PostgreSQL's manual).

use std::fmt;
use std::time::Duration;

/// One error, warning or notice of a server, in English (`lc_messages` is `C`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE`, `INFO`, `LOG` or `DEBUG`.
    pub severity: String,
    /// The five characters of the SQLSTATE code, for example `XX001`.
    pub sqlstate: String,
    /// The primary text.
    pub message: String,
    /// The text after `DETAIL:`.
    pub detail: Option<String>,
    /// The text after `HINT:`.
    pub hint: Option<String>,
    /// The text after `CONTEXT:`.
    pub context: Option<String>,
}

impl Message {
    /// Reads the fields of an `ErrorResponse` or `NoticeResponse`: a letter and a text ended by
    /// zero, repeated.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut message = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((code, text)) = field.split_first() else {
                continue;
            };
            message.set(*code, String::from_utf8_lossy(text).into_owned());
        }
        message
    }

    fn set(&mut self, code: u8, text: String) {
        match code {
            // 'V' is the severity without translation; it comes after 'S' and replaces it.
            b'S' | b'V' => self.severity = text,
            b'C' => self.sqlstate = text,
            b'M' => self.message = text,
            b'D' => self.detail = Some(text),
            b'H' => self.hint = Some(text),
            b'W' => self.context = Some(text),
            _ => {}
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:  {}", self.severity, self.message)?;
        let more = [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("CONTEXT", &self.context),
        ];
        for (name, text) in more {
            if let Some(text) = text {
                write!(out, "\n{name}:  {text}")?;
            }
        }
        Ok(())
    }
}

/// Why a statement gave no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqlError {
    /// The server refused or failed; after `FATAL` and `PANIC` the session is over too.
    Server(Box<Message>),
    /// The connection closed without a word of error: the backend crashed or was killed.
    Gone,
    /// The wall-clock limit passed. The session is over, its backend may still be at work.
    TimedOut {
        /// The limit that passed.
        limit: Duration,
    },
    /// The socket failed, or no server listens.
    Io(std::io::Error),
    /// Bytes that the protocol does not allow.
    Protocol(String),
}

impl SqlError {
    /// The server's own message, where there is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Server(message) => Some(message),
            _ => None,
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(message) => message.fmt(out),
            Self::Gone => out.write_str("the server closed the connection unexpectedly"),
            Self::TimedOut { limit } => {
                write!(out, "no answer within {:.1} s", limit.as_secs_f64())
            }
            Self::Io(error) => write!(out, "the connection failed: {error}"),
            Self::Protocol(what) => write!(out, "the server's answer breaks the protocol: {what}"),
        }
    }
}

impl std::error::Error for SqlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_like_in_psql() {
        let message = Message::parse(
            b"SFEHLER\0VERROR\0CXX001\0Minvalid page\0Dblock 7\0Hrestore\0Fbufmgr.c\0\0",
        );
        assert_eq!(
            message.to_string(),
            "ERROR:  invalid page\nDETAIL:  block 7\nHINT:  restore"
        );
        assert_eq!(message.sqlstate, "XX001");
    }

    #[test]
    fn cut_fields_are_kept_as_far_as_they_go() {
        assert_eq!(Message::parse(b"VERROR\0Mhalf").message, "half");
        assert_eq!(Message::parse(b""), Message::default());
    }
}
