//! Logging in over TCP: every kind of password, with TLS and without, and what is said when it
//! fails.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pgclinic_servers::{
    ConnectOptions, ConnectionTarget, InitOptions, RunAs, Scratch, Server, Session, SqlError,
    StartOptions, StopMode, Wanted, find, initdb,
};
use rcgen::{CertificateParams, KeyPair};

const ROLES: &str = "SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'p:w'; \
     CREATE ROLE plain LOGIN PASSWORD 'p:w'; CREATE ROLE tls LOGIN PASSWORD 'p:w'; \
     SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'p:w'";
const RULES: &str = "\
local all all trust
hostssl all tls 127.0.0.1/32 scram-sha-256
host all scram 127.0.0.1/32 scram-sha-256
host all md5 127.0.0.1/32 md5
host all plain 127.0.0.1/32 password
host all postgres 127.0.0.1/32 trust
";

/// A certificate for `localhost` that signs itself, in the data directory.
fn write_certificate(pgdata: &Path, like: &Path) {
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let certificate = CertificateParams::new(names).expect("names");
    let certificate = certificate.self_signed(&key).expect("a certificate");
    let owner = std::fs::metadata(like).expect("a file");
    for (name, text) in [
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ] {
        let path = pgdata.join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a mode");
        let (user, group) = {
            use std::os::unix::fs::MetadataExt;
            (owner.uid(), owner.gid())
        };
        std::os::unix::fs::chown(&path, Some(user), Some(group)).expect("an owner");
    }
}

fn login(url: &str) -> Result<Session, SqlError> {
    let target = ConnectionTarget::from_url(url).expect("a URL");
    Session::open(&target, &ConnectOptions::default())
}

fn is_encrypted(session: &mut Session) -> bool {
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    session.query_value(sql).expect("an answer").as_deref() == Some("t")
}

#[test]
fn every_kind_of_password_with_tls_and_without() {
    let run_as = RunAs::new(None).expect("a user");
    let wanted = Wanted {
        major: Some(15),
        ..Wanted::default()
    };
    let installation = find(&wanted, &mut |_| {}).expect("a server");
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let pgdata = scratch.folder("data").expect("a directory");
    initdb(&installation, &run_as, &pgdata, &InitOptions::default()).expect("a cluster");
    let start = |options: &StartOptions| {
        Server::start(&installation, &run_as, &pgdata, options).expect("a start")
    };
    let mut server = start(&StartOptions::default());
    let mut session = server.connect("postgres").expect("a session");
    session.execute(ROLES).expect("the roles");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");

    std::fs::write(pgdata.join("pg_hba.conf"), RULES).expect("the rules");
    write_certificate(&pgdata, &pgdata.join("PG_VERSION"));
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let options = StartOptions::default()
        .with("listen_addresses", "127.0.0.1")
        .with("port", &port.to_string())
        .with("ssl", "on");
    let _server = start(&options);

    for role in ["scram", "md5", "plain", "tls"] {
        let mut session = login(&format!(
            "postgres://{role}:p%3Aw@localhost:{port}/postgres"
        ))
        .unwrap_or_else(|error| panic!("{role}: {error}"));
        assert!(
            is_encrypted(&mut session),
            "{role}: TLS where the server can"
        );
        let wrong = login(&format!(
            "postgres://{role}:wrong@localhost:{port}/postgres"
        ));
        let wrong = wrong.map(drop).expect_err("a wrong password").to_string();
        assert!(wrong.contains("password authentication failed"), "{wrong}");
        let none = login(&format!("postgres://{role}@localhost:{port}/postgres"));
        let none = none.map(drop).expect_err("no password").to_string();
        assert!(none.contains("give PGPASSWORD"), "{none}");
    }
    let url = format!("postgres://postgres@localhost:{port}/postgres");
    let mut plain = login(&format!("{url}?sslmode=disable")).expect("a session");
    assert!(!is_encrypted(&mut plain));
    let root = pgdata.join("server.crt");
    let verified = format!("{url}?sslmode=verify-full&sslrootcert={}", root.display());
    let mut verified = login(&verified).expect("a certificate of localhost");
    assert!(is_encrypted(&mut verified));
    let by_number = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let full = format!(
        "{by_number}?sslmode=verify-full&sslrootcert={}",
        root.display()
    );
    let refused = login(&full)
        .map(drop)
        .expect_err("another name")
        .to_string();
    assert!(refused.contains("certificate"), "{refused}");
    let authority = format!(
        "{by_number}?sslmode=verify-ca&sslrootcert={}",
        root.display()
    );
    login(&authority).expect("the name does not count");
}
