//! Keycloak as the provider, where Java and a distribution are here. It has two realms: the trusted
//! one, and another whose tokens must not let anybody in. Tokens come by the device flow, and a
//! browser of ours logs in and approves.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pgclinic_servers::{RunAs, Scratch, made_folder};
use serde_json::{Value, json};

use super::browser::Browser;
use super::certificates::Certificates;
use super::https::{Answer, fetch};
use super::provider::{ALICE, AUDIENCE, DEVICE_GRANT, QUICK_CLIENT, SCOPE};
use crate::bench::Bench;
use crate::error::{Error, Result};

/// Two starts of Java take a minute, and ten times that on a machine that others keep busy.
const PATIENCE: Duration = Duration::from_secs(900);

const STEP: Duration = Duration::from_millis(250);

/// With this code Keycloak asks to be started again, now that it has made itself ready.
const START_AGAIN: i32 = 10;

/// Keycloak slows down who asks more often than it says.
const POLL: Duration = Duration::from_secs(1);

/// Only on this machine, only for these minutes, only for a scratch server.
const PASSWORD: &str = "laboratory";

const REALM: &str = "pgclinic";
const STRANGERS: &str = "strangers";

/// What runs.
pub(super) struct Keycloak {
    pub(super) issuer: String,
    address: String,
    child: Child,
    _home: Scratch,
}

/// Why Keycloak cannot be used, where that is so.
pub(super) fn missing() -> Option<String> {
    if distribution().is_none() {
        return Some(
            "no Keycloak is here; `cargo xtask servers --only keycloak` fetches it".to_owned(),
        );
    }
    let asked = Command::new("java")
        .arg("-version")
        .stdin(Stdio::null())
        .output();
    let found = asked.is_ok_and(|said| said.status.success());
    (!found).then(|| "no java is here to start Keycloak with".to_owned())
}

/// The folder that holds `bin` and `lib`.
fn distribution() -> Option<PathBuf> {
    let entries = std::fs::read_dir(made_folder("keycloak")?).ok()?;
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.find(|folder| folder.join("lib/quarkus-run.jar").is_file())
}

impl Keycloak {
    /// Starts a copy of the distribution, as it writes into its own folder, and waits until it
    /// answers.
    pub(super) fn start(bench: &mut Bench<'_>, certificates: &Certificates) -> Result<Self> {
        let distribution =
            distribution().ok_or_else(|| Error::Skip(missing().unwrap_or_default()))?;
        let scratch = bench.site.scratch()?;
        let home = scratch.path().join("keycloak");
        copy(&distribution, &home, bench.run_as())?;
        for (name, text) in [
            ("server.pem", certificates.server_pem.clone()),
            ("key.pem", certificates.key_pem.clone()),
            ("data/import/pgclinic.json", realm(REALM).to_string()),
            ("data/import/strangers.json", realm(STRANGERS).to_string()),
        ] {
            write(&home.join(name), &text, bench.run_as())?;
        }
        let address = format!("https://localhost:{}", free_port()?);
        let child = launch(bench, &home, &address)?;
        let mut keycloak = Self {
            issuer: format!("{address}/realms/{REALM}"),
            address,
            child,
            _home: scratch,
        };
        keycloak.wait_until_ready(bench, &home, certificates)?;
        Ok(keycloak)
    }

    fn wait_until_ready(
        &mut self,
        bench: &Bench<'_>,
        home: &Path,
        certificates: &Certificates,
    ) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let discovery = format!("{}/.well-known/openid-configuration", self.issuer);
        loop {
            bench.check_interrupted()?;
            match self.child.try_wait().map_err(Error::io("wait for", home))? {
                Some(status) if status.code() == Some(START_AGAIN) => {
                    self.child = launch(bench, home, &self.address)?;
                }
                Some(status) => return Err(silent(bench, &format!("it ended with {status}"))),
                None => {}
            }
            if fetch(&certificates.trust, &discovery, None).is_ok_and(|answer| answer.status == 200)
            {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(silent(bench, "it did not answer in time"));
            }
            std::thread::sleep(STEP);
        }
    }

    /// A token for this person by this client; `stranger` asks the other realm.
    pub(super) fn token(
        &self,
        certificates: &Certificates,
        realm: Realm,
        client: &str,
        user: &str,
    ) -> std::result::Result<String, String> {
        let realm = match realm {
            Realm::Trusted => REALM,
            Realm::Strangers => STRANGERS,
        };
        let endpoint = format!("{}/realms/{realm}/protocol/openid-connect", self.address);
        // Asking for a scope that the client does not have is refused at once.
        let scope = if client == "wrong-scope" {
            "openid"
        } else {
            SCOPE
        };
        let asked = [("client_id", client), ("scope", scope)];
        let device = fetch(
            &certificates.trust,
            &format!("{endpoint}/auth/device"),
            Some(&asked),
        )?;
        let code = said(&device, "device_code")?;
        self.approve(
            certificates,
            said(&device, "verification_uri_complete")?,
            user,
        )?;
        let form = [
            ("grant_type", DEVICE_GRANT),
            ("client_id", client),
            ("device_code", code),
        ];
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = fetch(
                &certificates.trust,
                &format!("{endpoint}/token"),
                Some(&form),
            )?;
            match answer.json.get("error").and_then(Value::as_str) {
                Some("authorization_pending" | "slow_down") if Instant::now() < end => {
                    std::thread::sleep(POLL);
                }
                _ => return said(&answer, "access_token").map(str::to_owned),
            }
        }
    }

    /// What a person does in a browser: logs in, and allows the device what it asks for.
    pub(super) fn approve(
        &self,
        certificates: &Certificates,
        url: &str,
        user: &str,
    ) -> std::result::Result<(), String> {
        let known = [
            ("username", user),
            ("password", PASSWORD),
            ("accept", "Yes"),
        ];
        Browser::new(&certificates.trust).fill_in(url, &known)
    }
}

fn said<'a>(answer: &'a Answer, name: &str) -> std::result::Result<&'a str, String> {
    let value = answer.json.get(name).and_then(Value::as_str);
    value.ok_or_else(|| format!("Keycloak gave no {name}: {}", answer.json))
}

/// Which realm a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Realm {
    Trusted,
    Strangers,
}

impl Drop for Keycloak {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn silent(bench: &Bench<'_>, why: &str) -> Error {
    let log = std::fs::read_to_string(bench.folder().join("keycloak.log")).unwrap_or_default();
    let last: Vec<&str> = log.lines().rev().take(5).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Error::Refused(format!(
        "Keycloak could not be used: {why}; its log ends with: {}",
        last.join(" | ")
    ))
}

fn free_port() -> Result<u16> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(bound.map_err(Error::io("bind", "127.0.0.1"))?.port())
}

/// Java itself rather than Keycloak's script, which would leave it behind when it is killed; with
/// `setpriv` it ends with us.
fn launch(bench: &Bench<'_>, home: &Path, address: &str) -> Result<Child> {
    let log_path = bench.folder().join("keycloak.log");
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(&log_path);
    let log = log.map_err(Error::io("open", &log_path))?;
    let errors = log.try_clone().map_err(Error::io("open", &log_path))?;
    let setpriv = Path::new("/usr/bin/setpriv");
    let mut command = if setpriv.exists() {
        bench.run_as().command(setpriv)
    } else {
        bench.run_as().command(Path::new("java"))
    };
    if setpriv.exists() {
        command.args(["--pdeathsig", "KILL", "--", "java"]);
    }
    let named = |name: &str, value: &Path| format!("{name}{}", value.display());
    command
        .args([
            "-Xmx512m",
            "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
        ])
        .args([
            "-Dpicocli.disable.closures=true",
            "-Djava.security.egd=file:/dev/urandom",
        ])
        .arg(if home.join("built").exists() {
            "-Dkc.config.built=true"
        } else {
            "-Dpgclinic=first"
        })
        .args(
            ["java.util", "java.util.concurrent", "java.security"]
                .map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")),
        )
        .arg(named("-Dkc.home.dir=", home))
        .arg(named("-Djboss.server.config.dir=", &home.join("conf")))
        .arg("-cp")
        .arg(home.join("lib/quarkus-run.jar"))
        .args([
            "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
            "start-dev",
            "--import-realm",
        ])
        .args([
            "--cache=local",
            "--http-host=127.0.0.1",
            "--http-enabled=false",
            "--http-port=0",
        ])
        .arg(format!(
            "--https-port={}",
            address.rsplit(':').next().unwrap_or_default()
        ))
        .arg(format!("--hostname={address}"))
        .arg(named("--https-certificate-file=", &home.join("server.pem")))
        .arg(named(
            "--https-certificate-key-file=",
            &home.join("key.pem"),
        ))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    let child = command.spawn().map_err(Error::io("run", "java"))?;
    write(&home.join("built"), "", bench.run_as())?;
    Ok(child)
}

fn copy(from: &Path, to: &Path, run_as: &RunAs) -> Result<()> {
    let mut left = vec![(from.to_path_buf(), to.to_path_buf())];
    while let Some((from, to)) = left.pop() {
        if from.is_dir() {
            std::fs::create_dir(&to).map_err(Error::io("create", &to))?;
            for entry in std::fs::read_dir(&from).map_err(Error::io("list", &from))? {
                let name = entry.map_err(Error::io("list", &from))?.file_name();
                left.push((from.join(&name), to.join(&name)));
            }
        } else {
            std::fs::copy(&from, &to).map_err(Error::io("copy to", &to))?;
        }
        run_as.own(&to)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str, run_as: &RunAs) -> Result<()> {
    for folder in path
        .ancestors()
        .skip(1)
        .take(2)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        if !folder.exists() {
            std::fs::create_dir(folder).map_err(Error::io("create", folder))?;
            run_as.own(folder)?;
        }
    }
    std::fs::write(path, text).map_err(Error::io("write", path))?;
    Ok(run_as.own(path)?)
}

/// A realm with a client for each kind of token, and the persons of the situations.
fn realm(name: &str) -> Value {
    let scope = json!({
        "name": "postgres", "protocol": "openid-connect",
        "attributes": { "include.in.token.scope": "true" },
    });
    let clients = [
        "good",
        "expired",
        "wrong-audience",
        "wrong-scope",
        QUICK_CLIENT,
    ]
    .map(client);
    json!({
        "realm": name, "enabled": true, "sslRequired": "none",
        "clientScopes": [scope],
        "users": [user("alice", ALICE), user("mallory", "mallory@elsewhere.example")],
        "clients": clients,
    })
}

fn user(name: &str, email: &str) -> Value {
    json!({
        "username": name, "email": email, "emailVerified": true, "enabled": true,
        "firstName": name, "lastName": "Person",
        "credentials": [{ "type": "password", "value": PASSWORD, "temporary": false }],
    })
}

fn client(name: &str) -> Value {
    let audience = if name == "wrong-audience" {
        "another-service"
    } else {
        AUDIENCE
    };
    let lifespan = if name == "expired" { "1" } else { "300" };
    let scopes: &[&str] = if name == "wrong-scope" {
        &[]
    } else {
        &["postgres"]
    };
    let mapper = |kind: &str, config: Value| json!({ "name": kind, "protocol": "openid-connect", "protocolMapper": kind, "config": config });
    json!({
        "clientId": name, "enabled": true, "publicClient": true, "fullScopeAllowed": false,
        "attributes": {
            "access.token.lifespan": lifespan, "oauth2.device.authorization.grant.enabled": "true",
            "oauth2.device.polling.interval": "1",
        },
        "defaultClientScopes": [], "optionalClientScopes": scopes,
        "protocolMappers": [
            mapper("oidc-audience-mapper", json!({
                "included.custom.audience": audience, "access.token.claim": "true",
            })),
            mapper("oidc-usermodel-property-mapper", json!({
                "user.attribute": "email", "claim.name": "email", "jsonType.label": "String",
                "access.token.claim": "true",
            })),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_has_a_client_for_each_kind_of_token() {
        let realm = realm(REALM);
        let clients = realm["clients"].as_array().expect("clients");
        let of = |name: &str| {
            clients
                .iter()
                .find(|client| client["clientId"] == name)
                .expect("a client")
        };
        assert_eq!(of("expired")["attributes"]["access.token.lifespan"], "1");
        assert_eq!(of("wrong-scope")["optionalClientScopes"], json!([]));
        let audience = |name: &str| {
            of(name)["protocolMappers"][0]["config"]["included.custom.audience"].clone()
        };
        assert_ne!(audience("good"), audience("wrong-audience"));
    }
}
