//! The other driver: `pgbench`, where it is installed.
//!
//! It gets the same script, clients, protocol, rate and seed, and its own report is read back. What it does not tell
//! stays unknown: there is no histogram, and errors end its clients instead of being counted.

mod report;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pgclinic_servers::Installation;

use super::measured::{LoadResult, Measured};
use super::{Length, Load, Pace, Script, Target};
use pgclinic_servers::Address;
use report::Report;

/// `pgbench` of this installation, else the one on the path of Debian's packages.
pub fn find(installation: &Installation) -> Option<PathBuf> {
    installation.tool("pgbench").or_else(installed)
}

/// `pgbench` of the newest installation where Debian puts them.
pub fn installed() -> Option<PathBuf> {
    let folder = |major| PathBuf::from(format!("/usr/lib/postgresql/{major}/bin/pgbench"));
    let mut majors = pgclinic_servers::MAJORS.rev().map(folder);
    majors.find(|path| path.is_file())
}

/// Runs the load with `program`. An error is a sentence that says what it cannot do or what it said.
pub fn run(program: &Path, load: &Load, target: &Target) -> Result<LoadResult, String> {
    let script = only_script(load)?;
    let mut command = command(program, load, script, target)?;
    let output = feed(&mut command, script.text())
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let report = Report::read(&String::from_utf8_lossy(&output.stdout), &said);
    match report {
        Some(report) => Ok(LoadResult::Measured(Box::new(measured(
            program, load, report,
        )))),
        None => Ok(LoadResult::Empty {
            why: format!(
                "pgbench ended with {} and no result: {}",
                output.status,
                last_lines(&said)
            ),
        }),
    }
}

/// pgbench reads what it gets from us as one script.
fn only_script(load: &Load) -> Result<&Script, String> {
    match load.scripts.as_slice() {
        [only] => Ok(&only.script),
        _ => Err("pgbench gets one script here, and this load draws from several; use the built-in driver".to_owned()),
    }
}

fn command(
    program: &Path,
    load: &Load,
    script: &Script,
    target: &Target,
) -> Result<Command, String> {
    let mut command = Command::new(program);
    command
        .args(["-n", "-f", "-", "-P", "1", "-M", load.protocol.name()])
        .args(["-c", &load.clients.to_string()])
        .args(["-j", &load.threads().to_string()])
        .arg(format!("--random-seed={}", load.seed));
    match load.length {
        Length::Window(window) if window.subsec_nanos() == 0 && !window.is_zero() => {
            command.args(["-T", &window.as_secs().to_string()]);
        }
        Length::Window(_) => return Err("pgbench measures whole seconds only".to_owned()),
        Length::Rounds(rounds) => {
            command.args(["-t", &rounds.to_string()]);
        }
    }
    match load.pace {
        Pace::Closed { think } if think.is_zero() => {}
        Pace::Closed { .. } => {
            return Err("pgbench counts think time as latency; use the built-in driver".to_owned());
        }
        Pace::Open { rate } => {
            command.arg(format!("--rate={rate}"));
        }
    }
    for (name, value) in script.given() {
        command.arg(format!("--define={name}={value}"));
    }
    connect(&mut command, target);
    Ok(command)
}

/// Passwords go by the environment, where other users do not see them.
fn connect(command: &mut Command, target: &Target) {
    let (host, port) = match &target.address {
        Address::Socket { folder, port } => (folder.as_os_str().to_owned(), port),
        Address::Tcp { host, port } => (host.into(), port),
    };
    let settings = target.settings.iter();
    let options: Vec<String> = settings
        .map(|(name, value)| {
            format!(
                "-c {name}={}",
                value.replace('\\', "\\\\").replace(' ', "\\ ")
            )
        })
        .collect();
    command
        .env("PGHOST", host)
        .env("PGPORT", port.to_string())
        .env("PGUSER", &target.user)
        .env("PGOPTIONS", options.join(" "))
        .env("LC_ALL", "C")
        .arg(&target.database);
    if let Some(password) = &target.password {
        command.env("PGPASSWORD", password);
    }
}

fn feed(command: &mut Command, script: &str) -> std::io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(script.as_bytes())?;
    }
    child.wait_with_output()
}

fn measured(program: &Path, load: &Load, report: Report) -> Measured {
    let version = version(program);
    Measured {
        driver: format!("pgbench {version}"),
        clients: load.clients,
        threads: load.threads(),
        protocol: load.protocol,
        connect_s: report.connect_s,
        window_s: report.rounds as f64 / report.tps.max(1e-9),
        rounds: report.rounds,
        failed: report.failed,
        ended_late: 0,
        abandoned: 0,
        overdue: 0,
        lost_clients: report.aborted_clients,
        tps: report.tps,
        latency: report.latency,
        lag: report.lag,
        histogram: Vec::new(),
        seconds: report.seconds,
        errors: report.errors,
        generator_cpu_s: None,
    }
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.split_whitespace()
        .nth(2)
        .unwrap_or("of unknown version")
        .to_owned()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(3);
    lines.get(from..).unwrap_or_default().join("; ")
}
