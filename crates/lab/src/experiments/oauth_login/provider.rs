//! A small OpenID provider: discovery, keys, the device flow (RFC 8628), signed tokens.
//!
//! ```text
//! client    POST /device   client_id, scope        ─► device_code, user_code
//! person    POST /approve  user_code, user                (the page that a browser would show)
//! client    POST /token    device_code             ─► authorization_pending, later a token
//! ```
//!
//! What kind of token comes depends on the client's name, so that every wrong token can be had by
//! the right way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::certificates::Certificates;
use super::https::{Answer, HttpsServer, Request, fetch, listen};
use super::tokens::SigningKey;

/// Who tokens are for: the database server.
pub(super) const AUDIENCE: &str = "pgclinic-database";

/// What tokens must allow.
pub(super) const SCOPE: &str = "openid postgres";

/// Good tokens live this long.
const LIFE_S: i64 = 300;

/// A client of this name is approved at once: it stands for a person who is quick.
pub(super) const QUICK_CLIENT: &str = "psql";

pub(super) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A device that waits for its person, or has met it.
#[derive(Debug, Clone, Default)]
struct Device {
    client: String,
    scope: String,
    user: Option<String>,
}

struct Desk {
    issuer: String,
    key: SigningKey,
    /// By device code. The code for the person is the same with another first letter.
    devices: Mutex<BTreeMap<String, Device>>,
}

/// A running provider; it is gone when dropped.
pub(super) struct Provider {
    pub(super) issuer: String,
    _https: HttpsServer,
}

impl Provider {
    pub(super) fn start(certificates: &Certificates) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the provider could not be started: {error}");
        let listener = listen().map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let issuer = format!("https://localhost:{port}");
        let desk = Desk {
            issuer: issuer.clone(),
            key: SigningKey::make()?,
            devices: Mutex::default(),
        };
        let handler = Arc::new(move |request| desk.answer(&request));
        let https = HttpsServer::start(listener, Arc::clone(&certificates.server), handler);
        Ok(Self {
            issuer,
            _https: https.map_err(failed)?,
        })
    }
}

impl Desk {
    fn answer(&self, request: &Request) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/.well-known/openid-configuration") => Answer::ok(self.discovery()),
            ("GET", "/keys") => Answer::ok(self.key.public_set()),
            ("POST", "/device") => self.begin(&request.form),
            ("POST", "/approve") => self.approve(&request.form),
            ("POST", "/token") => self.token(&request.form),
            _ => Answer::error(404, "not_found"),
        }
    }

    fn discovery(&self) -> Value {
        let issuer = &self.issuer;
        json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/keys"),
            "token_endpoint": format!("{issuer}/token"),
            "device_authorization_endpoint": format!("{issuer}/device"),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "grant_types_supported": [DEVICE_GRANT],
            "response_types_supported": ["token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    fn begin(&self, form: &BTreeMap<String, String>) -> Answer {
        let client = value(form, "client_id").to_owned();
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let number = devices.len() + 1;
        let user = (client == QUICK_CLIENT).then(|| ALICE.to_owned());
        let device = Device {
            client,
            scope: value(form, "scope").to_owned(),
            user,
        };
        devices.insert(format!("D-{number}"), device);
        Answer::ok(json!({
            "device_code": format!("D-{number}"),
            "user_code": format!("U-{number}"),
            "verification_uri": format!("{}/approve", self.issuer),
            "expires_in": 600,
            "interval": 1,
        }))
    }

    fn approve(&self, form: &BTreeMap<String, String>) -> Answer {
        let code = value(form, "user_code").replacen('U', "D", 1);
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        match devices.get_mut(&code) {
            None => Answer::error(400, "invalid_request"),
            Some(device) => {
                device.user = Some(value(form, "user").to_owned());
                Answer::ok(json!({}))
            }
        }
    }

    fn token(&self, form: &BTreeMap<String, String>) -> Answer {
        if value(form, "grant_type") != DEVICE_GRANT {
            return Answer::error(400, "unsupported_grant_type");
        }
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let code = value(form, "device_code");
        let user = match devices.get(code) {
            None => return Answer::error(400, "invalid_grant"),
            Some(device) if device.client != value(form, "client_id") => {
                return Answer::error(400, "invalid_grant");
            }
            Some(Device { user: None, .. }) => return Answer::error(400, "authorization_pending"),
            Some(Device {
                user: Some(user), ..
            }) => user.clone(),
        };
        // A code is good for one token; the entry stays so that codes are never given twice.
        let device = devices
            .get_mut(code)
            .map(std::mem::take)
            .unwrap_or_default();
        let claims = claims(&self.issuer, &device, &user, now_s());
        match self.key.sign(&claims) {
            Ok(token) => Answer::ok(json!({
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": LIFE_S,
                "scope": claims.get("scope"),
            })),
            Err(_) => Answer::error(500, "server_error"),
        }
    }
}

/// The person whom the database knows.
pub(super) const ALICE: &str = "alice@example.com";

/// What a token says. The client's name spoils it where that is wanted.
fn claims(issuer: &str, device: &Device, user: &str, now: i64) -> Value {
    let expires = if device.client == "expired" {
        now - 60
    } else {
        now + LIFE_S
    };
    let audience = if device.client == "wrong-audience" {
        "another-service"
    } else {
        AUDIENCE
    };
    let scope = if device.client == "wrong-scope" {
        "openid"
    } else {
        device.scope.as_str()
    };
    json!({
        "iss": issuer, "sub": user, "aud": audience, "scope": scope,
        "iat": now, "exp": expires, "azp": device.client,
    })
}

/// Seconds since 1970, as tokens count.
pub(super) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

fn value<'a>(form: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    form.get(name).map_or("", String::as_str)
}

/// Goes the whole way of a client for this person: discovery, device code, a first try that is too
/// early, the person's approval, the token.
pub(super) fn obtain(
    certificates: &Certificates,
    discovery_url: &str,
    client: &str,
    scope: &str,
    user: &str,
) -> Result<String, String> {
    let trust = &certificates.trust;
    let discovery = fetch(trust, discovery_url, None)?.json;
    let device_url = text(&discovery, "device_authorization_endpoint")?;
    let token_url = text(&discovery, "token_endpoint")?;
    let form = [("client_id", client), ("scope", scope)];
    let device = fetch(trust, &device_url, Some(&form))?.json;
    let code = text(&device, "device_code")?;
    let grant = [
        ("grant_type", DEVICE_GRANT),
        ("device_code", code.as_str()),
        ("client_id", client),
    ];
    let early = fetch(trust, &token_url, Some(&grant))?;
    if text(&early.json, "error")? != "authorization_pending" {
        return Err(format!(
            "the provider gave a token that nobody approved: {}",
            early.status
        ));
    }
    let (page, user_code) = (
        text(&device, "verification_uri")?,
        text(&device, "user_code")?,
    );
    fetch(
        trust,
        &page,
        Some(&[("user_code", user_code.as_str()), ("user", user)]),
    )?;
    text(
        &fetch(trust, &token_url, Some(&grant))?.json,
        "access_token",
    )
}

fn text(json: &Value, name: &str) -> Result<String, String> {
    let value = json.get(name).and_then(Value::as_str);
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("the provider's answer has no {name}: {json}"))
}

#[cfg(test)]
mod tests {
    use super::super::certificates;
    use super::super::tokens::Unproven;
    use super::*;

    #[test]
    fn the_device_flow_ends_in_a_token_that_its_keys_prove() {
        let certificates = certificates::make().expect("certificates");
        let provider = Provider::start(&certificates).expect("a provider");
        let url = format!("{}/.well-known/openid-configuration", provider.issuer);
        let token = obtain(&certificates, &url, "good", SCOPE, ALICE).expect("a token");
        let keys = fetch(
            &certificates.trust,
            &format!("{}/keys", provider.issuer),
            None,
        );
        let parsed = Unproven::parse(&token).expect("three parts");
        assert!(parsed.is_signed_by(&keys.expect("keys").json));
        assert_eq!(parsed.claims["sub"], ALICE);
        let issuer = provider.issuer.clone();
        drop(provider);
        let gone = fetch(&certificates.trust, &format!("{issuer}/keys"), None).unwrap_err();
        assert!(gone.contains("cannot be fetched"), "{gone}");
    }

    #[test]
    fn a_code_is_good_for_one_token_and_for_its_own_client() {
        let desk = Desk {
            issuer: "https://localhost:1".to_owned(),
            key: SigningKey::make().expect("a key"),
            devices: Mutex::default(),
        };
        let form = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        desk.begin(&form(&[("client_id", QUICK_CLIENT), ("scope", SCOPE)]));
        let ask = |client| {
            let pairs = [
                ("grant_type", DEVICE_GRANT),
                ("device_code", "D-1"),
                ("client_id", client),
            ];
            desk.token(&form(&pairs)).status
        };
        assert_eq!(
            (ask("other"), ask(QUICK_CLIENT), ask(QUICK_CLIENT)),
            (400, 200, 400)
        );
    }
}
