//! The same login by psql, whose library brings its own device flow along (`libpq-oauth`, since PostgreSQL 18).

use std::path::Path;
use std::process::Stdio;

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

/// Logs in with the first psql that can; the provider's person approves at once.
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
    let said = command
        .output()
        .map_err(Error::io("run", &program.bindir))?;
    let (out, complaint) = (text(&said.stdout), text(&said.stderr));
    if said.status.success() {
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
