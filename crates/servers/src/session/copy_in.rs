//! `COPY … FROM STDIN`: bytes on their way into a table.

use super::Session;
use crate::message::{Message, SqlError};
use crate::wire::Limit;

/// Bytes of one frame; the server takes any size, and memory is kept for one.
const FRAME_BYTES: usize = 1 << 20;
/// What the server calls a copy that this side ended.
const QUERY_CANCELED: &str = "57014";

/// A `COPY … FROM STDIN` that is under way. One that is neither finished nor cancelled ends its
/// session.
pub struct CopyIn<'s> {
    session: &'s mut Session,
    limit: Limit,
    sent_bytes: u64,
    is_ended: bool,
}

impl Session {
    /// Runs `COPY … FROM STDIN` with these bytes. Either all rows are taken, or none and the server
    /// says why.
    pub fn copy_in(&mut self, sql: &str, bytes: &[u8]) -> Result<(), SqlError> {
        let mut copy = self.begin_copy_in(sql)?;
        copy.send(bytes)?;
        copy.finish()
    }

    /// Begins `COPY … FROM STDIN`, whose bytes come in parts of any size.
    pub fn begin_copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, SqlError> {
        if self.is_over {
            return Err(SqlError::Gone);
        }
        let limit = Limit::from_now(self.wall_limit);
        self.wire.send_text(b'Q', sql, limit)?;
        if let Some(message) = self.wait_for_copy(limit)? {
            // The server is ready for the next statement once the rest of its answer was read.
            self.read_answer(limit, &mut |_| Ok(()))?;
            return Err(SqlError::Server(message));
        }
        Ok(CopyIn {
            session: self,
            limit,
            sent_bytes: 0,
            is_ended: false,
        })
    }

    /// Until the server wants the bytes; the error where it does not.
    fn wait_for_copy(&mut self, limit: Limit) -> Result<Option<Box<Message>>, SqlError> {
        loop {
            let frame = self.wire.receive(limit);
            let (kind, body) = frame.inspect_err(|_| self.is_over = true)?;
            match kind {
                b'G' => return Ok(None),
                b'E' => return Ok(Some(Box::new(Message::parse(body)))),
                b'N' | b'S' | b'A' => {}
                other => {
                    self.is_over = true;
                    let what = format!("a frame of kind {other} where a copy begins");
                    return Err(SqlError::Protocol(what));
                }
            }
        }
    }
}

impl CopyIn<'_> {
    /// The next bytes. What the server thinks of them it says at the end.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        for frame in bytes.chunks(FRAME_BYTES) {
            self.session.wire.send_bytes(b'd', frame, self.limit)?;
        }
        self.sent_bytes += bytes.len() as u64;
        Ok(())
    }

    /// How many bytes were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// These were all. Either all rows are taken, or none and the server says why.
    pub fn finish(mut self) -> Result<(), SqlError> {
        self.session.wire.send_bytes(b'c', b"", self.limit)?;
        self.answer()
    }

    /// No row is taken.
    pub fn cancel(mut self) -> Result<(), SqlError> {
        let why = b"the rows do not come to their end\0";
        self.session.wire.send_bytes(b'f', why, self.limit)?;
        match self.answer() {
            Err(SqlError::Server(message)) if message.sqlstate == QUERY_CANCELED => Ok(()),
            other => other,
        }
    }

    fn answer(&mut self) -> Result<(), SqlError> {
        self.is_ended = true;
        self.session.read_answer(self.limit, &mut |_| Ok(()))
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            // The server waits for bytes that do not come.
            self.session.is_over = true;
        }
    }
}
