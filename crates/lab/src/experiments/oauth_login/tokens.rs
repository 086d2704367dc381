//! Tokens: three parts in base64url, the last one a signature over the others (RFC 7515, 7517,
//! 7519).
//!
//! ```text
//! {"alg":"ES256","kid":"1"} . {"iss":…,"aud":…,"exp":…,"scope":…} . signature
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Value, json};

/// The name of a provider's only key.
const KEY_ID: &str = "pgclinic-1";

/// What a provider signs with; lives in memory only.
pub(super) struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl SigningKey {
    pub(super) fn make() -> Result<Self, String> {
        let random = SystemRandom::new();
        let method = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(method, &random)
            .map_err(|error| format!("no key could be made: {error}"))?;
        let pair = EcdsaKeyPair::from_pkcs8(method, made.as_ref(), &random)
            .map_err(|error| format!("no key could be made: {error}"))?;
        Ok(Self { pair, random })
    }

    /// The set of public keys, as a provider shows it.
    pub(super) fn public_set(&self) -> Value {
        // 4, then the two coordinates.
        let point = self.pair.public_key().as_ref();
        let half = |from: usize| encode(point.get(from..from + 32).unwrap_or_default());
        let key = json!({
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_ID,
            "x": half(1), "y": half(33),
        });
        json!({ "keys": [key] })
    }

    /// Signs claims.
    pub(super) fn sign(&self, claims: &Value) -> Result<String, String> {
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": KEY_ID });
        let signed = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let signature = self
            .pair
            .sign(&self.random, signed.as_bytes())
            .map_err(|_| "the token could not be signed".to_owned())?;
        Ok(format!("{signed}.{}", encode(signature.as_ref())))
    }
}

/// A token taken apart; nothing about it is known to be true yet.
pub(super) struct Unproven<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    header: Value,
    pub(super) claims: Value,
}

impl<'a> Unproven<'a> {
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let json = |part: &str| serde_json::from_slice(&decode(part)?).ok();
        Some(Self {
            signed,
            signature: decode(signature)?,
            header: json(header)?,
            claims: json(claims)?,
        })
    }

    /// Whether one of these public keys made the signature. The method is the key's, never the
    /// token's own choice.
    pub(super) fn is_signed_by(&self, keys: &Value) -> bool {
        let keys = keys.get("keys").and_then(Value::as_array);
        let own = self.header.get("kid");
        let mut candidates = keys
            .into_iter()
            .flatten()
            .filter(|key| key.get("kid") == own);
        candidates.any(|key| self.fits(key).unwrap_or(false))
    }

    fn fits(&self, key: &Value) -> Option<bool> {
        let part = |name: &str| decode(key.get(name)?.as_str()?);
        let message = self.signed.as_bytes();
        let verified = match key.get("kty")?.as_str()? {
            "EC" => {
                let point = [vec![4], part("x")?, part("y")?].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, &self.signature)
            }
            "RSA" => RsaPublicKeyComponents {
                n: part("n")?,
                e: part("e")?,
            }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, &self.signature),
            _ => return None,
        };
        Some(verified.is_ok())
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// The same token with one character of its signature changed.
pub(super) fn forge(token: &str) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let rest: String = signature.chars().skip(1).collect();
    format!("{signed}.{first}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_proven_by_its_own_key_and_by_no_other() {
        let (own, other) = (SigningKey::make().unwrap(), SigningKey::make().unwrap());
        let token = own.sign(&json!({ "sub": "alice" })).unwrap();
        let parsed = Unproven::parse(&token).expect("three parts");
        assert!(parsed.is_signed_by(&own.public_set()));
        assert!(!parsed.is_signed_by(&other.public_set()));
        let forged = forge(&token);
        let parsed = Unproven::parse(&forged).expect("three parts");
        assert!(!parsed.is_signed_by(&own.public_set()));
    }

    #[test]
    fn rubbish_is_no_token() {
        for rubbish in ["", "a.b", "a.b.c", "..", "e30.e30", "e30.e30.\u{e4}"] {
            assert!(Unproven::parse(rubbish).is_none(), "{rubbish}");
        }
        // A token that names no method and carries no signature is parsed and never proven.
        let bare = Unproven::parse("eyJhbGciOiJub25lIn0.e30.").expect("three parts");
        assert!(!bare.is_signed_by(&SigningKey::make().unwrap().public_set()));
    }
}
