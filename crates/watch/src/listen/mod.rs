//! The metrics endpoint: `/metrics` and `/`, over HTTP/1.1; beyond loopback encrypted, and only for
//! whoever has the token.
//!
//! A small server of our own on `std::net` (`docs/adr/2026-11-27-watch.md`): two pages that are
//! made once an interval, whoever asks. Requests are read with a limit on their length, their time
//! and their number; there is no body, no path to a file, nothing to write.

mod access;
mod request;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use access::{Access, Token, address};
use request::{Request, read_request};

/// Connections that are served at once; the next one is closed.
const CONNECTIONS_MAX: usize = 16;
/// For reading a request, and for writing an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at whether the run is over.
const STEP: Duration = Duration::from_millis(50);

/// What is served; made anew by each sample.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    /// `/`.
    pub page: String,
    /// `/metrics`, the text format 0.0.4.
    pub prometheus: String,
    /// `/metrics` for whoever accepts OpenMetrics.
    pub openmetrics: String,
    /// `/json`: the document.
    pub json: String,
}

/// The pages as they are now.
pub type SharedPages = Arc<RwLock<Pages>>;

/// Serves until the run is over. Blocks.
///
/// # Errors
/// The listener failed.
pub fn serve(
    listener: &TcpListener,
    pages: &SharedPages,
    access: &Access,
    is_over: &AtomicBool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let busy = Arc::new(AtomicUsize::new(0));
    while !is_over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => accept(stream, pages, access, &busy),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(STEP),
            // A client that went away, or too many open files: the next one may have luck.
            Err(_) => std::thread::sleep(STEP),
        }
    }
    Ok(())
}

fn accept(stream: TcpStream, pages: &SharedPages, access: &Access, busy: &Arc<AtomicUsize>) {
    if busy.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
        busy.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (pages, access, own) = (Arc::clone(pages), access.clone(), Arc::clone(busy));
    let thread = std::thread::Builder::new().name("http".into());
    let begun = thread.spawn(move || {
        let _gone = answer(stream, &pages, &access);
        own.fetch_sub(1, Ordering::SeqCst);
    });
    if begun.is_err() {
        busy.fetch_sub(1, Ordering::SeqCst);
    }
}

fn answer(stream: TcpStream, pages: &SharedPages, access: &Access) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match &access.tls {
        Some(tls) => {
            let mut stream = tls.accept(stream, PATIENCE)?;
            exchange(&mut stream, pages, access)?;
            stream.conn.send_close_notify();
            stream.flush()
        }
        None => exchange(&mut { stream }, pages, access),
    }
}

/// One request, one answer.
fn exchange<S: Read + Write>(
    stream: &mut S,
    pages: &SharedPages,
    access: &Access,
) -> io::Result<()> {
    let response = match read_request(stream, PATIENCE) {
        Ok(request) => respond(&request, pages, access),
        Err(status) => Response::failure(status),
    };
    stream.write_all(response.head().as_bytes())?;
    if response.has_body {
        stream.write_all(response.body.as_bytes())?;
    }
    stream.flush()
}

struct Response {
    status: &'static str,
    kind: &'static str,
    body: String,
    has_body: bool,
    /// A browser asks its user then.
    asks_for_token: bool,
}

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Response {
    fn failure(status: &'static str) -> Self {
        Response {
            status,
            kind: TEXT,
            body: format!("{status}\n"),
            has_body: true,
            asks_for_token: false,
        }
    }

    /// No page may be framed, kept or taken for something else.
    fn head(&self) -> String {
        let (status, kind, length) = (self.status, self.kind, self.body.len());
        let asked = if self.asks_for_token {
            "WWW-Authenticate: Basic realm=\"pgclinic watch\", charset=\"UTF-8\"\r\n"
        } else {
            ""
        };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Referrer-Policy: no-referrer\r\nVary: Accept\r\n{asked}\r\n"
        )
    }
}

fn respond(request: &Request, pages: &SharedPages, access: &Access) -> Response {
    if !["GET", "HEAD"].contains(&&*request.method) {
        return Response::failure("405 Method Not Allowed");
    }
    match &access.token {
        Some(token) if !token.is_in(&request.authorization) => {
            return Response {
                asks_for_token: true,
                ..Response::failure("401 Unauthorized")
            };
        }
        // Who has the token may call this machine whatever it likes.
        Some(_) => {}
        None if request.is_for_loopback() => {}
        None => return Response::failure("421 Misdirected Request"),
    }
    let pages = pages.read().unwrap_or_else(PoisonError::into_inner);
    let (kind, body) = match request.path.as_str() {
        "/" => ("text/html; charset=utf-8", &pages.page),
        "/metrics" if request.accepts_openmetrics() => (OPENMETRICS, &pages.openmetrics),
        "/metrics" => (PROMETHEUS, &pages.prometheus),
        "/json" => ("application/json", &pages.json),
        _ => return Response::failure("404 Not Found"),
    };
    if body.is_empty() {
        return Response::failure("503 Service Unavailable");
    }
    Response {
        status: "200 OK",
        kind,
        body: body.clone(),
        has_body: request.method == "GET",
        asks_for_token: false,
    }
}
