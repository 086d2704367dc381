//! What is known of a server before its signs are read: version, rights, settings.

use std::collections::BTreeMap;

use pgclinic_servers::{Session, SqlError};

/// One setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// As `SHOW` prints it.
    pub value: String,
    /// In the setting's own unit, as `pg_settings` has it.
    pub setting: String,
    /// `8kB`, `ms` and the like.
    pub unit: Option<String>,
    /// What an enumeration may be.
    pub choices: Vec<String>,
}

/// A server.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    /// 13 to 18, or newer.
    pub major: u16,
    /// `18.6`.
    pub version: String,
    /// It replays the WAL of another server.
    pub is_standby: bool,
    /// When it started, in seconds since 1970 by its own clock.
    pub started: f64,
    /// Now, by its own clock.
    pub clock: f64,
    /// The role has the rights of `pg_read_all_stats`.
    pub may_read_statistics: bool,
    /// Where the session is.
    pub database: String,
    /// Of the cluster; `None` where the role may not know.
    pub system_identifier: Option<String>,
    /// The settings that signs and advice ask for; those that the role may not see are absent.
    pub settings: BTreeMap<String, Setting>,
    /// The server is surely on this machine.
    pub is_local: bool,
    /// A scrub of its files was asked for.
    pub is_scrubbed: bool,
    /// Its files are measured.
    pub is_measured: bool,
}

const IDENTITY: &str = "SELECT current_setting('server_version_num')::int / 10000, \
    split_part(current_setting('server_version'), ' ', 1), pg_is_in_recovery(), \
    extract(epoch FROM pg_postmaster_start_time()), extract(epoch FROM clock_timestamp()), \
    pg_has_role('pg_read_all_stats', 'USAGE') OR current_setting('is_superuser') = 'on', \
    current_database()";

const SETTINGS: &str = "SELECT name, current_setting(name, true), setting, unit, array_to_string(enumvals, ',') \
    FROM pg_settings \
    WHERE vartype <> 'string' OR name IN ('data_directory', 'lc_messages', 'log_destination')";

impl ServerFacts {
    /// Asks.
    pub(crate) fn read(session: &mut Session, is_local: bool) -> Result<Self, SqlError> {
        let row = session.query(IDENTITY)?.pop().unwrap_or_default();
        let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let number = |at: usize| text(at).parse().unwrap_or(0.0);
        let major = text(0).parse().unwrap_or(0);
        // A newer one is tried: what it refuses is unknown, with its own words.
        if major < *pgclinic_servers::MAJORS.start() {
            let version = text(1);
            return Err(SqlError::Protocol(format!(
                "PostgreSQL {version} is older than 13"
            )));
        }
        let mut facts = Self {
            major,
            version: text(1),
            is_standby: text(2) == "t",
            started: number(3),
            clock: number(4),
            may_read_statistics: text(5) == "t",
            database: text(6),
            is_local,
            ..Self::default()
        };
        for row in session.query(SETTINGS)? {
            let mut fields = row.into_iter();
            let mut next = || fields.next().flatten();
            let Some(name) = next() else { continue };
            let setting = Setting {
                value: next().unwrap_or_default(),
                setting: next().unwrap_or_default(),
                unit: next(),
                choices: next().map(choices).unwrap_or_default(),
            };
            facts.settings.insert(name, setting);
        }
        let identifier = "SELECT system_identifier FROM pg_control_system()";
        // A role without the right to ask is no reason to ask for nothing else.
        facts.system_identifier = match session.query_value(identifier) {
            Err(error) if session.is_over() => return Err(error),
            given => given.unwrap_or_default(),
        };
        Ok(facts)
    }

    /// A setting as `SHOW` prints it.
    pub(crate) fn shown(&self, name: &str) -> Option<&str> {
        Some(self.settings.get(name)?.value.as_str())
    }

    /// A setting as a number in its own unit.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.settings.get(name)?.setting.parse().ok()
    }

    /// A setting of memory or space in bytes.
    pub(crate) fn bytes(&self, name: &str) -> Option<f64> {
        let own = self.settings.get(name)?;
        let unit = match own.unit.as_deref() {
            Some("B") | None => 1.0,
            Some("kB") => 1024.0,
            Some("MB") => 1_048_576.0,
            Some("8kB") => 8192.0,
            Some("16kB") => 16384.0,
            Some("32kB") => 32768.0,
            Some("4kB") => 4096.0,
            Some("2kB") => 2048.0,
            Some("1kB") => 1024.0,
            Some(_) => return None,
        };
        Some(own.setting.parse::<f64>().ok()? * unit)
    }
}

fn choices(text: String) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}
