//! What makes a token good: who issued it, that it is whole, for whom it is, until when, and what
//! it allows.

use std::sync::Mutex;

use serde_json::Value;

use super::certificates::Certificates;
use super::https::fetch;
use super::provider::now_s;
use super::tokens::Unproven;

/// Clocks may differ by this much.
pub(super) const SLACK_S: i64 = 5;

/// Checks tokens of one issuer. Its keys are fetched when the first token comes, and kept.
pub(super) struct Checker {
    pub(super) issuer: String,
    pub(super) audience: String,
    pub(super) scope: String,
    pub(super) certificates: Certificates,
    pub(super) keys: Mutex<Option<Value>>,
}

impl Checker {
    /// The person whom the token names, or why it is refused. The words never hold a part of the
    /// token's signature.
    pub(super) fn check(&self, token: &str) -> Result<String, String> {
        let token = Unproven::parse(token).ok_or("it is no signed token")?;
        // Only the trusted issuer is asked for keys, whatever a token says.
        let issuer = text(&token.claims, "iss");
        if issuer != self.issuer {
            return Err(format!("its issuer is {issuer}, not {}", self.issuer));
        }
        if !token.is_signed_by(&self.keys()?) {
            return Err("its signature is not of the issuer".to_owned());
        }
        self.check_claims(&token.claims, now_s())
    }

    fn check_claims(&self, claims: &Value, now: i64) -> Result<String, String> {
        let expires = claims.get("exp").and_then(Value::as_i64);
        let expires = expires.ok_or("it does not say when it expires")?;
        if expires + SLACK_S < now {
            return Err(format!("it expired {} s ago", now - expires));
        }
        if !audiences(claims).contains(&self.audience.as_str()) {
            let found = audiences(claims).join(", ");
            return Err(format!("its audience is {found}, not {}", self.audience));
        }
        let granted: Vec<&str> = text(claims, "scope").split_whitespace().collect();
        let lacking = self
            .scope
            .split_whitespace()
            .find(|scope| !granted.contains(scope));
        if let Some(lacking) = lacking {
            return Err(format!("its scope lacks {lacking}"));
        }
        // Keycloak puts an opaque number into "sub" and the name elsewhere.
        let names = [text(claims, "email"), text(claims, "sub")];
        match names.iter().find(|name| !name.is_empty()) {
            Some(name) => Ok((*name).to_owned()),
            None => Err("it names nobody".to_owned()),
        }
    }

    fn keys(&self) -> Result<Value, String> {
        let mut kept = self
            .keys
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(keys) = kept.as_ref() {
            return Ok(keys.clone());
        }
        let trust = &self.certificates.trust;
        let url = format!("{}/.well-known/openid-configuration", self.issuer);
        let discovery = fetch(trust, &url, None)?.json;
        let keys = fetch(trust, text(&discovery, "jwks_uri"), None)?.json;
        *kept = Some(keys.clone());
        Ok(keys)
    }
}

fn text<'a>(claims: &'a Value, name: &str) -> &'a str {
    claims.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// One text or a list of them.
fn audiences(claims: &Value) -> Vec<&str> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::certificates;
    use super::*;

    #[test]
    fn each_claim_is_refused_with_its_own_reason() {
        let checker = Checker {
            issuer: "https://localhost:1".to_owned(),
            audience: "db".to_owned(),
            scope: "openid postgres".to_owned(),
            certificates: certificates::make().expect("certificates"),
            keys: Mutex::default(),
        };
        let good =
            json!({ "exp": 1_000, "aud": ["x", "db"], "scope": "openid postgres", "sub": "a" });
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            checker.check_claims(&claims, 1_000)
        };
        assert_eq!(checker.check_claims(&good, 1_000), Ok("a".to_owned()));
        let refused = |result: Result<String, String>| result.expect_err("refused");
        assert_eq!(refused(with("exp", json!(900))), "it expired 100 s ago");
        assert_eq!(
            refused(with("exp", Value::Null)),
            "it does not say when it expires"
        );
        assert_eq!(
            refused(with("aud", json!("x"))),
            "its audience is x, not db"
        );
        assert_eq!(
            refused(with("scope", json!("openid"))),
            "its scope lacks postgres"
        );
        assert_eq!(refused(with("sub", json!(""))), "it names nobody");
        assert_eq!(refused(checker.check("rubbish")), "it is no signed token");
    }
}
