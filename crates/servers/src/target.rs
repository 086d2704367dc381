//! A server by URL: a socket or a host, a database, and who asks.

use std::path::PathBuf;

use crate::connection_defaults::ConnectionDefaults;
use crate::server::Server;

/// One database of one server.
#[derive(Clone)]
pub struct ConnectionTarget {
    /// How the server is reached.
    pub address: Address,
    /// The database.
    pub database: String,
    /// The role.
    pub user: String,
    /// Its password, for servers that ask.
    pub password: Option<String>,
    /// Settings of every session, such as `("jit", "off")`.
    pub settings: Vec<(String, String)>,
    /// Whether the connection is encrypted.
    pub tls: Tls,
}

/// `sslmode`, and `sslrootcert` where the server's certificate is looked at. A socket is never
/// encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// `disable`.
    Never,
    /// `allow` and `prefer`: where the server can.
    Possible,
    /// `require`: always, whoever the server is.
    Always,
    /// `verify-ca` and `verify-full`: always, and only with a certificate that these authorities
    /// signed.
    Verified {
        /// Their certificates, a PEM file.
        root: PathBuf,
        /// The certificate must also carry the host's name.
        name: bool,
    },
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket in this folder.
    Socket {
        /// The folder, `host` for libpq.
        folder: PathBuf,
        /// The number in the socket's name.
        port: u16,
    },
    /// TCP.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl std::fmt::Debug for ConnectionTarget {
    /// The password is left out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("database", &self.database)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Display for ConnectionTarget {
    /// As a URL, without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, database, .. } = self;
        match &self.address {
            Address::Tcp { host, port } => write!(f, "postgres://{user}@{host}:{port}/{database}"),
            Address::Socket { folder, port } => {
                let folder = folder.display();
                write!(f, "postgres://{user}@:{port}/{database}?host={folder}")
            }
        }
    }
}

impl ConnectionTarget {
    /// Whether the server is surely on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        matches!(self.address, Address::Socket { .. })
    }

    /// A database of a server that we started, as its superuser.
    pub fn of(server: &Server, database: &str) -> Self {
        Self {
            address: Address::Socket {
                folder: server.socket_folder().to_path_buf(),
                port: 5432,
            },
            database: database.to_owned(),
            user: "postgres".to_owned(),
            password: None,
            settings: Vec::new(),
            tls: Tls::Never,
        }
    }

    /// A server by URL, as libpq writes it:
    /// `postgres://user:password@host:5432/database?host=/socket/folder`.
    pub fn from_url(url: &str) -> Result<Self, String> {
        ConnectionTarget::from_url_or(url, &ConnectionDefaults::default())
    }

    /// The same, where what the URL leaves out is known from elsewhere.
    ///
    /// # Errors
    /// As of [`ConnectionTarget::from_url`].
    pub fn from_url_or(url: &str, defaults: &ConnectionDefaults) -> Result<Self, String> {
        let rest = url
            .strip_prefix("postgres://")
            .or_else(|| url.strip_prefix("postgresql://"))
            .ok_or("a URL of a server begins with postgres://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let service = query
            .split('&')
            .find_map(|own| own.strip_prefix("service="));
        let defaults = match service {
            Some(name) => &defaults.of_service(decode(name)?)?,
            None => defaults,
        };
        let known = |own: &Option<String>| own.clone().unwrap_or_default();
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (credentials, None),
        };
        let user = or_else(decode(user)?, &known(&defaults.user));
        let user = or_else(user, "postgres");
        let (host, port) = host_and_port(place);
        let host = or_else(decode(host)?, &known(&defaults.host));
        let port = number_of_port(&or_else(port.to_owned(), &known(&defaults.port)))?;
        let database = or_else(decode(database)?, &known(&defaults.database));
        let mut target = Self {
            address: address(host, port),
            database: or_else(database, &user),
            user,
            password,
            settings: Vec::new(),
            tls: Tls::Possible,
        };
        let mut mode = known(&defaults.sslmode);
        let mut root = defaults.sslrootcert.as_ref().map(PathBuf::from);
        for word in query.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "sslmode" => mode = decode(value)?,
                "sslrootcert" => root = Some(PathBuf::from(decode(value)?)),
                _ => target.set(name, decode(value)?)?,
            }
        }
        target.tls = tls(&mode, root)?;
        Ok(target)
    }

    /// The same for a program that does not speak TLS; why not, where the URL asks for it.
    pub fn without_tls(mut self) -> Result<Self, String> {
        match self.tls {
            Tls::Always | Tls::Verified { .. } if matches!(self.address, Address::Tcp { .. }) => {
                let advice = "use a Unix socket, a tunnel or --driver pgbench";
                Err(format!(
                    "the URL asks for TLS, which is not spoken here; {advice}"
                ))
            }
            _ => {
                self.tls = Tls::Never;
                Ok(self)
            }
        }
    }

    /// The same with one more setting for every session.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    fn port(&self) -> u16 {
        match self.address {
            Address::Socket { port, .. } | Address::Tcp { port, .. } => port,
        }
    }

    fn set_port(&mut self, number: u16) {
        match &mut self.address {
            Address::Socket { port, .. } | Address::Tcp { port, .. } => *port = number,
        }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "host" => self.address = address(value, self.port()),
            "port" => self.set_port(
                value
                    .parse()
                    .map_err(|_| format!("{value:?} is not a port"))?,
            ),
            "user" => self.user = value,
            "password" => self.password = Some(value),
            "dbname" => self.database = value,
            // A service was asked for what it knows before all others.
            "application_name" | "connect_timeout" | "service" => {}
            _ => return Err(format!("the parameter {name} of the URL is not known here")),
        }
        Ok(())
    }
}

fn tls(mode: &str, root: Option<PathBuf>) -> Result<Tls, String> {
    match (mode, root) {
        ("disable", _) => Ok(Tls::Never),
        ("" | "allow" | "prefer", None) => Ok(Tls::Possible),
        // As libpq does: with a root certificate the server's is looked at.
        ("require", None) => Ok(Tls::Always),
        ("" | "allow" | "prefer" | "require" | "verify-ca", Some(root)) => {
            Ok(Tls::Verified { root, name: false })
        }
        ("verify-full", Some(root)) => Ok(Tls::Verified { root, name: true }),
        ("verify-ca" | "verify-full", None) => {
            Err(format!("sslmode={mode} needs sslrootcert=FILE beside it"))
        }
        _ => Err(format!("sslmode={mode} is not known")),
    }
}

fn address(host: String, port: u16) -> Address {
    if host.is_empty() || host.starts_with('/') {
        let folder = or_else(host, "/var/run/postgresql");
        return Address::Socket {
            folder: folder.into(),
            port,
        };
    }
    Address::Tcp { host, port }
}

fn or_else(text: String, fallback: &str) -> String {
    if text.is_empty() {
        fallback.to_owned()
    } else {
        text
    }
}

/// `[::1]:5433`, `db:5433`, `db` or nothing.
fn host_and_port(place: &str) -> (&str, &str) {
    let bracketed = place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    match bracketed {
        Some((host, after)) => (host, after.strip_prefix(':').unwrap_or("")),
        None => place.rsplit_once(':').unwrap_or((place, "")),
    }
}

fn number_of_port(text: &str) -> Result<u16, String> {
    let text = if text.is_empty() { "5432" } else { text };
    text.parse().map_err(|_| format!("{text:?} is not a port"))
}

/// Undoes `%2F`.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("%{part} in the URL is no encoded character"))?);
        bytes.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| "the URL is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_libpq_reads_them() {
        let target =
            ConnectionTarget::from_url("postgres://ann:p%40ss@[::1]:5433/shop").expect("a target");
        let tcp = Address::Tcp {
            host: "::1".into(),
            port: 5433,
        };
        assert_eq!((target.address, target.database.as_str()), (tcp, "shop"));
        assert_eq!(target.password.as_deref(), Some("p@ss"));

        let socket =
            ConnectionTarget::from_url("postgresql:///?host=%2Ftmp&user=ann").expect("a target");
        let folder = |port| Address::Socket {
            folder: "/tmp".into(),
            port,
        };
        assert_eq!(socket.address, folder(5432));
        for url in ["postgres:///?port=7&host=/tmp", "postgres://:7/?host=/tmp"] {
            let socket = ConnectionTarget::from_url(url).expect("a target");
            assert_eq!(socket.address, folder(7));
        }
    }

    #[test]
    fn a_password_is_never_shown_and_tls_is_refused_aloud() {
        let target = ConnectionTarget::from_url("postgres://ann:secret@db/shop").expect("a target");
        assert!(!format!("{target:?} {target}").contains("secret"));
        let target =
            ConnectionTarget::from_url("postgres://db/shop?sslmode=require").expect("a target");
        assert_eq!(target.tls, Tls::Always);
        let refused = target.without_tls().unwrap_err();
        assert!(refused.contains("TLS"), "{refused}");
        let refused =
            ConnectionTarget::from_url("postgres://db/shop?sslmode=verify-full").unwrap_err();
        assert!(refused.contains("sslrootcert"), "{refused}");
    }
}
