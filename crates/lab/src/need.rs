//! What a run needs from its server and its machine, and whether it is there: probed, not guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use pgclinic_servers::{Installation, Session, everywhere};

use crate::cell::Arm;
use crate::error::{Error, Result};

/// One thing that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A major in this range.
    Major(RangeInclusive<u16>),
    /// This value among those that a setting can take, such as `io_uring` for `io_method`.
    SettingValue {
        /// The setting.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// A setting of this name.
    Setting(&'static str),
    /// `pg_jit_available()`.
    Jit,
    /// An extension that can be created.
    Extension(&'static str),
    /// A client program in the server's folder, such as `pg_dump`.
    Tool(&'static str),
    /// Anything else that the experiment found missing, as a sentence.
    Missing(String),
}

/// Values of settings that need a library with which no fetched server is built.
const NEVER_FETCHED: [&str; 3] = ["lz4", "zstd", "io_uring"];

/// The programs that come with a fetched server.
const FETCHED_TOOLS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// What a server can do, asked of a running one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// 13 to 18.
    pub major: u16,
    /// As the server says it: `15.14`.
    pub version: String,
    /// Enumerated values by setting; settings of other types have none.
    pub settings: BTreeMap<String, Vec<String>>,
    /// JIT is compiled in and its library is there.
    pub jit: bool,
    /// Names that `CREATE EXTENSION` knows.
    pub extensions: BTreeSet<String>,
}

const SETTINGS: &str =
    "SELECT name, array_to_string(coalesce(enumvals, '{}'), ',') FROM pg_settings";

impl Features {
    /// Asks a running server.
    pub fn probe(installation: &Installation, session: &mut Session) -> Result<Self> {
        let asked = || Error::sql("asking the server what it can do");
        let mut settings = BTreeMap::new();
        for row in session.query(SETTINGS).map_err(asked())? {
            let mut columns = row.into_iter().flatten();
            let (name, values) = (columns.next(), columns.next().unwrap_or_default());
            let values = values.split(',').filter(|value| !value.is_empty());
            settings.insert(
                name.unwrap_or_default(),
                values.map(str::to_owned).collect(),
            );
        }
        // It says no wherever the setting is off, and asks for the library only where it is on.
        session.execute("SET jit = on").map_err(asked())?;
        let jit = session
            .query_value("SELECT pg_jit_available()")
            .map_err(asked())?;
        let names = session
            .query("SELECT name FROM pg_available_extensions")
            .map_err(asked())?;
        Ok(Self {
            major: installation.major,
            version: installation.version.clone(),
            settings,
            jit: jit.as_deref() == Some("t"),
            extensions: names.into_iter().flatten().flatten().collect(),
        })
    }
}

impl Need {
    /// `None` when it is there, else what is missing.
    pub fn missing(&self, features: &Features, installation: &Installation) -> Option<String> {
        let version = &features.version;
        let (there, what) = match self {
            Self::Major(range) => (
                range.contains(&features.major),
                format!(
                    "it needs a major from {} to {}, this is PostgreSQL {version}",
                    range.start(),
                    range.end()
                ),
            ),
            Self::SettingValue { name, value } => (
                features
                    .settings
                    .get(*name)
                    .is_some_and(|values| values.contains(value)),
                format!("PostgreSQL {version} as built here has no {name} = {value}"),
            ),
            Self::Setting(name) => (
                features.settings.contains_key(*name),
                format!("PostgreSQL {version} has no setting {name}"),
            ),
            Self::Jit => (
                features.jit,
                format!("PostgreSQL {version} as built here has no JIT"),
            ),
            Self::Extension(name) => (
                features.extensions.contains(*name),
                format!("PostgreSQL {version} here comes without the extension {name}"),
            ),
            Self::Tool(name) => (
                installation.tool(name).is_some(),
                format!("{} holds no {name}", installation.bindir.display()),
            ),
            Self::Missing(what) => (false, what.clone()),
        };
        (!there).then_some(what)
    }

    /// [`Need::missing`] with the installation of this machine that has it; where there is none,
    /// the arm is impossible here.
    pub(crate) fn missing_here(
        &self,
        features: &Features,
        installation: &Installation,
        arm: &Arm,
    ) -> Option<String> {
        let words = self.missing(features, installation)?;
        let elsewhere = self.elsewhere(installation, arm);
        let can_be_given = self.name_if_never_fetched().is_some();
        if elsewhere.is_empty() && can_be_given {
            return Some(format!("{words}; {}", impossible(arm)));
        }
        Some(words + &elsewhere)
    }

    /// Why a server that would have to be fetched for an arm cannot serve it; `None` where it may.
    pub(crate) fn missing_if_fetched(&self, version: &str, arm: &Arm) -> Option<String> {
        let name = self.name_if_never_fetched()?;
        Some(format!(
            "PostgreSQL {version} would be fetched, and servers that are fetched have no {name}; {}",
            impossible(arm)
        ))
    }

    /// What no server that is fetched has: they come without the libraries and client programs.
    fn name_if_never_fetched(&self) -> Option<String> {
        match self {
            Self::Jit => Some("JIT".to_owned()),
            Self::SettingValue { value, .. } if NEVER_FETCHED.contains(&value.as_str()) => {
                Some(value.clone())
            }
            Self::Tool(name) if !FETCHED_TOOLS.contains(name) => Some((*name).to_owned()),
            _ => None,
        }
    }

    /// Where else on this machine it is, as the end of a sentence; nothing when it is nowhere. An
    /// arm that asks for a minor takes no other.
    fn elsewhere(&self, installation: &Installation, arm: &Arm) -> String {
        let has = |other: &Installation| match self {
            Self::SettingValue { name, value } => other.accepts(name, value),
            Self::Jit => other.features().jit,
            Self::Tool(name) => other.tool(name).is_some(),
            _ => false,
        };
        let mut others = everywhere();
        let asks_for_minor = arm
            .version
            .as_ref()
            .is_some_and(|asked| asked.contains('.'));
        others.retain(|other| {
            let fits = if asks_for_minor {
                other.version == installation.version
            } else {
                other.major == installation.major
            };
            fits && has(other)
        });
        others.first().map_or(String::new(), |other| {
            format!(
                "; the one in {} has it, give it with --server",
                other.bindir.display()
            )
        })
    }
}

/// An arm that nothing on this machine can run.
fn impossible(arm: &Arm) -> String {
    let name = &arm.name;
    format!("{name} is impossible here until a server that has it is given with --server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_version() {
        let features = Features {
            major: 17,
            version: "17.2".to_owned(),
            settings: BTreeMap::from([("io_method".to_owned(), vec!["sync".to_owned()])]),
            ..Features::default()
        };
        let installation = Installation {
            bindir: "/opt/pg/bin".into(),
            major: 17,
            version: "17.2".to_owned(),
        };
        let missing = |need: Need| need.missing(&features, &installation);
        assert_eq!(missing(Need::Major(13..=17)), None);
        let uring = Need::SettingValue {
            name: "io_method",
            value: "io_uring".to_owned(),
        };
        let words = missing(uring).expect("it is missing");
        assert_eq!(
            words,
            "PostgreSQL 17.2 as built here has no io_method = io_uring"
        );
        let words = missing(Need::Tool("pg_dump")).expect("it is missing");
        assert_eq!(words, "/opt/pg/bin holds no pg_dump");
    }

    #[test]
    fn an_arm_that_nothing_here_can_run_is_impossible() {
        let arm = Arm::new("15.5", "").on_version("15.5");
        let words = Need::Jit.missing_if_fetched("15.5", &arm);
        assert_eq!(
            words.as_deref(),
            Some(
                "PostgreSQL 15.5 would be fetched, and servers that are fetched have no JIT; 15.5 is impossible here until a server that has it is given with --server"
            )
        );
        // Every fetched server comes with its extensions.
        let extension = Need::Extension("pgstattuple");
        assert_eq!(extension.missing_if_fetched("15.5", &arm), None);
    }

    #[test]
    fn an_installation_of_this_machine_that_has_it_is_named() {
        let server = pgclinic_testkit::server(15);
        let bare = Installation {
            bindir: "/nowhere/bin".into(),
            ..server
        };
        let features = Features {
            major: 15,
            version: bare.version.clone(),
            ..Features::default()
        };
        let missing = |arm: &Arm| {
            let words = Need::Tool("initdb").missing_here(&features, &bare, arm);
            words.expect("it is missing")
        };
        // No minor of 15 reached 99, so no other installation is that one.
        let minor = Installation {
            version: "15.99".to_owned(),
            ..bare.clone()
        };
        let arm = Arm::new("old", "").on_version("15.99");
        let words = Need::Tool("initdb").missing_here(&features, &minor, &arm);
        assert!(!words.expect("it is missing").contains("--server"));
        let words = missing(&Arm::new("any", "").on_version("15"));
        assert!(
            words.starts_with("/nowhere/bin holds no initdb; the one in /")
                && words.ends_with("has it, give it with --server"),
            "{words}"
        );
    }
}
