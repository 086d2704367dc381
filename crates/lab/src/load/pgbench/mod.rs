//! The other driver: `pgbench`, where it is installed.
//!
//! It gets the same scripts, clients, protocol, rate and seed, and its own report is read back.
//! What it does not tell stays unknown: there is no histogram, and errors end its clients instead
//! of being counted.

mod process;
mod report;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgclinic_servers::Installation;
use tempfile::TempDir;

use super::measured::{LoadResult, Measured};
use super::{ConnectionTarget, Length, Load, Pace};
use pgclinic_servers::Address;
use process::{Ended, Process};
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

/// Runs the load with `program`. `begun` is called once, when all its clients are connected. An
/// error is a sentence that says what it cannot do or what it said.
pub fn run(
    program: &Path,
    load: &Load,
    target: &ConnectionTarget,
    begun: &dyn Fn(),
) -> Result<LoadResult, String> {
    let failed = |error: io::Error| format!("cannot run {}: {error}", program.display());
    let folder = written(load).map_err(failed)?;
    let mut command = command(program, load, folder.path(), target)?;
    let process = Process::start(&mut command).map_err(failed)?;
    let ended = process.run(load, target, begun).map_err(failed)?;
    let Ended::ByItself { status, out, err } = ended else {
        let limit = load.connect_limit.as_secs();
        let why = format!("the clients of pgbench were not connected within {limit} s");
        return Ok(LoadResult::Empty { why });
    };
    match Report::read(&out, &err) {
        Some(report) => Ok(LoadResult::Measured(Box::new(measured(
            program, load, report,
        )))),
        None => Ok(LoadResult::Empty {
            why: format!(
                "pgbench ended with {status} and no result: {}",
                last_lines(&err)
            ),
        }),
    }
}

/// The scripts as files, which is how pgbench takes more than one.
fn written(load: &Load) -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for (number, weighted) in load.scripts.iter().enumerate() {
        let path = folder.path().join(file_name(number));
        std::fs::write(path, weighted.script.text())?;
    }
    Ok(folder)
}

fn file_name(number: usize) -> String {
    format!("{number}.sql")
}

/// Variables that hold before the first line; pgbench has one set of them for all scripts.
fn given(load: &Load) -> Result<BTreeMap<&str, i64>, String> {
    let mut all = BTreeMap::new();
    let each = load
        .scripts
        .iter()
        .flat_map(|weighted| weighted.script.given());
    for (name, value) in each {
        let before = all.insert(name.as_str(), *value);
        if before.is_some_and(|before| before != *value) {
            return Err(format!(
                "pgbench has one value of {name} for all scripts, and these give two; use the built-in driver"
            ));
        }
    }
    Ok(all)
}

fn command(
    program: &Path,
    load: &Load,
    scripts: &Path,
    target: &ConnectionTarget,
) -> Result<Command, String> {
    let mut command = Command::new(program);
    for (number, weighted) in load.scripts.iter().enumerate() {
        let path = scripts.join(file_name(number));
        command
            .arg("-f")
            .arg(format!("{}@{}", path.display(), weighted.weight));
    }
    command
        .args(["-n", "-P", "1", "-M", load.protocol.name()])
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
    for (name, value) in given(load)? {
        command.arg(format!("--define={name}={value}"));
    }
    connect(&mut command, target);
    Ok(command)
}

/// Passwords go by the environment, where other users do not see them.
fn connect(command: &mut Command, target: &ConnectionTarget) {
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
