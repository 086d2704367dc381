//! Proving who we are, whoever carries the bytes: trust, a password in clear text, MD5, and
//! SCRAM-SHA-256 without channel binding.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use crate::message::SqlError;
use crate::target::ConnectionTarget;

/// What we answer to an authentication request.
pub enum Proof {
    /// The server is content.
    Accepted,
    /// The body of a `PasswordMessage`, `SASLInitialResponse` or `SASLResponse`; all three are
    /// frames of kind `p`.
    Send(Vec<u8>),
    /// Nothing: the next request comes by itself.
    Listen,
}

/// One login, from the first authentication request to `AuthenticationOk`.
pub struct Prover<'a> {
    user: &'a str,
    password: Option<&'a str>,
    scram: Option<ScramSha256>,
}

impl<'a> Prover<'a> {
    /// As the role of this target, with its password.
    pub fn new(target: &'a ConnectionTarget) -> Self {
        Self {
            user: &target.user,
            password: target.password.as_deref(),
            scram: None,
        }
    }

    /// The answer to the body of an `Authentication…` frame.
    pub fn answer(&mut self, request: &[u8]) -> Result<Proof, SqlError> {
        let (number, rest) = request
            .split_first_chunk::<4>()
            .ok_or_else(|| protocol("an authentication request is truncated"))?;
        let answer = match i32::from_be_bytes(*number) {
            0 => return Ok(Proof::Accepted),
            3 => ended(self.password()?),
            5 => {
                let salt = rest.first_chunk::<4>().copied().unwrap_or_default();
                ended(md5_hash(self.user.as_bytes(), self.password()?, salt).as_bytes())
            }
            10 => self.begin_scram(rest)?,
            11 => {
                let begun = self.begun()?;
                begun.update(rest).map_err(SqlError::Io)?;
                begun.message().to_vec()
            }
            12 => {
                self.begun()?.finish(rest).map_err(SqlError::Io)?;
                return Ok(Proof::Listen);
            }
            other => {
                return Err(SqlError::Protocol(format!(
                    "the server asks for authentication number {other}, which is not spoken here"
                )));
            }
        };
        Ok(Proof::Send(answer))
    }

    fn begin_scram(&mut self, mechanisms: &[u8]) -> Result<Vec<u8>, SqlError> {
        offers_scram(mechanisms)?;
        let begun = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
        let message = begun.message();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let mut first = ended(SCRAM_SHA_256.as_bytes());
        first.extend(length.to_be_bytes().iter().chain(message));
        self.scram = Some(begun);
        Ok(first)
    }

    fn begun(&mut self) -> Result<&mut ScramSha256, SqlError> {
        let out_of_turn =
            || protocol("the server goes on with an authentication that did not begin");
        self.scram.as_mut().ok_or_else(out_of_turn)
    }

    fn password(&self) -> Result<&'a [u8], SqlError> {
        let advice = "give PGPASSWORD, a password file, or one in the URL";
        let asked = || SqlError::Protocol(format!("the server asks for a password: {advice}"));
        self.password.map(str::as_bytes).ok_or_else(asked)
    }
}

fn ended(text: &[u8]) -> Vec<u8> {
    text.iter().copied().chain([0]).collect()
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

fn protocol(what: &str) -> SqlError {
    SqlError::Protocol(what.to_owned())
}
