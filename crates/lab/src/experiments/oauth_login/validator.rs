//! The validator in the server, and the service that it asks. PostgreSQL brings none along: its
//! module is compiled here from a page of C, and what decides is [`Checker`].

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pgclinic_servers::RunAs;

use super::checker::Checker;
use crate::error::{Error, Result};

const SOURCE: &str = include_str!("validator.c");

/// A module that sends nothing is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why no module can be made, where that is so.
pub(super) fn no_compiler() -> Option<String> {
    let asked = Command::new("cc")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let found = asked.is_ok_and(|status| status.success());
    (!found)
        .then(|| "no C compiler (cc) is here, and PostgreSQL brings no validator along".to_owned())
}

/// Compiles the module so that it asks this socket.
pub(super) fn compile(folder: &Path, socket: &Path) -> Result<PathBuf> {
    let source = folder.join("validator.c");
    std::fs::write(&source, SOURCE).map_err(Error::io("write", &source))?;
    let module = folder.join("pgclinic_validator.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-fPIC", "-shared", "-o"])
        .arg(&module)
        .arg(format!("-DSOCKET_PATH=\"{}\"", socket.display()))
        .arg(&source)
        .stdin(Stdio::null());
    let said = compiler.output().map_err(Error::io("run", "cc"))?;
    if said.status.success() {
        return Ok(module);
    }
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    Err(Error::Refused(format!(
        "the validator does not compile: {}",
        said.trim_end()
    )))
}

/// Answers the module until it is dropped.
pub(super) struct Service {
    socket: PathBuf,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(super) fn start(socket: &Path, run_as: &RunAs, checker: Checker) -> Result<Self> {
        let listener = UnixListener::bind(socket).map_err(Error::io("listen on", socket))?;
        run_as.own(socket)?;
        let ending = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ending);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // A server that was stopped in the middle of a login breaks off.
                let _ = stream.and_then(|stream| answer(stream, &checker));
            }
        });
        Ok(Self {
            socket: socket.to_path_buf(),
            ending,
            thread: Some(thread),
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for the module; one that cannot be woken is left to the end
        // of the process.
        let woken = UnixStream::connect(&self.socket).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// Reads role and token, says `+NAME` or `-REASON`.
fn answer(mut stream: UnixStream, checker: &Checker) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let (_role, token) = (lines.next().transpose()?, lines.next().transpose()?);
    let line = match checker.check(&token.unwrap_or_default()) {
        Ok(name) => format!("+{}\n", one_line(&name)),
        Err(reason) => format!("-the token is refused: {}\n", one_line(&reason)),
    };
    stream.write_all(line.as_bytes())
}

/// Claims come from outside: what would end the line or fill the module's buffer stays away.
fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_cannot_end_its_line() {
        assert_eq!(one_line("alice\n+postgres"), "alice +postgres");
        assert_eq!(one_line(&"x".repeat(5_000)).len(), 200);
    }
}
