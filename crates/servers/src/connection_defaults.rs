//! What libpq's programs take where nothing else names a server: `PGHOST` and its kin, and the
//! section of a service file.
//!
//! Truth: *Environment Variables* and *The Connection Service File* in the manual of libpq.

use std::path::PathBuf;

/// Parts of a connection that a URL may leave out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConnectionDefaults {
    /// `PGHOST`, or the directory of a socket.
    pub host: Option<String>,
    /// `PGPORT`.
    pub port: Option<String>,
    /// `PGUSER`.
    pub user: Option<String>,
    /// `PGDATABASE`.
    pub database: Option<String>,
    /// `PGSSLMODE`.
    pub sslmode: Option<String>,
    /// `PGSSLROOTCERT`.
    pub sslrootcert: Option<String>,
    /// `PGSERVICE`.
    pub service: Option<String>,
    /// The files in which the section of a service may stand, in this order: `PGSERVICEFILE`, else
    /// `~/.pg_service.conf`, then that of the system.
    pub service_files: Vec<PathBuf>,
}

impl ConnectionDefaults {
    /// With what the service says, which counts more than the environment.
    ///
    /// # Errors
    /// No file has the service, or it says what is no parameter.
    pub fn resolved(&self) -> Result<Self, String> {
        let Some(name) = &self.service else {
            return Ok(self.clone());
        };
        let texts = self
            .service_files
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok());
        for text in texts {
            if let Some(lines) = section(&text, name) {
                return self.with(&lines);
            }
        }
        let files = self.service_files.iter();
        let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
        Err(match files.join(" or ") {
            places if places.is_empty() => {
                format!("service {name} is unknown: services are not read here")
            }
            places => format!("no service {name} stands in {places}"),
        })
    }

    /// The same for a URL that names a service.
    ///
    /// # Errors
    /// As of [`ConnectionDefaults::resolved`].
    pub(crate) fn of_service(&self, name: String) -> Result<Self, String> {
        let service = Some(name);
        ConnectionDefaults {
            service,
            ..self.clone()
        }
        .resolved()
    }

    fn with(&self, lines: &[(&str, &str)]) -> Result<Self, String> {
        let mut all = ConnectionDefaults {
            service: None,
            ..self.clone()
        };
        for (name, value) in lines {
            let part = match *name {
                "host" | "hostaddr" => &mut all.host,
                "port" => &mut all.port,
                "user" => &mut all.user,
                "dbname" => &mut all.database,
                "sslmode" => &mut all.sslmode,
                "sslrootcert" => &mut all.sslrootcert,
                // Passwords come from where only their owner reads.
                _ => continue,
            };
            *part = Some((*value).to_owned());
        }
        Ok(all)
    }
}

/// The lines of a section, as names and values; nothing where the file does not have it.
fn section<'t>(text: &'t str, name: &str) -> Option<Vec<(&'t str, &'t str)>> {
    let mut lines = text.lines().map(str::trim);
    let head = format!("[{name}]");
    lines.find(|line| *line == head)?;
    let own = lines.take_while(|line| !line.starts_with('['));
    let own = own.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = own.filter_map(|line| line.split_once('='));
    Some(
        pairs
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Address, ConnectionTarget};

    #[test]
    fn a_url_counts_more_than_the_service_and_that_more_than_the_environment() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("pg_service.conf");
        let text = "# ours\n[other]\nhost=elsewhere\n\n[main]\nhost = db.example\nport=6000\n[last]\nuser=x\n";
        std::fs::write(&file, text).expect("a file");
        let environment = ConnectionDefaults {
            host: Some("/run/env".into()),
            port: Some("5433".into()),
            user: Some("clerk".into()),
            database: Some("shop".into()),
            ..ConnectionDefaults::default()
        };
        let of = |url: &str, defaults: &ConnectionDefaults| {
            ConnectionTarget::from_url_or(url, defaults).expect("a target")
        };
        let own = of("postgres://", &environment);
        let socket = Address::Socket {
            folder: "/run/env".into(),
            port: 5433,
        };
        assert_eq!(
            (own.address, &*own.user, &*own.database),
            (socket, "clerk", "shop")
        );

        let service = ConnectionDefaults {
            service: Some("main".into()),
            service_files: vec![folder.path().join("none"), file.clone()],
            ..environment.clone()
        };
        let own = of("postgres:///stock", &service.resolved().expect("a service"));
        let tcp = |port| Address::Tcp {
            host: "db.example".into(),
            port,
        };
        assert_eq!(
            (own.address, &*own.user, &*own.database),
            (tcp(6000), "clerk", "stock")
        );
        let own = of(
            "postgres://boss@:7000/",
            &service.resolved().expect("a service"),
        );
        assert_eq!((own.address, &*own.user), (tcp(7000), "boss"));

        let files = ConnectionDefaults {
            service_files: vec![file.clone()],
            ..environment.clone()
        };
        let own = of("postgres://boss@/stock?service=main", &files);
        assert_eq!(
            (own.address, &*own.user, &*own.database),
            (tcp(6000), "boss", "stock")
        );

        let missing = ConnectionDefaults {
            service: Some("nosuch".into()),
            service_files: vec![file],
            ..environment
        };
        let why = missing.resolved().expect_err("no service");
        assert!(why.contains("nosuch"), "{why}");
    }
}
