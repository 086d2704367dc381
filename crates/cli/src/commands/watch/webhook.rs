//! `--webhook URL`: a message by POST, over HTTP/1.1 and TLS. However slowly a web server resolves,
//! accepts, reads or answers, all of it together has one limit.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pgclinic_watch::{BoundedStream, connect_encrypted};

/// For all of a delivery.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is read of an answer.
const ANSWER_BYTES: usize = 4096;

/// `http://host:port/path` or `https://…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Webhook {
    is_encrypted: bool,
    host: String,
    port: u16,
    path: String,
    authorities: Option<PathBuf>,
}

/// A resolver has limits of its own, which are no limits of ours: one that hangs is left alone.
fn addresses(host: String, port: u16, patience: Duration) -> io::Result<Vec<SocketAddr>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        let _late = sender.send(found.map(Iterator::collect));
    });
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    receiver.recv_timeout(patience).map_err(late)?
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

    /// Delivers it, or says why not.
    pub(super) fn post(&self, message: &str) -> Result<(), String> {
        self.post_within(message, PATIENCE)
    }

    fn post_within(&self, message: &str, patience: Duration) -> Result<(), String> {
        // Its path may hold a secret.
        let failed = |why: &dyn std::fmt::Display| format!("--webhook {}: {why}", self.host);
        let in_time = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut => failed(&format!("no end within {patience:.0?}")),
            _ => failed(&error),
        };
        let end = Instant::now() + patience;
        let stream = self.connected(end).map_err(in_time)?;
        let stream = BoundedStream::new(stream, end.saturating_duration_since(Instant::now()));
        let answer = if self.is_encrypted {
            let stream = connect_encrypted(stream, &self.host, self.authorities.as_deref());
            self.exchange(stream.map_err(|why| failed(&why))?, message)
        } else {
            self.exchange(stream, message)
        };
        let answer = answer.map_err(in_time)?;
        let status = answer.lines().next().unwrap_or_default().trim();
        match status.split(' ').nth(1) {
            Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
            _ => Err(failed(&format!("it answered {status:?}"))),
        }
    }

    fn connected(&self, end: Instant) -> io::Result<TcpStream> {
        let left = || end.saturating_duration_since(Instant::now());
        let mut last = io::Error::other("the host has no address");
        for address in addresses(self.host.clone(), self.port, left())? {
            if left().is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match TcpStream::connect_timeout(&address, left()) {
                Ok(stream) => return Ok(stream),
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
        let mut answer = Vec::new();
        let mut window = [0; 512];
        while !answer.contains(&b'\n') && answer.len() < ANSWER_BYTES {
            let read = match stream.read(&mut window) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            answer.extend_from_slice(window.get(..read).unwrap_or_default());
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

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
    fn a_web_server_that_sends_a_byte_now_and_then_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let dripping = std::thread::spawn(move || {
            for (scheme, stream) in ["http", "https"].into_iter().zip(listener.incoming()) {
                let mut stream = stream.expect("a connection");
                // A record of TLS that never comes to its end, and no line either.
                let begin: &[u8] = if scheme == "https" {
                    &[22, 3, 3, 64, 0]
                } else {
                    b"HTTP"
                };
                let mut sent = stream.write_all(begin);
                while sent.is_ok() {
                    std::thread::sleep(Duration::from_millis(5));
                    sent = stream.write_all(b"x");
                }
            }
        });
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{address}/");
            let own = Webhook::of(&url, None).expect("a URL");
            let begin = Instant::now();
            let why = own.post_within("{}", Duration::from_millis(200));
            let why = why.expect_err("no answer");
            assert!(
                why.contains("within") || why.contains("authorities"),
                "{why}"
            );
            // Far below what a limit of each byte would allow.
            assert!(begin.elapsed() < Duration::from_secs(20));
        }
        dripping.join().expect("an end");
    }
}
