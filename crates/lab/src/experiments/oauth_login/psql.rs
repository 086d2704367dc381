//! The same login by psql, whose library brings its own device flow along (`libpq-oauth`, since
//! PostgreSQL 18).

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pgclinic_servers::{Installation, everywhere};

use super::provider::QUICK_CLIENT;
use super::stage::{Answer, Stage};
use crate::bench::Bench;
use crate::error::{Error, Result};

/// Every psql that may know OAuth, the newest first.
pub(super) fn programs() -> Vec<Installation> {
    let mut found = everywhere();
    found.retain(|one| one.major >= 18 && one.tool("psql").is_some());
    found.sort_by(|a, b| b.version.cmp(&a.version));
    found
}

/// Logs in with the first psql that can. The person of our own provider approves at once,
/// Keycloak's with a browser.
pub(super) fn log_in(bench: &mut Bench<'_>, stage: &Stage) -> Result<Answer> {
    let mut why =
        "no psql 18 is here; `cargo xtask servers` fetches Debian sid's, with libpq-oauth"
            .to_owned();
    for program in programs() {
        match run(bench, stage, &program)? {
            Ok(answer) => {
                bench.fact(
                    "psql",
                    format!("{} in {}", program.version, program.bindir.display()),
                );
                return Ok(answer);
            }
            Err(lacking) => why = lacking,
        }
    }
    Err(Error::Skip(why))
}

/// The inner error says why this psql cannot.
fn run(
    bench: &mut Bench<'_>,
    stage: &Stage,
    program: &Installation,
) -> Result<std::result::Result<Answer, String>> {
    let authority = stage.folder.path().join("authority.pem");
    std::fs::write(&authority, &stage.certificates.authority_pem)
        .map_err(Error::io("write", &authority))?;
    bench.run_as().own(&authority)?;
    let host = bench.server()?.socket_folder().to_path_buf();
    let mut command = bench.run_as().command(&program.bindir.join("psql"));
    command
        .args(["-X", "-A", "-t", "-w", "-c", "SELECT system_user"])
        .arg(connection(&host, &stage.issuer))
        // In 18 another authority than the system's is only for debugging.
        .env("PGOAUTHDEBUG", "UNSAFE")
        .env("PGOAUTHCAFILE", &authority)
        .stdin(Stdio::null());
    let (succeeded, out, complaint) = approved(bench, stage, command, &program.bindir)?;
    if succeeded {
        return Ok(Ok(Answer::LetIn(out)));
    }
    let lacking = [
        "no OAuth flows are available",
        "invalid connection option",
        "not supported by this build",
    ];
    if lacking.iter().any(|words| complaint.contains(words)) {
        return Ok(Err(format!("psql {} cannot: {complaint}", program.version)));
    }
    Ok(Ok(Answer::Refused(complaint)))
}

/// Runs psql to its end; a page that it tells its person to visit is visited.
fn approved(
    bench: &Bench<'_>,
    stage: &Stage,
    mut command: Command,
    program: &Path,
) -> Result<(bool, String, String)> {
    let failed = || Error::io("run", program);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(failed())?;
    let mut complaint = String::new();
    let mut visited = Ok(());
    if let Some(pipe) = child.stderr.take() {
        for line in BufReader::new(pipe).lines() {
            let line = line.map_err(failed())?;
            if let Some((url, code)) = invitation(&line) {
                visited = stage.approve(url, code);
            }
            complaint.push_str(&line);
            complaint.push('\n');
        }
    }
    let said = child.wait_with_output().map_err(failed())?;
    bench.check_interrupted()?;
    visited.map_err(Error::Refused)?;
    let out = text(&said.stdout);
    Ok((said.status.success(), out, text(complaint.as_bytes())))
}

/// `Visit https://… and enter the code: ABCD-EFGH`
fn invitation(line: &str) -> Option<(&str, &str)> {
    let (url, code) = line
        .split_once("isit ")?
        .1
        .split_once(" and enter the code: ")?;
    Some((url, code.trim()))
}

fn connection(host: &Path, issuer: &str) -> String {
    format!(
        "host={} user=alice dbname=postgres oauth_issuer={issuer} oauth_client_id={QUICK_CLIENT}",
        host.display()
    )
}

/// Without what psql's debugging prints about its talk with the provider, tokens included.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let kept = text
        .lines()
        .filter(|line| !line.starts_with('[') && !line.contains("oken"));
    kept.collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psql_tells_where_to_go() {
        let line = "Visit https://localhost:1/realms/a/device and enter the code: ABCD-EFGH";
        assert_eq!(
            invitation(line),
            Some(("https://localhost:1/realms/a/device", "ABCD-EFGH"))
        );
        assert_eq!(invitation("[libcurl] nothing"), None);
    }
}
