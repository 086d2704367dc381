//! Proving who we are over a session's wire.

use super::Session;
use super::proof::{Proof, Prover};
use crate::message::{Message, SqlError};
use crate::target::ConnectionTarget;
use crate::wire::Limit;

impl Session {
    /// Answers the server's requests until it is content (`AuthenticationOk`).
    pub(super) fn prove(
        &mut self,
        target: &ConnectionTarget,
        limit: Limit,
    ) -> Result<(), SqlError> {
        let mut prover = Prover::new(target);
        loop {
            match prover.answer(&self.next_request(limit)?)? {
                Proof::Accepted => return Ok(()),
                Proof::Send(answer) => self.wire.send_bytes(b'p', &answer, limit)?,
                Proof::Listen => {}
            }
        }
    }

    fn next_request(&mut self, limit: Limit) -> Result<Vec<u8>, SqlError> {
        loop {
            let (kind, body) = self.wire.receive(limit)?;
            match kind {
                b'R' => return Ok(body.to_vec()),
                b'E' => return Err(SqlError::Server(Box::new(Message::parse(body)))),
                // Notices, and the offer of an older protocol.
                b'N' | b'v' => {}
                other => {
                    return Err(SqlError::Protocol(format!(
                        "a frame of unknown kind {other} in the middle of a login"
                    )));
                }
            }
        }
    }
}
