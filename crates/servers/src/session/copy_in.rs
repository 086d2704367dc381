//! `COPY … FROM STDIN`: bytes on their way into a table.

use super::Session;
use crate::message::{Message, SqlError};
use crate::wire::Limit;

/// Bytes of one frame; the server takes any size, and memory is kept for one.
const FRAME_BYTES: usize = 1 << 20;

impl Session {
    /// Runs `COPY … FROM STDIN` with these bytes. Either all rows are taken, or none and the server says why.
    pub fn copy_in(&mut self, sql: &str, bytes: &[u8]) -> Result<(), SqlError> {
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
        for frame in bytes.chunks(FRAME_BYTES) {
            self.wire.send_bytes(b'd', frame, limit)?;
        }
        self.wire.send_bytes(b'c', b"", limit)?;
        self.read_answer(limit, &mut |_| Ok(()))
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
