//! `--alert-command` and `--webhook`: messages about alerts, one after the other, beside the
//! sampling. What a server is called never becomes part of a command: it stands in the message.

use std::io::{self, Read, Seek, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Inbox, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgclinic_watch::{AlertMessage, connect_encrypted};

use crate::env::sleep_unless;

/// Messages that wait; the next ones are counted as failures.
const WAITING_MAX: usize = 1000;
/// For a command, and for a web server to answer.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);
/// Between the attempts to reach a receiver.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// What is read of an answer.
const ANSWER_BYTES: u64 = 4096;
/// Of what a command writes, in a message.
const OUTPUT_BYTES: usize = 300;
/// Failures that are kept until somebody asks.
const FAILURES_MAX: usize = 20;

/// Who hears of alerts.
#[derive(Debug, Clone)]
pub(super) enum Receiver {
    /// A command for sh, which gets the message on its standard input.
    Command(String),
    /// A web server, which gets it by POST.
    Webhook(Webhook),
}

/// `http://host:port/path` or `https://…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Webhook {
    is_encrypted: bool,
    host: String,
    port: u16,
    path: String,
    authorities: Option<PathBuf>,
}

/// Deliver messages until they are dropped.
pub(super) struct Couriers {
    queue: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    failures: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Couriers {
    /// To these receivers.
    pub(super) fn start(receivers: Vec<Receiver>) -> Self {
        let (queue, inbox) = sync_channel(WAITING_MAX);
        let failures = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (own_failures, own_is_over) = (Arc::clone(&failures), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            deliver_all(&inbox, &receivers, &own_failures, &own_is_over);
        });
        Self {
            queue: Some(queue),
            thread: Some(thread),
            failures,
            is_over,
        }
    }

    /// Queues a message.
    pub(super) fn send(&self, message: &AlertMessage) {
        let sent = serde_json::to_string(message).map(|text| {
            let queue = self.queue.as_ref();
            queue.is_some_and(|queue| queue.try_send(text).is_ok())
        });
        if !matches!(sent, Ok(true)) {
            let why = format!("{}: too many messages wait", message.alert);
            note(&self.failures, why);
        }
    }

    /// What went wrong since it was asked last.
    pub(super) fn failures(&self) -> Vec<String> {
        std::mem::take(&mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Couriers {
    /// What waits is tried once more.
    fn drop(&mut self) {
        self.queue = None;
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn note(failures: &Mutex<Vec<String>>, why: String) {
    let mut own = failures.lock().unwrap_or_else(PoisonError::into_inner);
    if own.len() < FAILURES_MAX {
        own.push(why);
    }
}

fn deliver_all(
    inbox: &Inbox<String>,
    receivers: &[Receiver],
    failures: &Mutex<Vec<String>>,
    is_over: &AtomicBool,
) {
    // At the end no receiver that hangs is waited for twice.
    let mut hangs = vec![false; receivers.len()];
    while let Ok(message) = inbox.recv() {
        for (receiver, hangs) in receivers.iter().zip(&mut hangs) {
            if is_over.load(Ordering::Relaxed) && *hangs {
                continue;
            }
            let ended = delivered(receiver, &message, is_over);
            *hangs = ended.is_err();
            if let Err(why) = ended {
                note(failures, why);
            }
        }
    }
}

fn delivered(receiver: &Receiver, message: &str, is_over: &AtomicBool) -> Result<(), String> {
    let mut pauses = PAUSES.into_iter();
    loop {
        let ended = match receiver {
            Receiver::Command(command) => run(command, message),
            Receiver::Webhook(webhook) => webhook.post(message),
        };
        match (ended, pauses.next()) {
            (Err(_), Some(pause)) if !is_over.load(Ordering::Relaxed) => {
                sleep_unless(is_over, pause);
            }
            (ended, _) => return ended,
        }
    }
}

fn run(command: &str, message: &str) -> Result<(), String> {
    let failed = |why: String| format!("--alert-command {command:?}: {why}");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::piped());
    // A file, since what the command leaves behind may keep a pipe open, or fill it.
    let said = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
    let (mut said, stderr) = said.map_err(|error| failed(error.to_string()))?;
    let mut child = shell
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command may end without reading.
        let _unread = writeln!(stdin, "{message}");
    }
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(STEP),
            Ok(None) => {
                let _ended = child.kill();
                let _waited = child.wait();
                return Err(failed(format!("no end within {} s", PATIENCE.as_secs())));
            }
            Err(error) => return Err(failed(error.to_string())),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut output = Vec::new();
    let _unread = said
        .rewind()
        .and_then(|()| said.take(ANSWER_BYTES).read_to_end(&mut output));
    let output = String::from_utf8_lossy(&output);
    let end = output.floor_char_boundary(OUTPUT_BYTES);
    let output = output
        .get(..end)
        .unwrap_or_default()
        .trim()
        .replace('\n', " ");
    Err(failed(format!("{status} {output}")))
}

impl Webhook {
    /// Of a URL, or of `@FILE` that holds one: a secret in it then stands in no list of processes.
    pub(super) fn of(text: &str, authorities: Option<&Path>) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix('@') {
            let url = std::fs::read_to_string(file)
                .map_err(|error| format!("cannot read the URL in {file}: {error}"))?;
            return Self::of(url.lines().next().unwrap_or_default().trim(), authorities);
        }
        let why = "a webhook is written http://host:port/path or https://host/path, or @FILE";
        let (is_encrypted, rest) =
            match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
                (Some(rest), _) => (true, rest),
                (None, Some(rest)) => (false, rest),
                (None, None) => return Err(why.to_owned()),
            };
        let split = rest.find('/').unwrap_or(rest.len());
        let (place, path) = rest.split_at(split);
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if place.contains('@') || !is_plain(text) {
            return Err(format!("{why}; without user, space or control characters"));
        }
        let usual = if is_encrypted { 443 } else { 80 };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| why.to_owned())?)
            }
            _ => (place, usual),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(why.to_owned());
        }
        Ok(Self {
            is_encrypted,
            host: host.to_owned(),
            port,
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            authorities: authorities.map(Path::to_owned),
        })
    }

    fn post(&self, message: &str) -> Result<(), String> {
        // Its path may hold a secret.
        let failed = |why: &dyn std::fmt::Display| format!("--webhook {}: {why}", self.host);
        let stream = self.connected().map_err(|error| failed(&error))?;
        let answer = if self.is_encrypted {
            let stream = connect_encrypted(stream, &self.host, self.authorities.as_deref());
            self.exchange(stream.map_err(|why| failed(&why))?, message)
        } else {
            self.exchange(stream, message)
        };
        let answer = answer.map_err(|error| failed(&error))?;
        let status = answer.lines().next().unwrap_or_default().trim();
        match status.split(' ').nth(1) {
            Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
            _ => Err(failed(&format!("it answered {status:?}"))),
        }
    }

    fn connected(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::other("the host has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The begin of the answer.
    fn exchange(&self, mut stream: impl Read + Write, message: &str) -> io::Result<String> {
        let (host, port, path, length) = (&self.host, self.port, &self.path, message.len());
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: pgclinic\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{message}"
        )?;
        stream.flush()?;
        let end = Instant::now() + PATIENCE;
        let mut answer = Vec::new();
        let mut window = [0; 512];
        while !answer.contains(&b'\n') && Instant::now() < end {
            let read = match stream.read(&mut window) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            answer.extend_from_slice(window.get(..read).unwrap_or_default());
            if u64::try_from(answer.len()).unwrap_or(u64::MAX) > ANSWER_BYTES {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_webhooks_are_taken_apart() {
        let of = |text: &str| Webhook::of(text, None);
        let own = of("https://hooks.example/a?b=c").expect("a URL");
        assert_eq!(
            (own.host.as_str(), own.port, own.path.as_str()),
            ("hooks.example", 443, "/a?b=c")
        );
        let own = of("http://[::1]:8080").expect("a URL");
        assert_eq!(
            (own.host.as_str(), own.port, own.path.as_str()),
            ("::1", 8080, "/")
        );
        for wrong in [
            "ftp://a/",
            "http://",
            "http://a:b/",
            "http://u:p@a/",
            "http://a/b c",
            "http://a/\r\nX: y",
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_command_gets_the_message_and_its_failure_is_kept() {
        let home = tempfile::tempdir().expect("a directory");
        let heard = home.path().join("heard");
        let message = "{\"server\":\"$(touch never); `touch never`\"}";
        run(&format!("cat > '{}'", heard.display()), message).expect("an end");
        assert_eq!(
            std::fs::read_to_string(heard).expect("a file"),
            format!("{message}\n")
        );
        let why = run("echo no >&2; exit 3", message).expect_err("a failure");
        assert!(why.contains("exit status: 3 no"), "{why}");
    }
}
