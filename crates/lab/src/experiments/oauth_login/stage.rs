//! What a run sets up around its server: providers, certificates, the validator and its service, the rules.

use std::path::Path;
use std::sync::Mutex;

use pgclinic_servers::{ConnectOptions, Login, Scratch};

use super::certificates::{self, Certificates};
use super::checker::Checker;
use super::provider::{AUDIENCE, Provider, SCOPE, obtain};
use super::rules;
use super::situations::{From, Situation};
use super::tokens::forge;
use super::validator::{Service, compile, no_compiler};
use crate::bench::Bench;
use crate::error::{Error, Result};

/// A library that is not there: the rules are read as with a real one, and a login ends where it would be asked.
const NO_VALIDATOR: &str = "pgclinic_no_validator";

/// Everything but the server itself.
pub(super) struct Stage {
    pub(super) certificates: Certificates,
    pub(super) provider: Option<Provider>,
    pub(super) issuer: String,
    stranger: Provider,
    // Dropped before the folder that its socket lies in.
    service: Option<Service>,
    pub(super) folder: Scratch,
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
        let provider = Provider::start(&certificates).map_err(Error::Refused)?;
        let stranger = Provider::start(&certificates).map_err(Error::Refused)?;
        let issuer = provider.issuer.clone();
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
            stranger,
            service,
        })
    }

    /// Whether the server has a validator.
    pub(super) fn has_validator(&self) -> bool {
        self.service.is_some()
    }

    /// The token of a situation, by the whole way that a client goes.
    pub(super) fn token(&self, situation: &Situation) -> Result<String> {
        let (issuer, client) = match situation.token {
            From::Trusted(client) => (&self.issuer, client),
            From::Stranger => (&self.stranger.issuer, "good"),
            From::Forger => (&self.issuer, "good"),
        };
        let discovery = format!("{issuer}/.well-known/openid-configuration");
        let token = obtain(
            &self.certificates,
            &discovery,
            client,
            SCOPE,
            situation.user,
        )
        .map_err(Error::Refused)?;
        Ok(match situation.token {
            From::Forger => forge(&token),
            _ => token,
        })
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
        bench.set("oauth_validator_libraries", NO_VALIDATOR);
        return Ok(None);
    }
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
        user: role.to_owned(),
        ..ConnectOptions::default()
    };
    bench
        .server()?
        .login_with_token("postgres", &options, token)
        .map_err(Error::sql("logging in with a token"))
}
