//! Proving who we are: trust, a password in clear text, MD5, and SCRAM-SHA-256 without channel binding.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::{Broken, Connection, ServerError};
use pgclinic_servers::Target;

/// Answers the server's requests until it is content (`AuthenticationOk`).
pub(super) async fn prove(connection: &mut Connection, target: &Target) -> Result<(), Broken> {
    let mut scram: Option<ScramSha256> = None;
    loop {
        let body = request(connection).await?;
        let (number, rest) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| Broken::Protocol("an authentication request is cut off".to_owned()))?;
        match i32::from_be_bytes(*number) {
            0 => return Ok(()),
            3 => connection.outgoing.password(password(target)?),
            5 => {
                let salt = rest.first_chunk::<4>().copied().unwrap_or_default();
                let hash = md5_hash(target.user.as_bytes(), password(target)?, salt);
                connection.outgoing.password(hash.as_bytes());
            }
            10 => {
                offers_scram(rest)?;
                let begun = ScramSha256::new(password(target)?, ChannelBinding::unsupported());
                connection
                    .outgoing
                    .sasl_first(SCRAM_SHA_256, begun.message());
                scram = Some(begun);
            }
            11 => {
                let begun = scram.as_mut().ok_or_else(out_of_turn)?;
                begun.update(rest)?;
                connection.outgoing.sasl_next(begun.message());
            }
            12 => scram.as_mut().ok_or_else(out_of_turn)?.finish(rest)?,
            other => {
                return Err(Broken::Protocol(format!(
                    "the server asks for authentication number {other}, which a load does not speak"
                )));
            }
        }
        connection.send().await?;
    }
}

async fn request(connection: &mut Connection) -> Result<Vec<u8>, Broken> {
    loop {
        let (kind, length) = connection.header().await?;
        let body = connection.body(length).await?;
        match kind {
            b'R' => return Ok(body),
            b'E' => return Err(Broken::Refused(ServerError::parse(&body))),
            // Notices, and the offer of an older protocol.
            b'N' | b'v' => {}
            other => return Err(Broken::Protocol(format!("a frame of unknown kind {other}"))),
        }
    }
}

fn password(target: &Target) -> Result<&[u8], Broken> {
    let password = target.password.as_deref().map(str::as_bytes);
    password.ok_or_else(|| Broken::Protocol("the server asks for a password".to_owned()))
}

fn offers_scram(mechanisms: &[u8]) -> Result<(), Broken> {
    let mut offered = mechanisms.split(|byte| *byte == 0);
    if offered.any(|name| name == SCRAM_SHA_256.as_bytes()) {
        return Ok(());
    }
    let names = String::from_utf8_lossy(mechanisms).replace('\0', " ");
    Err(Broken::Protocol(format!(
        "the server offers {}, and a load speaks SCRAM-SHA-256",
        names.trim()
    )))
}

fn out_of_turn() -> Broken {
    Broken::Protocol("the server goes on with an authentication that did not begin".to_owned())
}
