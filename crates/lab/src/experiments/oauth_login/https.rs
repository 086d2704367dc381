//! HTTP over TLS, as much of it as a provider of identities and its clients need: one request a
//! connection.
//!
//! The server answers each connection on a thread of its own and ends with its value; the client
//! trusts one certificate and nobody else.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// Who does not answer by then is taken for gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longer requests and answers are refused.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// What a client asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) form: BTreeMap<String, String>,
}

/// An answer: a status and JSON.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) json: Value,
}

impl Answer {
    pub(super) fn ok(json: Value) -> Self {
        Self { status: 200, json }
    }

    pub(super) fn error(status: u16, error: &str) -> Self {
        let json = serde_json::json!({ "error": error });
        Self { status, json }
    }
}

type Handler = dyn Fn(Request) -> Answer + Send + Sync;

/// A server on a free port of the loopback interface; it ends when dropped.
pub(super) struct HttpsServer {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A port that is ours, before anybody answers on it: the provider's name holds its number.
pub(super) fn listen() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

impl HttpsServer {
    pub(super) fn start(
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        handler: Arc<Handler>,
    ) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let ending = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ending);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (tls, handler) = (Arc::clone(&tls), Arc::clone(&handler));
                // A client that breaks off is no trouble of ours.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, tls, &*handler)));
            }
        });
        Ok(Self {
            address,
            ending,
            thread: Some(thread),
        })
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for clients; one that cannot be woken is left to the end of
        // the process.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn serve(stream: TcpStream, tls: Arc<ServerConfig>, handler: &Handler) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let session = ServerConnection::new(tls).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    let request = read_request(&mut stream)?;
    let answer = handler(request);
    let body = answer.json.to_string();
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.status,
        if answer.status == 200 {
            "OK"
        } else {
            "Refused"
        },
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn read_request(stream: &mut impl Read) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream.take(MESSAGE_BYTES_MAX));
    let head = Head::read(&mut reader)?;
    let mut words = head.first.split_whitespace();
    let (method, path) = (words.next(), words.next());
    let mut body = vec![0; head.length().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Request {
        method: method.unwrap_or_default().to_owned(),
        path: path.unwrap_or_default().to_owned(),
        form: parse_form(&String::from_utf8_lossy(&body)),
    })
}

/// What stands before the body.
#[derive(Debug, Default)]
pub(super) struct Head {
    first: String,
    headers: Vec<(String, String)>,
}

impl Head {
    fn read(reader: &mut impl BufRead) -> std::io::Result<Self> {
        let mut head = Self::default();
        reader.read_line(&mut head.first)?;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                return Ok(head);
            }
            if let Some((name, value)) = line.split_once(':') {
                let header = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
                head.headers.push(header);
            }
        }
    }

    /// Every value of a header, by its name in small letters.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.headers.iter().filter(move |(own, _)| own == name);
        own.map(|(_, value)| value.as_str())
    }

    /// Of the body, where it is named and can be believed.
    fn length(&self) -> Option<usize> {
        let known: Option<usize> = self.values("content-length").last()?.parse().ok();
        known.filter(|bytes| *bytes as u64 <= MESSAGE_BYTES_MAX)
    }

    /// Of an answer.
    pub(super) fn status(&self) -> Option<u16> {
        self.first.split_whitespace().nth(1)?.parse().ok()
    }
}

/// Asks for a page, or sends a form, and reads the JSON that comes back.
pub(super) fn fetch(
    trust: &Arc<ClientConfig>,
    url: &str,
    form: Option<&[(&str, &str)]>,
) -> Result<Answer, String> {
    let (head, body) = exchange(trust, url, "", form)?;
    let status = head.status();
    let status = status.ok_or_else(|| format!("{url} cannot be fetched: the answer is no HTTP"))?;
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Answer { status, json })
}

/// The same with cookies; whatever comes back.
pub(super) fn exchange(
    trust: &Arc<ClientConfig>,
    url: &str,
    cookies: &str,
    form: Option<&[(&str, &str)]>,
) -> Result<(Head, Vec<u8>), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{url} cannot be fetched: {error}");
    let (host, port, path) = parse_url(url).ok_or_else(|| failed(&"it is no https address"))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| failed(&error))?;
    let limits = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    limits.map_err(|error| failed(&error))?;
    let session = ClientConnection::new(Arc::clone(trust), name).map_err(|error| failed(&error))?;
    let mut stream = StreamOwned::new(session, stream);
    stream
        .write_all(request_text((host, port), path, cookies, form).as_bytes())
        .map_err(|error| failed(&error))?;
    read_answer(&mut stream).map_err(|error| failed(&error))
}

/// An answer to a request of version 1.0 comes in one piece and ends with the connection.
fn request_text(
    (host, port): (&str, u16),
    path: &str,
    cookies: &str,
    form: Option<&[(&str, &str)]>,
) -> String {
    let cookies = match cookies {
        "" => String::new(),
        cookies => format!("Cookie: {cookies}\r\n"),
    };
    let head = format!("{path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: */*\r\n{cookies}");
    match form {
        None => format!("GET {head}\r\n"),
        Some(form) => {
            let pairs: Vec<String> = form
                .iter()
                .map(|(name, value)| format!("{name}={}", encode(value)))
                .collect();
            let body = pairs.join("&");
            format!(
                "POST {head}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
    }
}

fn read_answer(stream: &mut impl Read) -> std::io::Result<(Head, Vec<u8>)> {
    let mut reader = BufReader::new(stream.take(MESSAGE_BYTES_MAX));
    let head = Head::read(&mut reader)?;
    let mut body = Vec::new();
    match head.length() {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None => {
            reader.read_to_end(&mut body)?;
        }
    }
    Ok((head, body))
}

/// Host, port and path of `https://host:port/path`.
pub(super) fn parse_url(url: &str) -> Option<(&str, u16, &str)> {
    let rest = url.strip_prefix("https://")?;
    let slash = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
    let path = if path.is_empty() { "/" } else { path };
    Some((host, port.parse().ok()?, path))
}

/// `application/x-www-form-urlencoded`.
fn parse_form(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(if *byte == b'+' { b' ' } else { *byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_survives_its_way_through_the_wire() {
        let form = [("scope", "openid postgres"), ("device_code", "a+b/c=%")];
        let text = request_text(("localhost", 8443), "/token", "", Some(&form));
        assert!(
            text.starts_with("POST /token HTTP/1.0\r\nHost: localhost:8443\r\n"),
            "{text}"
        );
        let request = read_request(&mut text.as_bytes()).expect("a request");
        assert_eq!(request.path, "/token");
        let own: Vec<(&str, &str)> = request
            .form
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            own,
            [("device_code", "a+b/c=%"), ("scope", "openid postgres")]
        );
    }

    #[test]
    fn a_lying_length_is_not_believed() {
        let text = b"POST /x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n";
        assert_eq!(
            read_request(&mut &text[..]).expect("a request").form.len(),
            0
        );
        assert!(
            read_request(&mut &b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"[..]).is_err()
        );
    }

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(
            parse_url("https://localhost:8443/a/b"),
            Some(("localhost", 8_443, "/a/b"))
        );
        assert_eq!(
            parse_url("https://localhost"),
            Some(("localhost", 443, "/"))
        );
        assert_eq!(parse_url("http://localhost"), None);
    }
}
