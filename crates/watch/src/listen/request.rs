//! A request of HTTP/1.1 without a body (RFC 9112), as far as a scraper and a browser need it.

use std::io::Read;
use std::net::IpAddr;

/// Request line and headers together.
const BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
/// Of a path; ours are short.
const PATH_MAX: usize = 256;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without its query.
    pub(super) path: String,
    accept: String,
    host: Option<String>,
    pub(super) authorization: String,
}

/// Reads one, or gives the status that says why not. The stream knows how long it may take.
pub(super) fn read_request(stream: &mut impl Read) -> Result<Request, &'static str> {
    let mut bytes = Vec::new();
    let mut window = [0; 1024];
    loop {
        if bytes.len() > BYTES_MAX {
            return Err("431 Request Header Fields Too Large");
        }
        if let Some(length) = head_length(&bytes) {
            bytes.truncate(length);
            return parse(&bytes);
        }
        match stream.read(&mut window) {
            Ok(0) => return Err("400 Bad Request"),
            Ok(read) => bytes.extend_from_slice(window.get(..read).unwrap_or_default()),
            Err(_) => return Err("408 Request Timeout"),
        }
    }
}

/// Up to the empty line.
fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n")
}

fn parse(head: &[u8]) -> Result<Request, &'static str> {
    const BAD: &str = "400 Bad Request";
    let text = std::str::from_utf8(head).map_err(|_| BAD)?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    if !version.starts_with("HTTP/1.") {
        return Err("505 HTTP Version Not Supported");
    }
    if target.len() > PATH_MAX {
        return Err("414 URI Too Long");
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        accept: String::new(),
        host: None,
        authorization: String::new(),
    };
    for (number, line) in lines.enumerate() {
        if number >= HEADERS_MAX {
            return Err("431 Request Header Fields Too Large");
        }
        let (name, value) = line.split_once(':').ok_or(BAD)?;
        match name.to_ascii_lowercase().as_str() {
            "accept" => request.accept = value.to_ascii_lowercase(),
            "authorization" => value.trim().clone_into(&mut request.authorization),
            "host" => request.host = Some(value.trim().to_owned()),
            "content-length" if value.trim() != "0" => return Err("413 Content Too Large"),
            "transfer-encoding" => return Err("413 Content Too Large"),
            _ => {}
        }
    }
    Ok(request)
}

impl Request {
    /// A scraper says so, and how much it likes it; what is liked with `q=0` is refused.
    pub(super) fn accepts_openmetrics(&self) -> bool {
        self.accept.split(',').any(|offer| {
            let mut parts = offer.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            kind == "application/openmetrics-text"
                && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
        })
    }

    /// A page of somebody else that gives its own name our address reads nothing here.
    pub(super) fn is_for_loopback(&self) -> bool {
        let Some(host) = &self.host else {
            return true;
        };
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => name,
            None => host
                .rsplit_once(':')
                .map_or(host.as_str(), |(name, _)| name),
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Request, &'static str> {
        read_request(&mut text.as_bytes())
    }

    #[test]
    fn a_scrapers_wish_is_heard() {
        let own = request("GET /metrics?x=1 HTTP/1.1\r\nHost: localhost:9187\r\nAccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n")
            .expect("a request");
        assert_eq!(
            (own.method.as_str(), own.path.as_str()),
            ("GET", "/metrics")
        );
        assert!(own.accepts_openmetrics() && own.is_for_loopback());
        let own = request("GET / HTTP/1.0\r\nAccept: text/html\r\n\r\n").expect("a request");
        assert!(!own.accepts_openmetrics() && own.is_for_loopback());
    }

    #[test]
    fn a_name_of_somebody_else_is_no_loopback() {
        let of = |host: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            request(&text).expect("a request").is_for_loopback()
        };
        assert!(of("127.0.0.1:9187") && of("[::1]:9187") && of("LOCALHOST"));
        assert!(!of("evil.example:9187") && !of("127.0.0.1.evil.example"));
    }

    #[test]
    fn what_is_too_long_or_no_request_is_refused() {
        assert!(request("").is_err() && request("GET /\r\n\r\n").is_err());
        let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(9000));
        assert!(request(&long).expect_err("too long").starts_with("431"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(80));
        assert!(request(&many).expect_err("too many").starts_with("431"));
        let path = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(300));
        assert!(request(&path).expect_err("a long path").starts_with("414"));
        let body = request("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
        assert!(body.expect_err("a body").starts_with("413"));
    }
}
