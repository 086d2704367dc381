//! The metrics endpoint: `/metrics` and `/`, over HTTP/1.1; beyond loopback encrypted, and only for
//! whoever has the token.
//!
//! A small server of our own on `std::net` (`docs/adr/2026-11-27-watch.md`): pages that are made
//! when somebody asks, once an interval at most (`pages.rs`). Requests are read with a limit on
//! their length, their time and their number; there is no body, no path to a file, nothing to
//! write.

mod access;
mod connections;
mod pages;
mod request;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use access::{Access, Token, address};
use connections::Connections;
use pages::PageMaker;
pub use pages::{PageKind, Pages};
use request::{Request, read_request};

use crate::bounded::BoundedStream;

/// For reading a request, all of it.
const PATIENCE: Duration = Duration::from_secs(5);
/// For an answer to be taken, all of it: a page of many servers over a slow line.
const PATIENCE_OF_ANSWER: Duration = Duration::from_secs(30);
/// Between two looks at whether the run is over, and at whether there is room.
const STEP: Duration = Duration::from_millis(50);
/// A second, after which a connection is closed unheard.
const WAITS_FOR_ROOM: u32 = 20;

/// The pages as they are now; none before the first sample.
pub type SharedPages = Arc<RwLock<Option<Arc<Pages>>>>;

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
    let connections = Arc::new(Connections::default());
    let served = Served {
        pages: Arc::clone(pages),
        maker: PageMaker::start()?,
        access: access.clone(),
    };
    while !is_over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => accept(stream, &served, &connections),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(STEP),
            // A client that went away, or too many open files: the next one may have luck.
            Err(_) => std::thread::sleep(STEP),
        }
    }
    Ok(())
}

/// Says that the run is over as it goes out of scope, also by a panic, so that whoever serves
/// beside it ends too.
pub struct OverOnDrop<'a>(pub &'a AtomicBool);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Served {
    pages: SharedPages,
    maker: PageMaker,
    access: Access,
}

fn accept(stream: TcpStream, served: &Served, connections: &Arc<Connections>) {
    // Those that were ended to make room take a moment to go.
    let waits = 0..WAITS_FOR_ROOM;
    let number = waits.into_iter().find_map(|_| {
        let number = connections.begin(&stream);
        if number.is_none() {
            std::thread::sleep(STEP);
        }
        number
    });
    let Some(number) = number else {
        return;
    };
    let (served, own) = (served.clone(), Arc::clone(connections));
    let thread = std::thread::Builder::new().name("http".into());
    let begun = thread.spawn(move || {
        let _gone = answer(stream, &served, &|| own.answer(number));
        own.end(number);
    });
    if begun.is_err() {
        connections.end(number);
    }
}

fn answer(stream: TcpStream, served: &Served, is_read: &dyn Fn()) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let stream = BoundedStream::new(stream, PATIENCE);
    match &served.access.tls {
        Some(tls) => {
            let mut stream = tls.accept(stream)?;
            let response = response(&mut stream, served, is_read);
            stream.sock.prolong(PATIENCE_OF_ANSWER);
            response.write(&mut stream)?;
            stream.conn.send_close_notify();
            stream.flush()
        }
        None => {
            let mut stream = stream;
            let response = response(&mut stream, served, is_read);
            stream.prolong(PATIENCE_OF_ANSWER);
            response.write(&mut stream)
        }
    }
}

/// The answer to one request.
fn response(stream: &mut impl Read, served: &Served, is_read: &dyn Fn()) -> Response {
    let request = read_request(stream);
    is_read();
    match request {
        Ok(request) => respond(&request, served),
        Err(status) => Response::failure(status),
    }
}

struct Response {
    status: &'static str,
    kind: &'static str,
    body: Arc<str>,
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
            body: format!("{status}\n").into(),
            has_body: true,
            asks_for_token: false,
        }
    }

    fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        stream.write_all(self.head().as_bytes())?;
        if self.has_body {
            stream.write_all(self.body.as_bytes())?;
        }
        stream.flush()
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

fn respond(request: &Request, served: &Served) -> Response {
    if !["GET", "HEAD"].contains(&&*request.method) {
        return Response::failure("405 Method Not Allowed");
    }
    match &served.access.token {
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
    let (kind, page) = match request.path.as_str() {
        "/" => ("text/html; charset=utf-8", PageKind::Overview),
        "/metrics" if request.accepts_openmetrics() => (OPENMETRICS, PageKind::OpenMetrics),
        "/metrics" => (PROMETHEUS, PageKind::Prometheus),
        "/json" => ("application/json", PageKind::Json),
        _ => return Response::failure("404 Not Found"),
    };
    // The next sample does not wait until a page is made.
    let now = served
        .pages
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let Some(now) = now else {
        return Response::failure("503 Service Unavailable");
    };
    let Some(body) = served.maker.page(now, page) else {
        return Response::failure("500 Internal Server Error");
    };
    Response {
        status: "200 OK",
        kind,
        body,
        has_body: request.method == "GET",
        asks_for_token: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three times as many clients as are served at once, which send half a request each.
    #[test]
    fn clients_that_send_nothing_keep_nobody_out() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let pages = SharedPages::default();
        let own = Pages::new(|_| Some("{}".to_owned()));
        *pages.write().expect("pages") = Some(Arc::new(own));
        let (access, is_over) = (Access::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &pages, &access, &is_over));
            let idle: Vec<TcpStream> = (0..48)
                .map(|_| {
                    let mut stream = TcpStream::connect(address).expect("a connection");
                    stream.write_all(b"GET /json HT").expect("half a request");
                    stream
                })
                .collect();
            let _over = OverOnDrop(&is_over);
            let mut stream = TcpStream::connect(address).expect("a connection");
            let limit = Some(Duration::from_secs(60));
            stream.set_read_timeout(limit).expect("a limit");
            let request = b"GET /json HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(request).expect("a request");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            drop(idle);
        });
    }
}
