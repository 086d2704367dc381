//! Proving who we are over a load's connection.

use pgclinic_servers::{ConnectionTarget, Proof, Prover, SqlError};

use super::{Broken, Connection, ServerError};

/// Answers the server's requests until it is content (`AuthenticationOk`).
pub(super) async fn prove(
    connection: &mut Connection,
    target: &ConnectionTarget,
) -> Result<(), Broken> {
    let mut prover = Prover::new(target);
    loop {
        let request = request(connection).await?;
        match prover.answer(&request).map_err(broken)? {
            Proof::Accepted => return Ok(()),
            Proof::Send(answer) => {
                connection.outgoing.proof(&answer);
                connection.send().await?;
            }
            Proof::Listen => {}
        }
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

fn broken(error: SqlError) -> Broken {
    match error {
        SqlError::Io(error) => Broken::Io(error),
        other => Broken::Protocol(other.to_string()),
    }
}
