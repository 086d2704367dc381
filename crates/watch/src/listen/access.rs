//! Who may read the endpoint: on loopback whoever is on this machine, elsewhere whoever has the
//! token, and only encrypted.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::tls::ServerTls;

/// A token that is shorter can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 4096;
/// Bits of whoever is neither the owner of a file nor of its group.
const OTHERS: u32 = 0o007;

/// What a client must bring, and how it is spoken to.
#[derive(Clone, Default)]
pub struct Access {
    /// What it must bring.
    pub token: Option<Token>,
    /// Encrypted, where there is one.
    pub tls: Option<ServerTls>,
}

impl std::fmt::Debug for Access {
    /// The token is left out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("has_token", &self.token.is_some())
            .field("is_encrypted", &self.tls.is_some())
            .finish()
    }
}

/// A secret that a client sends with each request.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The first line of a file that nobody else may read.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it is no token.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let failed = |error: std::io::Error| format!("cannot read the token {shown}: {error}");
        let mode = path.metadata().map_err(failed)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(format!(
                "others may read the token {shown}: chmod o= {shown}"
            ));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let token = text.lines().next().unwrap_or_default().trim();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
            return Err(format!(
                "the token of {shown} must have {TOKEN_BYTES_MIN} letters or more"
            ));
        }
        Ok(Self(token.to_owned()))
    }

    /// `Bearer TOKEN`, or `Basic` with the token as the password of any user, as browsers send it.
    pub(super) fn is_in(&self, authorization: &str) -> bool {
        let (scheme, rest) = authorization.trim().split_once(' ').unwrap_or_default();
        if scheme.eq_ignore_ascii_case("bearer") {
            return is_same(rest.trim(), &self.0);
        }
        let decoded = STANDARD.decode(rest.trim()).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let password = decoded.as_deref().and_then(|text| text.split_once(':'));
        scheme.eq_ignore_ascii_case("basic")
            && password.is_some_and(|(_, password)| is_same(password, &self.0))
    }
}

/// However many letters are right, it takes the same time.
fn is_same(given: &str, own: &str) -> bool {
    let pairs = given.bytes().zip(own.bytes());
    let differences = pairs.fold(0, |all, (given, own)| all | (given ^ own));
    given.len() == own.len() && differences == 0
}

/// The address, if it may be listened on with what is there.
///
/// # Errors
/// It is not on loopback, and a token or TLS is missing.
pub fn address(text: &str, access: &Access) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| format!("{text:?} is no address; write 127.0.0.1:9187 or [::1]:9187"))?;
    let ip = match address.ip() {
        IpAddr::V6(own) => own.to_ipv4_mapped().map_or(IpAddr::V6(own), IpAddr::V4),
        own => own,
    };
    let mut missing = Vec::new();
    missing.extend(access.token.is_none().then_some("--listen-token-file"));
    missing.extend(
        access
            .tls
            .is_none()
            .then_some("--listen-cert and --listen-key"),
    );
    if ip.is_loopback() || missing.is_empty() {
        return Ok(address);
    }
    Err(format!(
        "{address} can be reached from other machines: that needs {}",
        missing.join(", and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_token_and_tls_only_loopback_is_listened_on() {
        let bare = Access::default();
        for own in [
            "127.0.0.1:9187",
            "[::1]:9187",
            "127.8.8.8:0",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(address(own, &bare).is_ok(), "{own}");
        }
        for own in ["0.0.0.0:9187", "[::]:9187", "192.0.2.1:80"] {
            let refused = address(own, &bare).expect_err(own);
            assert!(refused.contains("--listen-token-file") && refused.contains("--listen-cert"));
        }
        let with_token = Access {
            token: Some(Token("x".repeat(16))),
            tls: None,
        };
        let refused = address("0.0.0.0:9187", &with_token).expect_err("no TLS");
        assert!(
            !refused.contains("token") && refused.contains("--listen-cert"),
            "{refused}"
        );
        assert!(address("localhost:9187", &bare).is_err() && address("9187", &bare).is_err());
    }

    #[test]
    fn a_token_is_brought_in_two_ways() {
        let token = Token("0123456789abcdef".into());
        assert!(token.is_in("Bearer 0123456789abcdef") && token.is_in("bearer  0123456789abcdef"));
        let basic = STANDARD.encode("anybody:0123456789abcdef");
        assert!(token.is_in(&format!("Basic {basic}")));
        for wrong in [
            "",
            "Bearer",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdeF",
            "Basic %%",
        ] {
            assert!(!token.is_in(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_token_that_others_may_read_is_refused() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("token");
        std::fs::write(&path, "0123456789abcdef\n").expect("a file");
        let set = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("a mode");
        };
        set(0o644);
        assert!(Token::from_file(&path).is_err_and(|why| why.contains("chmod")));
        set(0o640);
        assert!(Token::from_file(&path).is_ok());
        std::fs::write(&path, "short").expect("a file");
        assert!(Token::from_file(&path).is_err());
    }
}
