//! Proving who we are: trust, a password in clear text, MD5, and SCRAM-SHA-256 without channel binding.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::Session;
use crate::message::{Message, SqlError};
use crate::target::Target;
use crate::wire::Limit;

impl Session {
    /// Answers the server's requests until it is content (`AuthenticationOk`).
    pub(super) fn prove(&mut self, target: &Target, limit: Limit) -> Result<(), SqlError> {
        let mut scram: Option<ScramSha256> = None;
        loop {
            let body = self.next_request(limit)?;
            let (number, rest) = body
                .split_first_chunk::<4>()
                .ok_or_else(|| protocol("an authentication request is cut off"))?;
            let answer = match i32::from_be_bytes(*number) {
                0 => return Ok(()),
                3 => ended(password(target)?),
                5 => {
                    let salt = rest.first_chunk::<4>().copied().unwrap_or_default();
                    let hash = md5_hash(target.user.as_bytes(), password(target)?, salt);
                    ended(hash.as_bytes())
                }
                10 => {
                    offers_scram(rest)?;
                    let begun = ScramSha256::new(password(target)?, ChannelBinding::unsupported());
                    let message = begun.message();
                    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
                    let mut first = ended(SCRAM_SHA_256.as_bytes());
                    first.extend(length.to_be_bytes().iter().chain(message));
                    scram = Some(begun);
                    first
                }
                11 => {
                    let begun = scram.as_mut().ok_or_else(out_of_turn)?;
                    begun.update(rest).map_err(SqlError::Io)?;
                    begun.message().to_vec()
                }
                12 => {
                    let begun = scram.as_mut().ok_or_else(out_of_turn)?;
                    begun.finish(rest).map_err(SqlError::Io)?;
                    continue;
                }
                other => {
                    let what = "which is not spoken here";
                    return Err(SqlError::Protocol(format!(
                        "the server asks for authentication number {other}, {what}"
                    )));
                }
            };
            self.wire.send_bytes(b'p', &answer, limit)?;
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

fn ended(text: &[u8]) -> Vec<u8> {
    text.iter().copied().chain([0]).collect()
}

fn password(target: &Target) -> Result<&[u8], SqlError> {
    let password = target.password.as_deref().map(str::as_bytes);
    password.ok_or_else(|| {
        protocol(
            "the server asks for a password: give PGPASSWORD, a password file, or one in the URL",
        )
    })
}

fn offers_scram(mechanisms: &[u8]) -> Result<(), SqlError> {
    let mut offered = mechanisms.split(|byte| *byte == 0);
    if offered.any(|name| name == SCRAM_SHA_256.as_bytes()) {
        return Ok(());
    }
    let names = String::from_utf8_lossy(mechanisms).replace('\0', " ");
    let names = names.trim();
    Err(SqlError::Protocol(format!(
        "the server offers {names}, and SCRAM-SHA-256 is spoken here"
    )))
}

fn out_of_turn() -> SqlError {
    protocol("the server goes on with an authentication that did not begin")
}

fn protocol(what: &str) -> SqlError {
    SqlError::Protocol(what.to_owned())
}
