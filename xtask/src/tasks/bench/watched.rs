//! Servers to be watched, and the program that watches them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::postgres::{self, Server, Tools};
use crate::shell;

/// Where servers of other majors are kept.
const FETCHED: &str = "/var/cache/pgclinic/postgresql";
/// What cannot be had within this is not there.
const PATIENCE: Duration = Duration::from_secs(60);

/// Servers of as many majors as are on this machine, `count` at most.
pub(super) fn installations(count: usize) -> Result<Vec<Tools>, String> {
    let fetched = std::fs::read_dir(FETCHED).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = fetched.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    let fetched = folders.into_iter().rev().filter_map(Tools::at);
    let mut majors = Vec::new();
    let mut found = Vec::new();
    for tools in Tools::find().into_iter().chain(fetched) {
        let version = shell::capture(tools.command("postgres").arg("--version"))?;
        let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
        let major = numbers.find(|word| !word.is_empty());
        let major = major.unwrap_or_default().to_owned();
        if found.len() < count && !majors.contains(&major) {
            majors.push(major);
            found.push(tools);
        }
    }
    if found.is_empty() {
        return Err("no PostgreSQL is installed".into());
    }
    Ok(found)
}

/// The URL of a database of a server.
pub(super) fn url(server: &Server<'_>, database: &str) -> String {
    let folder = server.folder().display();
    format!("postgres:///{database}?user=postgres&host={folder}")
}

/// One statement.
pub(super) fn execute(server: &Server<'_>, database: &str, sql: &str) -> Result<String, String> {
    let mut psql = server.client("psql");
    psql.args(["-X", "-qAt", "-U", "postgres", "-c", sql, database]);
    Ok(shell::capture(&mut psql)?.trim().to_owned())
}

/// The process of the server itself.
pub(super) fn postmaster(cluster: &Path) -> Result<u32, String> {
    let file = cluster.join("postmaster.pid");
    let text = std::fs::read_to_string(&file).map_err(shell::at(&file))?;
    let first = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse().ok());
    first.ok_or_else(|| format!("{}: no process in it", file.display()))
}

/// `pgclinic watch --listen` at work; ended when dropped.
pub(super) struct Watch {
    child: Child,
    address: String,
}

impl Watch {
    /// Begins, and waits until it says where it listens.
    pub(super) fn start(program: &Path, words: &[String]) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("watch").args(words);
        command.args(["--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn();
        let mut child = child.map_err(|error| format!("{}: {error}", program.display()))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let said = lines.next().and_then(Result::ok).unwrap_or_default();
        let address = said.split("http://").nth(1);
        let address = address.and_then(|rest| rest.split('/').next());
        let Some(address) = address.map(str::to_owned) else {
            let _ = child.kill();
            return Err(format!("watch does not listen: {said}"));
        };
        // What it says later must not stand in its way.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, address })
    }

    pub(super) fn is_over(&mut self) -> Result<bool, String> {
        let ended = self.child.try_wait();
        Ok(ended.map_err(|error| format!("watch: {error}"))?.is_some())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The length of a page.
    pub(super) fn bytes_of(&self, path: &str) -> Result<usize, String> {
        let failed = |error| format!("{path}: {error}");
        let mut stream = TcpStream::connect(&self.address).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(failed)?;
        let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
        Ok(answer.len() - head.map_or(0, |head| head + 4))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A cluster in its own folder, with this many databases `d0`, `d1` … beside `postgres`.
pub(super) fn start<'a>(
    tools: &'a Tools,
    folder: &Path,
    settings: &[&str],
    databases: usize,
) -> Result<Server<'a>, String> {
    postgres::give_to_server_user(folder.parent().unwrap_or(folder))?;
    tools.new_cluster(folder)?;
    let server = tools.start(folder, settings)?;
    for number in 0..databases {
        execute(&server, "postgres", &format!("CREATE DATABASE d{number}"))?;
    }
    Ok(server)
}
