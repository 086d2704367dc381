//! Logging in with a bearer token: the SASL mechanism OAUTHBEARER (RFC 7628), which PostgreSQL
//! speaks since 18 (`src/backend/libpq/auth-oauth.c`).
//!
//! ```text
//! server  AuthenticationSASL          "OAUTHBEARER"
//! client  SASLInitialResponse         n,,^Aauth=Bearer TOKEN^A^A      without a token: n,,^Aauth=^A^A
//! server  AuthenticationOk                                            or, refusing:
//! server  AuthenticationSASLContinue  {"status": …, "openid-configuration": …, "scope": …}
//! client  SASLResponse                ^A
//! server  ErrorResponse
//! ```

use super::{ConnectOptions, Session};
use crate::message::{Message, SqlError};
use crate::target::ConnectionTarget;
use crate::wire::Limit;

const MECHANISM: &[u8] = b"OAUTHBEARER";

/// How a login with a token ended.
#[derive(Debug)]
pub enum Login {
    /// The server took the token.
    Welcome(Session),
    /// The server did not.
    Refused {
        /// The JSON that tells a client where to get a token; absent when the server failed before
        /// it could say so.
        challenge: Option<String>,
        /// The error.
        message: Box<Message>,
    },
}

/// What the server wants next.
enum Step {
    Sasl,
    Continue(String),
    Accepted,
    Error(Box<Message>),
}

impl Session {
    /// Connects with a token; an empty one asks where to get one, and is always refused.
    pub(crate) fn open_with_token(
        target: &ConnectionTarget,
        options: &ConnectOptions,
        token: &str,
    ) -> Result<Login, SqlError> {
        let (mut session, limit) = Self::begin(target, options)?;
        let mut challenge = None;
        loop {
            match session.next_step(limit)? {
                Step::Sasl => {
                    let first = first_response(token);
                    session.wire.send_bytes(b'p', &first, limit)?;
                }
                Step::Continue(json) => {
                    challenge = Some(json);
                    session.wire.send_bytes(b'p', b"\x01", limit)?;
                }
                Step::Accepted => {
                    session.read_answer(limit, &mut |_| Ok(()))?;
                    return Ok(Login::Welcome(session));
                }
                Step::Error(message) => return Ok(Login::Refused { challenge, message }),
            }
        }
    }

    fn next_step(&mut self, limit: Limit) -> Result<Step, SqlError> {
        loop {
            let (kind, body) = self.wire.receive(limit)?;
            match (kind, body) {
                (b'E', body) => return Ok(Step::Error(Box::new(Message::parse(body)))),
                (b'N', _) => {}
                (b'R', [0, 0, 0, 0]) => return Ok(Step::Accepted),
                (b'R', [0, 0, 0, 10, names @ ..]) if offers(names) => return Ok(Step::Sasl),
                (b'R', [0, 0, 0, 11, json @ ..]) => {
                    return Ok(Step::Continue(String::from_utf8_lossy(json).into_owned()));
                }
                (b'R', _) => {
                    let what = "the server asks for another kind of login than a bearer token";
                    return Err(SqlError::Protocol(what.to_owned()));
                }
                (other, _) => {
                    let what = format!("a frame of kind {other} in the middle of a login");
                    return Err(SqlError::Protocol(what));
                }
            }
        }
    }
}

fn offers(names: &[u8]) -> bool {
    names.split(|byte| *byte == 0).any(|name| name == MECHANISM)
}

/// Mechanism, the length of what follows, and the token in its wrapping.
fn first_response(token: &str) -> Vec<u8> {
    let value = match token {
        "" => String::new(),
        token => format!("Bearer {token}"),
    };
    let response = format!("n,,\x01auth={value}\x01\x01");
    let length = u32::try_from(response.len()).unwrap_or(u32::MAX);
    [MECHANISM, b"\0", &length.to_be_bytes(), response.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_response_carries_its_length_and_a_missing_token_asks_the_way() {
        assert_eq!(
            first_response("t"),
            b"OAUTHBEARER\0\0\0\0\x13n,,\x01auth=Bearer t\x01\x01"
        );
        assert_eq!(
            first_response(""),
            b"OAUTHBEARER\0\0\0\0\x0bn,,\x01auth=\x01\x01"
        );
    }

    #[test]
    fn the_mechanism_is_looked_for_by_its_whole_name() {
        assert!(offers(b"SCRAM-SHA-256\0OAUTHBEARER\0\0"));
        assert!(!offers(b"OAUTHBEARER-PLUS\0\0"));
    }
}
