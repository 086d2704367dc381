//! Runs on a server that is already there, given by its URL: in schemas of our own, nothing
//! restarted.
//!
//! ```text
//! --url ─► may this experiment? (ByUrl) ─► one laboratory a database (advisory lock) ─► schema pgclinic_lab_N for each base
//!                                                                                        └ dropped at the end, or at the next start
//! ```
//!
//! A setting that only a restart could change skips the run; other things that an experiment would
//! like to have quiet are noted as overlaps.

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_servers::{ConnectOptions, ConnectionTarget, Installation, Session, SqlError};

use crate::asking::number;
use crate::cell::Arm;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::need::Features;

/// Whether an experiment may run on a server that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByUrl {
    /// It may not, with the reason: `it restarts the server`.
    Never(&'static str),
    /// It keeps to a schema of its own, which is dropped at the end.
    InASchema,
    /// It does more than that, as said here, and runs only when the person says the word.
    WithTheWord(&'static str),
}

/// The word, as it is typed.
pub const WORD: &str = "--this-is-not-production";

/// A server that is not ours.
#[derive(Debug, Clone)]
pub struct GivenServer {
    /// How it is reached.
    pub target: ConnectionTarget,
    /// Whether the person said that it may suffer.
    pub is_not_production: bool,
}

/// Begins the names of our schemas; the bare name holds extensions that were missing.
const SCHEMA: &str = "pgclinic_lab";

/// Tells a schema that we made from one of somebody else.
const MARK: &str = "made by pgclinic lab; it is dropped at the end of a run";

/// The key of the advisory lock that one laboratory holds: `pglab` in ASCII.
const LOCK: u64 = 0x70_67_6c_61_62;

/// Extensions that experiments use.
const EXTENSIONS: [&str; 2] = ["pg_prewarm", "pgstattuple"];

/// A statement of an experiment may take a day.
const WALL_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Refuses an experiment that may not run there.
pub(crate) fn check(experiment: &dyn Experiment, given: &GivenServer) -> Result<()> {
    let name = experiment.name();
    match experiment.by_url() {
        ByUrl::InASchema => Ok(()),
        ByUrl::WithTheWord(_) if given.is_not_production => Ok(()),
        ByUrl::WithTheWord(why) => Err(Error::Refused(format!(
            "{name} on an existing server: {why}. Say {WORD} if that server may suffer"
        ))),
        ByUrl::Never(why) => Err(Error::Refused(format!(
            "{name} does not run on an existing server: {why}. Without --url it runs on a server of its own"
        ))),
    }
}

/// A setting of the server as it stands, and who may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    value: String,
    in_a_session: bool,
}

/// The open server, for as long as the laboratory runs.
#[derive(Debug)]
pub(crate) struct ExternalServer {
    target: ConnectionTarget,
    /// Holds the lock.
    keeper: Session,
    pub(crate) features: Features,
    settings: BTreeMap<String, Setting>,
    /// Where extensions are.
    path: Vec<String>,
    /// Schemas of shared bases, by the base's key.
    shared: BTreeMap<String, String>,
    made: u32,
}

fn failed(what: &'static str) -> impl FnOnce(SqlError) -> Error {
    Error::sql(what)
}

impl ExternalServer {
    /// Connects, takes the lock, and drops what killed laboratories left in this database.
    pub(crate) fn open(target: &ConnectionTarget) -> Result<Self> {
        let mut keeper = connect(target, &target.database, &[])?;
        let taken = keeper
            .query_value(&format!("SELECT pg_try_advisory_lock({LOCK})"))
            .map_err(failed("taking the laboratory's lock"))?;
        if taken.as_deref() != Some("t") {
            return Err(Error::Refused(format!(
                "another laboratory works in {target}: wait for it"
            )));
        }
        let version = keeper
            .query_value("SELECT split_part(current_setting('server_version'), ' ', 1)")
            .map_err(failed("asking for the version"))?;
        let version = version.unwrap_or_default();
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        let major = major.filter(|major| pgclinic_servers::MAJORS.contains(major));
        let major = major.ok_or_else(|| {
            Error::Refused(format!("PostgreSQL {version} is not one of 13 to 18"))
        })?;
        let installation = installation(major, &version);
        let features = Features::probe(&installation, &mut keeper)?;
        let settings = settings(&mut keeper)?;
        let mut given = Self {
            target: target.clone(),
            keeper,
            features,
            settings,
            path: Vec::new(),
            shared: BTreeMap::new(),
            made: 0,
        };
        given.drop_ours()?;
        given.find_extensions()?;
        Ok(given)
    }

    /// The server as an installation without programs.
    pub(crate) fn installation(&self) -> Installation {
        installation(self.features.major, &self.features.version)
    }

    /// How it is reached.
    pub(crate) fn target(&self) -> &ConnectionTarget {
        &self.target
    }

    /// Connections that are left for a load.
    pub(crate) fn free_connections(&mut self) -> Result<u64> {
        let free = number(
            &mut self.keeper,
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
             - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')",
        )?;
        Ok(pgclinic_model::whole(free))
    }

    /// Why this arm at this point cannot be had here: its version, its `initdb`, or settings that
    /// ask for a restart.
    pub(crate) fn missing(&self, arm: &Arm, wanted: &BTreeMap<String, String>) -> Option<String> {
        if !arm.initdb.is_empty() {
            let arguments = arm.initdb.join(" ");
            return Some(format!(
                "the server at the URL was not made with {arguments}"
            ));
        }
        wanted.iter().find_map(|(name, value)| {
            let own = self.settings.get(name)?;
            (!own.in_a_session && own.value != *value).then(|| {
                format!(
                    "{name} is {} at the URL and needs more than a session to become {value}",
                    own.value
                )
            })
        })
    }

    /// Whether sessions can be given this setting.
    pub(crate) fn takes(&self, name: &str, value: &str) -> bool {
        let own = self.settings.get(name);
        own.is_some_and(|own| own.in_a_session || own.value == value)
    }

    /// The settings that each session starts with, for work in this schema.
    pub(crate) fn session_settings(
        &self,
        schema: &str,
        wanted: &BTreeMap<String, String>,
    ) -> Vec<(String, String)> {
        let mut path = vec![schema.to_owned()];
        path.extend(self.path.iter().cloned());
        path.push("public".to_owned());
        let own = wanted.iter().filter(|(name, _)| {
            let setting = self.settings.get(*name);
            setting.is_some_and(|setting| setting.in_a_session)
        });
        let own = own.map(|(name, value)| (name.clone(), value.clone()));
        own.chain([("search_path".to_owned(), path.join(", "))])
            .collect()
    }

    /// A session in this database.
    pub(crate) fn connect(&self, database: &str, settings: &[(String, String)]) -> Result<Session> {
        connect(&self.target, database, settings)
    }

    /// The schema of a shared base, if it was made already.
    pub(crate) fn shared(&self, key: &str) -> Option<String> {
        self.shared.get(key).cloned()
    }

    /// Remembers the schema of a shared base.
    pub(crate) fn share(&mut self, key: String, schema: String) {
        self.shared.insert(key, schema);
    }

    /// A new empty schema.
    pub(crate) fn new_schema(&mut self) -> Result<String> {
        self.made += 1;
        let name = format!("{SCHEMA}_{}", self.made);
        self.create(&name)?;
        Ok(name)
    }

    fn create(&mut self, name: &str) -> Result<()> {
        self.keeper
            .execute(&format!(
                "CREATE SCHEMA {name}; COMMENT ON SCHEMA {name} IS '{MARK}'"
            ))
            .map_err(failed("making a schema for the laboratory"))
    }

    /// Drops a schema that we made.
    pub(crate) fn drop_schema(&mut self, name: &str) -> Result<()> {
        self.keeper
            .execute(&format!(
                "SET client_min_messages = warning; DROP SCHEMA IF EXISTS {name} CASCADE"
            ))
            .map_err(failed("dropping the laboratory's schema"))
    }

    /// Drops every schema with our name and our mark; the lock says that nobody works in them.
    fn drop_ours(&mut self) -> Result<()> {
        let ours = self
            .keeper
            .query(&format!(
                "SELECT nspname FROM pg_namespace WHERE nspname ~ '^{SCHEMA}(_[0-9]+)?$' AND obj_description(oid, 'pg_namespace') = '{MARK}'"
            ))
            .map_err(failed("looking for schemas of a killed laboratory"))?;
        for name in ours.into_iter().flatten().flatten() {
            self.drop_schema(&name)?;
        }
        Ok(())
    }

    /// Notes where extensions are, and puts those that are missing into a schema of ours, as far as
    /// the role may.
    fn find_extensions(&mut self) -> Result<()> {
        const WHERE: &str = "SELECT DISTINCT quote_ident(nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace \
                             WHERE extname IN ('pg_prewarm', 'pgstattuple')";
        let is_superuser = self
            .keeper
            .query_value("SHOW is_superuser")
            .map_err(failed("asking for the role's rights"))?;
        if is_superuser.as_deref() == Some("on") {
            self.create(SCHEMA)?;
            for name in EXTENSIONS {
                if self.features.extensions.contains(name) {
                    self.keeper
                        .execute(&format!(
                            "SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS {name} SCHEMA {SCHEMA}"
                        ))
                        .map_err(failed("making an extension"))?;
                }
            }
        }
        let found = self
            .keeper
            .query(WHERE)
            .map_err(failed("looking for extensions"))?;
        self.path = found.into_iter().flatten().flatten().collect();
        let there = self
            .keeper
            .query("SELECT extname FROM pg_extension")
            .map_err(failed("looking for extensions"))?;
        self.features.extensions = there.into_iter().flatten().flatten().collect();
        Ok(())
    }
}

impl Drop for ExternalServer {
    /// What cannot be dropped now is dropped at the next start.
    fn drop(&mut self) {
        let _ = self.drop_ours();
    }
}

fn connect(
    target: &ConnectionTarget,
    database: &str,
    settings: &[(String, String)],
) -> Result<Session> {
    let mut target = target.clone();
    target.database = database.to_owned();
    let options = ConnectOptions {
        wall_limit: WALL_LIMIT,
        settings: settings.to_vec(),
        ..ConnectOptions::default()
    };
    Session::open(&target, &options).map_err(Error::sql(format!("connecting to {target}")))
}

fn installation(major: u16, version: &str) -> Installation {
    Installation {
        bindir: std::path::PathBuf::new(),
        major,
        version: version.to_owned(),
    }
}

/// `context` says who may change a setting when (`src/backend/utils/misc/guc.c`).
fn settings(session: &mut Session) -> Result<BTreeMap<String, Setting>> {
    let rows = session
        .query(
            "SELECT name, current_setting(name), context = 'user' OR (context = 'superuser' AND current_setting('is_superuser') = 'on') \
             FROM pg_settings",
        )
        .map_err(failed("asking for the settings"))?;
    let setting = |row: Vec<Option<String>>| match <[_; 3]>::try_from(row) {
        Ok([Some(name), Some(value), Some(free)]) => {
            let in_a_session = free == "t";
            let setting = Setting {
                value,
                in_a_session,
            };
            Some((name, setting))
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(setting).collect())
}
