//! A user's own issuer and rules: the lines of their `pg_hba.conf` and `pg_ident.conf` are read by
//! a real server, and the issuer is asked for its discovery document, as psql will ask it.
//!
//! Nobody logs in: that takes a person and a browser, which the remark below the card says.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{rules, stage};
use crate::bench::Bench;
use crate::error::{Error, Result};
use crate::experiment::Measured;

/// What a user brings: an issuer, the lines of their files that have to do with OAuth, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OauthSetUp {
    /// As clients spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Lines of `pg_hba.conf` with the method oauth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hba: Vec<String>,
    /// Lines of `pg_ident.conf`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ident: Vec<String>,
}

impl OauthSetUp {
    /// Reads the files of a data directory; both may be named elsewhere by `postgresql.conf`, then
    /// they are not found and that is an error.
    ///
    /// # Errors
    /// When a file cannot be read, or has no line for OAuth.
    pub fn read(issuer: Option<String>, pgdata: Option<&Path>) -> Result<Self> {
        let Some(pgdata) = pgdata else {
            return Ok(Self {
                issuer,
                ..Self::default()
            });
        };
        let lines = |name: &str| -> Result<Vec<String>> {
            let path = pgdata.join(name);
            let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            let lines = text.lines().map(str::trim);
            let own = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
            Ok(own.map(str::to_owned).collect())
        };
        let mut hba = lines("pg_hba.conf")?;
        hba.retain(|line| line.split_whitespace().any(|word| word == "oauth"));
        if hba.is_empty() {
            return Err(Error::Refused(format!(
                "{} has no line with the method oauth",
                pgdata.join("pg_hba.conf").display()
            )));
        }
        Ok(Self {
            issuer,
            hba,
            ident: lines("pg_ident.conf")?,
        })
    }

    /// Issuers that are to be asked: the one that clients name and those of the rules, each once.
    fn issuers(&self) -> Vec<&str> {
        let of_rules = self.hba.iter().filter_map(|line| option(line, "issuer"));
        let mut all: Vec<&str> = self.issuer.as_deref().into_iter().chain(of_rules).collect();
        all.dedup();
        all
    }

    /// What is wrong between the rules themselves, without asking anybody.
    fn contradictions(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for line in &self.hba {
            // A rule without an issuer is the server's to refuse.
            let issuer = option(line, "issuer").or(self.issuer.as_deref());
            let issuer = issuer.unwrap_or_default();
            if let Some(other) = self.issuer.as_deref().filter(|other| *other != issuer) {
                wrong.push(format!(
                    "clients name the issuer {other}, this rule {issuer}: both must be spelled alike, to the last slash: {line}"
                ));
            }
            let map = option(line, "map");
            let delegates = option(line, "delegate_ident_mapping").is_some();
            match map {
                Some(map) if !self.ident.iter().any(|own| own.split_whitespace().next() == Some(map)) => {
                    wrong.push(format!(
                        "pg_ident.conf has no line of the map {map}, so that nobody gets in: {line}"
                    ));
                }
                None if !delegates => wrong.push(format!(
                    "this rule has no map: only a role that is called as the token's user gets in: {line}"
                )),
                _ => {}
            }
        }
        for issuer in self.issuers() {
            if !issuer.starts_with("https://") {
                wrong.push(format!("{issuer} is not https, which libpq asks for"));
            }
        }
        wrong
    }

    /// Tries it: the server reads the rules, the issuers are asked.
    pub(super) fn try_it(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let mut wrong = self.contradictions();
        let start = std::time::Instant::now();
        for issuer in self.issuers() {
            let scopes = self
                .hba
                .iter()
                .filter(|line| option(line, "issuer") == Some(issuer));
            let scopes: Vec<&str> = scopes.filter_map(|line| option(line, "scope")).collect();
            match discovery(issuer) {
                Ok(document) => wrong.extend(lacking(issuer, &document, &scopes)),
                Err(why) => wrong.push(format!("{issuer} does not answer as it must: {why}")),
            }
        }
        let token_ms = start.elapsed().as_secs_f64() * 1e3;
        if !self.hba.is_empty() {
            wrong.extend(self.as_the_server_reads_it(bench)?);
        }
        bench.keep("own_set_up.txt", wrong.join("\n").as_bytes())?;
        bench.fact(
            "answer",
            if wrong.is_empty() {
                "the issuer answers and the server takes the rules".to_owned()
            } else {
                wrong.join("; ")
            },
        );
        let count = u32::try_from(wrong.len()).unwrap_or(u32::MAX);
        Ok(Measured::default()
            .with("wrong_answers", f64::from(count))
            .with("token_ms", token_ms))
    }

    fn as_the_server_reads_it(&self, bench: &mut Bench<'_>) -> Result<Vec<String>> {
        // Only libraries of this list may be named by a rule; none is loaded to read the rules.
        let mut validators: Vec<&str> = self
            .hba
            .iter()
            .filter_map(|line| option(line, "validator"))
            .collect();
        validators.dedup();
        if validators.is_empty() {
            validators.push("any_validator");
        }
        bench.set("oauth_validator_libraries", &validators.join(","));
        bench.server()?;
        let hba = format!("local all postgres trust\n{}\n", self.hba.join("\n"));
        stage::write_rules(bench, &hba, &format!("{}\n", self.ident.join("\n")))?;
        let wrong = rules::wrong_lines(&mut bench.connect()?)?;
        Ok(wrong.iter().map(rules::WrongLine::words).collect())
    }
}

/// The value of an option of a rule: `issuer="https://x"` or `map=people`.
fn option<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let found = line.match_indices(name).find_map(|(at, _)| {
        let before = line.get(..at)?.chars().next_back();
        let starts = before.is_none_or(|c| c.is_whitespace() || c == '"');
        line.get(at + name.len()..)?
            .strip_prefix('=')
            .filter(|_| starts)
    })?;
    match found.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => found.split_whitespace().next(),
    }
}

/// The discovery document by curl, whose library psql uses too: what it does not trust, psql does
/// not either.
fn discovery(issuer: &str) -> std::result::Result<Value, String> {
    let url = format!("{issuer}/.well-known/openid-configuration");
    let mut command = Command::new("curl");
    command
        .args([
            "--silent",
            "--show-error",
            "--fail",
            "--max-time",
            "10",
            "--proto",
            "=https",
        ])
        .arg(&url)
        .stdin(Stdio::null());
    let answer = command
        .output()
        .map_err(|error| format!("curl cannot be run: {error}"))?;
    if !answer.status.success() {
        return Err(String::from_utf8_lossy(&answer.stderr).trim().to_owned());
    }
    serde_json::from_slice(&answer.stdout).map_err(|_| format!("{url} is no JSON"))
}

/// What a discovery document lacks for a login by device flow with these scopes.
fn lacking(issuer: &str, document: &Value, scopes: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    match text("issuer") {
        Some(own) if own == issuer => {}
        own => wrong.push(format!(
            "the provider calls itself {}, not {issuer}: libpq compares them letter by letter",
            own.unwrap_or("nothing")
        )),
    }
    for name in ["device_authorization_endpoint", "token_endpoint"] {
        match text(name) {
            Some(url) if url.starts_with("https://") => {}
            Some(url) => wrong.push(format!("the {name} {url} is not https")),
            None => wrong.push(format!(
                "{issuer} has no {name}, which psql's device flow needs"
            )),
        }
    }
    let supported = document.get("scopes_supported").and_then(Value::as_array);
    let is_supported = |scope: &&str| {
        supported.is_none_or(|all| all.iter().any(|own| own.as_str() == Some(scope)))
    };
    let missing = scopes.iter().flat_map(|all| all.split_whitespace());
    for scope in missing.filter(|scope| !is_supported(scope)) {
        wrong.push(format!(
            "{issuer} does not name the scope {scope} among those it supports"
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_up(issuer: &str, hba: &str, ident: &str) -> OauthSetUp {
        OauthSetUp {
            issuer: Some(issuer.to_owned()),
            hba: vec![hba.to_owned()],
            ident: vec![ident.to_owned()],
        }
    }

    /// The listing of the article on OAuth.
    const HBA: &str = "host all all all oauth scope=\"profile\" issuer=\"https://mock-oauth2:8080/realms/pg\" map=\"oauthmap\"";

    #[test]
    fn the_rules_of_the_article_agree_with_each_other() {
        let own = set_up(
            "https://mock-oauth2:8080/realms/pg",
            HBA,
            "oauthmap \"postgresID\" \"postgres\"",
        );
        assert_eq!(own.contradictions(), [""; 0]);
        assert_eq!(own.issuers(), ["https://mock-oauth2:8080/realms/pg"]);
    }

    #[test]
    fn a_slash_a_missing_map_and_plain_http_are_told() {
        let own = set_up("http://mock-oauth2:8080/realms/pg/", HBA, "people a b");
        let wrong = own.contradictions();
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].contains("spelled alike"), "{}", wrong[0]);
        assert!(
            wrong[1].contains("no line of the map oauthmap"),
            "{}",
            wrong[1]
        );
        assert!(wrong[2].contains("is not https"), "{}", wrong[2]);
    }

    #[test]
    fn a_provider_without_a_device_flow_is_told() {
        let issuer = "https://id.example.com";
        let good = serde_json::json!({
            "issuer": issuer, "token_endpoint": "https://id.example.com/token",
            "device_authorization_endpoint": "https://id.example.com/device",
            "scopes_supported": ["openid", "postgres"],
        });
        assert_eq!(lacking(issuer, &good, &["openid postgres"]), [""; 0]);
        let wrong = lacking(issuer, &good, &["profile"]);
        assert!(wrong[0].contains("the scope profile"), "{wrong:?}");
        let bare = serde_json::json!({"issuer": "https://id.example.com/"});
        assert_eq!(lacking(issuer, &bare, &[]).len(), 3);
    }

    #[test]
    fn an_issuer_that_is_not_there_does_not_answer() {
        assert!(discovery("https://127.0.0.1:1").is_err());
    }
}
