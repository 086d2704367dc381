//! Alerts that `watch` judges itself, and who hears of them: commands and web servers, with TLS and
//! with pseudonyms.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use pgclinic_servers::{Checksums, Server, StartOptions};
use pgclinic_testkit::{TempCopy, started};

use crate::common::{pgclinic, skipped, text, url};
use crate::watch_background::{PATIENCE, certificate, damage};

/// A server that has read a damaged page a moment ago.
fn alarming() -> (TempCopy, Server) {
    let (copy, server) = started(15, Checksums::On, &StartOptions::default());
    damage(&server, &copy.pgdata);
    let mut session = server.connect("clinic").expect("a session");
    let _damaged = session.query("SELECT * FROM public.docs");
    (copy, server)
}

#[test]
fn alerts_reach_a_command_and_a_web_server() {
    let (_copy, server) = alarming();
    let home = tempfile::tempdir().expect("a directory");
    let heard = home.path().join("heard");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let hook = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let posted = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("a line");
            if let Some(own) = line.strip_prefix("Content-Length: ") {
                length = own.trim().parse().expect("a number");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .expect("an answer");
        String::from_utf8(body).expect("UTF-8")
    });
    let command = format!("cat >> '{}'", heard.display());
    let url = url(&server, "postgres");
    let words = [
        "watch",
        &url,
        "--samples",
        "3",
        "--interval",
        "1",
        "--alert-command",
        &command,
    ];
    let ran = pgclinic(&[&words[..], &["--webhook", &hook, "--format", "json"]].concat()).exits(1);
    assert_eq!(ran.err, "");
    let heard = std::fs::read_to_string(heard).expect("messages");
    let recent: Vec<_> = heard
        .lines()
        .filter(|line| line.contains("PgclinicChecksumFailedRecently"))
        .collect();
    assert_eq!(
        recent.len(),
        1,
        "once, however often it is sampled: {heard}"
    );
    let message: serde_json::Value = serde_json::from_str(recent[0]).expect("JSON");
    assert_eq!(message["schema"], "pgclinic.alert/1");
    assert_eq!(message["status"], "firing");
    assert_eq!(message["severity"], "critical");
    assert_eq!(message["labels"]["database"], "clinic");
    assert_eq!(
        posted.join().expect("a body"),
        heard.lines().next().expect("a line")
    );
}

/// One POST over TLS is answered, and its body printed.
const OVER_TLS: &str = r#"
import http.server, socketserver, ssl, sys
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(204)
        self.end_headers()
        print(body.decode(), flush=True)
    def log_message(self, *words):
        pass
class Server(http.server.HTTPServer):
    # Without a question to a name server, which may not be there.
    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
server = Server(('127.0.0.1', 0), Hook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// Ended on drop.
struct Hook(Child);

impl Drop for Hook {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

#[test]
fn a_webhook_over_tls_hears_of_alerts_with_pseudonyms() {
    let home = tempfile::tempdir().expect("a directory");
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| home.path().join(name));
    if !certificate(text(&cert), text(&key)) {
        return skipped("no openssl to make a certificate with");
    }
    let mut python = Command::new("python3");
    python.args(["-c", OVER_TLS, text(&cert), text(&key)]);
    let Ok(mut child) = python.stdout(Stdio::piped()).spawn() else {
        return skipped("no Python to be a web server");
    };
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    let _ended_at_last = Hook(child);
    let next = |what: &str| receiver.recv_timeout(PATIENCE).expect(what);
    let port = next("a port");
    let (_copy, server) = alarming();
    let url = url(&server, "postgres");
    let hook = format!("https://localhost:{port}/hook");
    let words = ["watch", &url, "--samples", "2", "--interval", "1"];
    let to = ["--webhook", &hook, "--webhook-ca", text(&cert), "--redact"];
    let ran = pgclinic(&[&words[..], &to, &["--format", "json"]].concat()).exits(1);
    assert_eq!(ran.err, "");
    let message = next("a message");
    let message: serde_json::Value = serde_json::from_str(&message).expect("JSON");
    assert_eq!(message["severity"], "critical", "{message}");
    let whole = message.to_string();
    let folder = server.socket_folder().display().to_string();
    assert!(
        !whole.contains(&folder) && !whole.contains("clinic\""),
        "{whole}"
    );
    // The pseudonym of the server is that of the document.
    let server_shown = message["labels"]["server"].as_str().expect("a server");
    assert!(
        ran.out.contains(server_shown),
        "{server_shown}: {}",
        ran.out
    );
}
