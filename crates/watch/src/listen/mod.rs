//! The metrics endpoint: `/metrics` and `/`, over HTTP/1.1 on loopback.
//!
//! A small server of our own on `std::net` (`docs/adr/2026-11-27-watch.md`): two pages that are
//! made once an interval, whoever asks. Requests are read with a limit on their length, their time
//! and their number; there is no body, no path to a file, nothing to write.

mod request;

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

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

/// The address, if it may be listened on.
///
/// # Errors
/// It is not on loopback: the endpoint speaks no TLS, so that nobody else may reach it.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| format!("{text:?} is no address; write 127.0.0.1:9187 or [::1]:9187"))?;
    let ip = match address.ip() {
        IpAddr::V6(own) => own.to_ipv4_mapped().map_or(IpAddr::V6(own), IpAddr::V4),
        own => own,
    };
    if ip.is_loopback() {
        return Ok(address);
    }
    Err(format!(
        "{address} can be reached from other machines, and the endpoint has neither TLS nor passwords: listen on 127.0.0.1, and put a \
         web server with both in front of it"
    ))
}

/// Serves until the run is over. Blocks.
///
/// # Errors
/// The listener failed.
pub fn serve(listener: &TcpListener, pages: &SharedPages, is_over: &AtomicBool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let busy = Arc::new(AtomicUsize::new(0));
    while !is_over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => accept(stream, pages, &busy),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(STEP),
            // A client that went away, or too many open files: the next one may have luck.
            Err(_) => std::thread::sleep(STEP),
        }
    }
    Ok(())
}

fn accept(stream: TcpStream, pages: &SharedPages, busy: &Arc<AtomicUsize>) {
    if busy.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
        busy.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (pages, own) = (Arc::clone(pages), Arc::clone(busy));
    let thread = std::thread::Builder::new().name("http".into());
    let begun = thread.spawn(move || {
        let _gone = answer(stream, &pages);
        own.fetch_sub(1, Ordering::SeqCst);
    });
    if begun.is_err() {
        busy.fetch_sub(1, Ordering::SeqCst);
    }
}

fn answer(mut stream: TcpStream, pages: &SharedPages) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let response = match read_request(&mut stream, PATIENCE) {
        Ok(request) => respond(&request, pages),
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
        }
    }

    /// No page may be framed, kept or taken for something else.
    fn head(&self) -> String {
        let (status, kind, length) = (self.status, self.kind, self.body.len());
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Referrer-Policy: no-referrer\r\nVary: Accept\r\n\r\n"
        )
    }
}

fn respond(request: &Request, pages: &SharedPages) -> Response {
    if !["GET", "HEAD"].contains(&&*request.method) {
        return Response::failure("405 Method Not Allowed");
    }
    if !request.is_for_loopback() {
        return Response::failure("421 Misdirected Request");
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_listened_on() {
        for address in [
            "127.0.0.1:9187",
            "[::1]:9187",
            "127.8.8.8:0",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(loopback(address).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:9187", "[::]:9187", "192.0.2.1:80"] {
            let refused = loopback(address).expect_err(address);
            assert!(refused.contains("TLS"), "{refused}");
        }
        assert!(loopback("localhost:9187").is_err() && loopback("9187").is_err());
    }
}
