//! What a run sets up around its server: providers, certificates, the validator and its service,
//! the rules.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use pgclinic_servers::{ConnectOptions, Login, Scratch};

use super::certificates::{self, Certificates};
use super::checker::{Checker, SLACK_S};
use super::keycloak::{Keycloak, Realm};
use super::provider::{ALICE, AUDIENCE, Provider, SCOPE, now_s, obtain};
use super::rules;
use super::situations::{From, Situation};
use super::tokens::{Unproven, forge};
use super::validator::{Service, compile, no_compiler};
use super::verdict;
use crate::bench::Bench;
use crate::error::{Error, Result};

/// A library that is not there: the rules are read as with a real one, and a login ends where it
/// would be asked.
const NO_VALIDATOR: &str = "pgclinic_no_validator";

/// Everything but the server itself.
pub(super) struct Stage {
    pub(super) certificates: Certificates,
    provider: Option<Issuing>,
    pub(super) issuer: String,
    // Dropped before the folder that its socket lies in.
    service: Option<Service>,
    pub(super) folder: Scratch,
}

/// Who gives tokens.
enum Issuing {
    /// Our own provider, and another one whose tokens must not let anybody in.
    Own(Provider, Provider),
    Keycloak(Box<Keycloak>),
}

/// What came of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// As this person and by this method, in the server's words.
    LetIn(String),
    Refused(String),
}

impl Stage {
    /// Sets everything up; the server starts at its first use.
    pub(super) fn set_up(bench: &mut Bench<'_>) -> Result<Self> {
        let certificates = certificates::make().map_err(Error::Refused)?;
        let provider = start_issuing(bench, &certificates)?;
        let issuer = match &provider {
            Issuing::Own(provider, _) => provider.issuer.clone(),
            Issuing::Keycloak(keycloak) => keycloak.issuer.clone(),
        };
        let folder = bench.site.scratch()?;
        let service = start_service(bench, &folder, checker(&issuer, &certificates))?;
        let (hba, ident) = (rules::hba(&issuer, SCOPE), rules::ident());
        write_rules(bench, &hba, &ident)?;
        bench.keep("pg_hba.conf", hba.as_bytes())?;
        bench.keep("pg_ident.conf", ident.as_bytes())?;
        bench.keep("authority.pem", certificates.authority_pem.as_bytes())?;
        Ok(Self {
            certificates,
            provider: Some(provider),
            issuer,
            folder,
            service,
        })
    }

    /// Whether the server has a validator.
    pub(super) fn has_validator(&self) -> bool {
        self.service.is_some()
    }

    /// Ends the provider.
    pub(super) fn end_provider(&mut self) {
        self.provider = None;
    }

    /// The token of a situation, by the whole way that a client goes.
    pub(super) fn token(&self, bench: &Bench<'_>, situation: &Situation) -> Result<String> {
        let (client, is_stranger) = match situation.token {
            From::Trusted(client) => (client, false),
            From::Stranger => ("good", true),
            From::Forger => ("good", false),
        };
        let token = match &self.provider {
            None => Err("the provider has ended".to_owned()),
            Some(Issuing::Own(trusted, stranger)) => {
                let issuer = if is_stranger {
                    &stranger.issuer
                } else {
                    &trusted.issuer
                };
                let discovery = format!("{issuer}/.well-known/openid-configuration");
                obtain(
                    &self.certificates,
                    &discovery,
                    client,
                    SCOPE,
                    situation.user,
                )
            }
            Some(Issuing::Keycloak(keycloak)) => {
                let realm = if is_stranger {
                    Realm::Strangers
                } else {
                    Realm::Trusted
                };
                keycloak.token(&self.certificates, realm, client, situation.user)
            }
        };
        let token = token.map_err(Error::Refused)?;
        if client == "expired" {
            wait_until_expired(bench, &token)?;
        }
        Ok(match situation.token {
            From::Forger => forge(&token),
            _ => token,
        })
    }

    /// What the person does whom a client tells to visit a page and enter a code. Our own
    /// provider's needs nothing done.
    pub(super) fn approve(&self, url: &str, code: &str) -> std::result::Result<(), String> {
        match &self.provider {
            Some(Issuing::Keycloak(keycloak)) => {
                let url = format!("{url}?user_code={code}");
                keycloak.approve(&self.certificates, &url, ALICE)
            }
            _ => Ok(()),
        }
    }

    /// Asks the server where tokens come from, as a client without one does.
    pub(super) fn challenge(&self, bench: &mut Bench<'_>) -> Result<String> {
        match log_in(bench, "alice", "")? {
            Login::Refused {
                challenge: Some(challenge),
                ..
            } => Ok(challenge),
            Login::Refused { message, .. } => Err(Error::Refused(format!(
                "the server did not say where tokens come from: {message}"
            ))),
            Login::Welcome(_) => Err(Error::Refused(
                "the server let somebody in who showed no token".to_owned(),
            )),
        }
    }

    /// Shows a token to the server; without a validator in it, to the checker alone.
    pub(super) fn try_token(
        &self,
        bench: &mut Bench<'_>,
        role: &str,
        token: &str,
    ) -> Result<Answer> {
        if !self.has_validator() {
            let checked = checker(&self.issuer, &self.certificates).check(token);
            return Ok(match checked {
                Ok(name) => Answer::LetIn(format!("checker:{name}")),
                Err(why) => Answer::Refused(why),
            });
        }
        match log_in(bench, role, token)? {
            Login::Refused { message, .. } => Ok(Answer::Refused(message.message)),
            Login::Welcome(mut session) => {
                let asked = session.query_value("SELECT system_user");
                let name = asked.map_err(Error::sql("asking who logged in"))?;
                Ok(Answer::LetIn(name.unwrap_or_default()))
            }
        }
    }
}

fn start_issuing(bench: &mut Bench<'_>, certificates: &Certificates) -> Result<Issuing> {
    if bench.cell().at("provider") == "keycloak" {
        let keycloak = Keycloak::start(bench, certificates)?;
        return Ok(Issuing::Keycloak(Box::new(keycloak)));
    }
    let start = || Provider::start(certificates).map_err(Error::Refused);
    Ok(Issuing::Own(start()?, start()?))
}

/// Our own provider signs tokens of yesterday; another's shortest life is to be waited for.
fn wait_until_expired(bench: &Bench<'_>, token: &str) -> Result<()> {
    let claims = Unproven::parse(token).map(|token| token.claims);
    let expires = claims
        .and_then(|claims| claims.get("exp")?.as_i64())
        .unwrap_or_default();
    while now_s() <= expires + SLACK_S {
        bench.check_interrupted()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn checker(issuer: &str, certificates: &Certificates) -> Checker {
    Checker {
        issuer: issuer.to_owned(),
        audience: AUDIENCE.to_owned(),
        scope: SCOPE.to_owned(),
        certificates: certificates.clone(),
        keys: Mutex::default(),
    }
}

fn start_service(
    bench: &mut Bench<'_>,
    folder: &Scratch,
    checker: Checker,
) -> Result<Option<Service>> {
    if let Some(why) = no_compiler() {
        bench.overlap(format!(
            "{why}: tokens were checked beside the server, not by it"
        ));
        bench.fact(verdict::CHECKED, verdict::BESIDE_THE_SERVER);
        bench.set("oauth_validator_libraries", NO_VALIDATOR);
        return Ok(None);
    }
    bench.fact(verdict::CHECKED, verdict::BY_THE_SERVER);
    let socket = folder.path().join("tokens");
    let module = compile(folder.path(), &socket)?;
    bench.run_as().own(&module)?;
    bench.set("oauth_validator_libraries", &module.display().to_string());
    Ok(Some(Service::start(&socket, bench.run_as(), checker)?))
}

/// Puts both files into the data directory; a running server reads them at its next reload.
pub(super) fn write_rules(bench: &Bench<'_>, hba: &str, ident: &str) -> Result<()> {
    for (name, text) in [("pg_hba.conf", hba), ("pg_ident.conf", ident)] {
        write_owned(bench, &bench.pgdata().join(name), text)?;
    }
    Ok(())
}

fn write_owned(bench: &Bench<'_>, path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Error::io("write", path))?;
    Ok(bench.run_as().own(path)?)
}

fn log_in(bench: &mut Bench<'_>, role: &str, token: &str) -> Result<Login> {
    let options = ConnectOptions {
        user: Some(role.to_owned()),
        ..ConnectOptions::default()
    };
    bench
        .server()?
        .login_with_token("postgres", &options, token)
        .map_err(Error::sql("logging in with a token"))
}
