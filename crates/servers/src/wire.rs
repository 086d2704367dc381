//! The frames of PostgreSQL's protocol 3.0 (`protocol-message-formats` in its manual).
//!
//! ```text
//! kind u8 | length i32, itself included | body
//! ```
//!
//! Written here rather than taken from a client library because a hurt server breaks off in the
//! middle: a reader must see each frame, each notice and the bare end of the stream, and must never
//! wait past its limit.

use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::message::SqlError;
use crate::stream::Stream;
use crate::target::ConnectionTarget;

/// No frame of a sound server is longer: a field has at most 1 GiB.
const FRAME_BYTES_MAX: usize = 0x7fff_ffff;

/// One connection: frames out, frames in.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    buffer: Vec<u8>,
    used: usize,
}

/// The end of a statement's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    end: Instant,
    whole: Duration,
}

impl Limit {
    pub(crate) fn from_now(whole: Duration) -> Self {
        Self {
            end: Instant::now() + whole,
            whole,
        }
    }

    fn left(self) -> Result<Duration, SqlError> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(SqlError::TimedOut { limit: self.whole })
        } else {
            Ok(left)
        }
    }
}

impl Wire {
    pub(crate) fn connect(target: &ConnectionTarget, limit: Limit) -> Result<Self, SqlError> {
        Ok(Self {
            stream: Stream::connect(target, limit.left()?)?,
            buffer: Vec::new(),
            used: 0,
        })
    }

    /// Sends the first frame, which has no kind: the protocol's version, then names and values.
    pub(crate) fn send_startup(
        &mut self,
        parameters: &[(&str, &str)],
        limit: Limit,
    ) -> Result<(), SqlError> {
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend(name.bytes().chain([0]).chain(value.bytes()).chain([0]));
        }
        body.push(0);
        self.send_frame(None, &body, limit)
    }

    /// Sends a frame whose body is one text ended by zero.
    pub(crate) fn send_text(&mut self, kind: u8, text: &str, limit: Limit) -> Result<(), SqlError> {
        if text.contains('\0') {
            return Err(SqlError::Protocol(
                "a statement cannot hold a zero byte".to_owned(),
            ));
        }
        let body: Vec<u8> = text.bytes().chain([0]).collect();
        self.send_frame(Some(kind), &body, limit)
    }

    /// Sends a frame whose body is these bytes.
    pub(crate) fn send_bytes(
        &mut self,
        kind: u8,
        body: &[u8],
        limit: Limit,
    ) -> Result<(), SqlError> {
        self.send_frame(Some(kind), body, limit)
    }

    fn send_frame(&mut self, kind: Option<u8>, body: &[u8], limit: Limit) -> Result<(), SqlError> {
        let too_long = |_| SqlError::Protocol("the statement is longer than 2 GiB".to_owned());
        let length = i32::try_from(body.len() + 4).map_err(too_long)?;
        let mut frame: Vec<u8> = kind.into_iter().chain(length.to_be_bytes()).collect();
        frame.extend_from_slice(body);
        self.stream
            .set_timeouts(limit.left()?)
            .map_err(SqlError::Io)?;
        match self.stream.write_all(&frame) {
            // A server that hung up may have said why; that is still to be read.
            Err(error) if is_gone(error.kind()) => Ok(()),
            Err(error) if is_late(error.kind()) => Err(SqlError::TimedOut { limit: limit.whole }),
            sent => sent.map_err(SqlError::Io),
        }
    }

    /// The next frame: its kind and body.
    pub(crate) fn receive(&mut self, limit: Limit) -> Result<(u8, &[u8]), SqlError> {
        let (kind, body) = loop {
            let unread = self.buffer.get(self.used..).unwrap_or_default();
            if let Some((kind, body)) = frame(unread)? {
                break (kind, self.used + body.start..self.used + body.end);
            }
            self.read_more(limit)?;
        };
        self.used = body.end;
        Ok((kind, self.buffer.get(body).unwrap_or_default()))
    }

    fn read_more(&mut self, limit: Limit) -> Result<(), SqlError> {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.stream
            .set_timeouts(limit.left()?)
            .map_err(SqlError::Io)?;
        let mut chunk = [0_u8; 32 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(SqlError::Gone),
            Ok(length) => {
                self.buffer
                    .extend_from_slice(chunk.get(..length).unwrap_or_default());
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) if is_gone(error.kind()) => Err(SqlError::Gone),
            Err(error) if is_late(error.kind()) => Err(SqlError::TimedOut { limit: limit.whole }),
            Err(error) => Err(SqlError::Io(error)),
        }
    }
}

fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted
    )
}

fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The first frame of `bytes`, or `None` when it is not there as a whole yet.
fn frame(bytes: &[u8]) -> Result<Option<(u8, Range<usize>)>, SqlError> {
    let Some(([kind, length @ ..], _)) = bytes.split_first_chunk::<5>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if !(4..=FRAME_BYTES_MAX).contains(&length) {
        return Err(SqlError::Protocol(format!(
            "a frame of kind {kind} claims {length} bytes"
        )));
    }
    let body = 5..length + 1;
    Ok((bytes.len() >= body.end).then_some((*kind, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_waits_until_it_is_whole_and_a_senseless_length_ends_the_talk() {
        assert!(matches!(frame(b"Z\0\0\0\x05"), Ok(None)));
        assert_eq!(frame(b"Z\0\0\0\x05Irest").unwrap(), Some((b'Z', 5..6)));
        assert!(frame(b"Z\0\0\0\x03I").is_err());
        assert!(frame(b"Z\xff\xff\xff\xffI").is_err());
    }
}
