//! Servers and places that a folder was begun with, kept beside its plan: whoever goes on in the
//! folder goes on with them.
//!
//! ```text
//! {"servers": ["/opt/pg17"], "major": 17, "data_folder": "/mnt/fast", "slow_disk_ms": 2, "driver": "pgbench", "url": "postgres://…"}
//! ```
//!
//! What was not said is absent. A password is never among it, and neither is the user that servers
//! run as, which changes nothing that is measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_servers::{Address, ConnectionTarget, Tls};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::external_server::{GivenServer, WORD};
use crate::load::Driver;
use crate::servers_of_arms::SiteOptions;

/// `site.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptSite {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    major: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_folder: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_disk_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<Driver>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    is_not_production: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(word: &bool) -> bool {
    !word
}

impl KeptSite {
    /// What of these options is kept.
    pub fn of(options: &SiteOptions) -> Result<Self> {
        let whole = |path: &PathBuf| std::path::absolute(path).map_err(Error::io("examine", path));
        let servers: Result<Vec<PathBuf>> = options.servers.iter().map(whole).collect();
        let url = options.url.as_ref();
        Ok(Self {
            servers: servers?,
            major: options.major,
            data_folder: options.data_folder.as_ref().map(whole).transpose()?,
            slow_disk_ms: options.slow_disk.map(milliseconds),
            driver: options.driver,
            url: url.map(|given| url_of(&given.target)),
            is_not_production: url.is_some_and(|given| given.is_not_production),
        })
    }

    /// The options of a folder that was begun with these, as `said` now leaves them: what is said
    /// again must be the same, and what is not said is as it was. The password of a server by URL
    /// is the one said now.
    ///
    /// # Errors
    /// When a word that is said now contradicts the folder, with both.
    pub(super) fn with(&self, said: &SiteOptions, folder: &Path) -> Result<SiteOptions> {
        let now = Self::of(said)?;
        let spoken = [
            (!now.servers.is_empty(), "--server"),
            (now.major.is_some(), "--pg"),
            (now.data_folder.is_some(), "--data-folder"),
            (now.slow_disk_ms.is_some(), "--slow-disk"),
            (now.driver.is_some(), "--driver"),
            (now.url.is_some(), "--url"),
        ];
        for (_, option) in spoken.iter().filter(|(is_said, _)| *is_said) {
            let (before, after) = (self.said(option), now.said(option));
            if before != after {
                let before = match before {
                    Some(before) => format!("with {before}"),
                    None => format!("without {option}"),
                };
                return Err(Error::Refused(format!(
                    "{} was begun {before}, and now it is {}: runs on both would be mixed. Leave it out, or begin a new directory with --into",
                    folder.display(),
                    after.unwrap_or_default()
                )));
            }
        }
        Ok(SiteOptions {
            servers: self.servers.clone(),
            major: self.major,
            run_as: said.run_as.clone(),
            data_folder: self.data_folder.clone(),
            slow_disk: self.slow_disk_ms.map(Duration::from_millis),
            driver: self.driver,
            url: self.given(said)?,
        })
    }

    /// The server by URL. What the person said of it holds for the folder.
    fn given(&self, said: &SiteOptions) -> Result<Option<GivenServer>> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let now = said.url.as_ref();
        let target = match now {
            Some(given) => given.target.clone(),
            None => ConnectionTarget::from_url(url).map_err(|why| {
                Error::Refused(format!(
                    "the URL {url} of the directory cannot be read: {why}"
                ))
            })?,
        };
        Ok(Some(GivenServer {
            target,
            is_not_production: self.is_not_production
                || now.is_some_and(|given| given.is_not_production),
        }))
    }

    /// An option as it is typed; `None` where it is not said. The built-in driver is the same, said
    /// or not.
    fn said(&self, option: &str) -> Option<String> {
        let words = self.words();
        let own: Vec<&String> = words
            .iter()
            .filter(|word| word.split(' ').next() == Some(option))
            .collect();
        match (own.is_empty(), option) {
            (true, "--driver") => Some("--driver built-in".to_owned()),
            (true, _) => None,
            (false, _) => Some(own.into_iter().cloned().collect::<Vec<_>>().join(" ")),
        }
    }

    /// The options as they are typed, one a word.
    pub fn words(&self) -> Vec<String> {
        let path = |option: &str, path: &PathBuf| {
            format!("{option} {}", quoted(&path.display().to_string()))
        };
        let mut words: Vec<String> = self
            .servers
            .iter()
            .map(|one| path("--server", one))
            .collect();
        words.extend(self.major.map(|major| format!("--pg {major}")));
        words.extend(
            self.data_folder
                .as_ref()
                .map(|one| path("--data-folder", one)),
        );
        words.extend(self.slow_disk_ms.map(|ms| format!("--slow-disk {ms}ms")));
        words.extend(
            self.driver
                .map(|driver| format!("--driver {}", driver.name())),
        );
        words.extend(
            self.url
                .as_ref()
                .map(|url| format!("--url {}", quoted(url))),
        );
        words.extend(self.is_not_production.then(|| WORD.to_owned()));
        words
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// With what the connection's encryption was said to be, and without the password.
fn url_of(target: &ConnectionTarget) -> String {
    let url = target.to_string();
    let mode = match (&target.address, &target.tls) {
        (Address::Socket { .. }, _) | (_, Tls::Possible) => return url,
        (_, Tls::Never) => "disable".to_owned(),
        (_, Tls::Always) => "require".to_owned(),
        (_, Tls::Verified { root, name }) => {
            let mode = if *name { "verify-full" } else { "verify-ca" };
            format!("{mode}&sslrootcert={}", root.display())
        }
    };
    format!("{url}?sslmode={mode}")
}

/// Safe to paste into a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=,._-+/:@".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun_with(url: &str) -> SiteOptions {
        SiteOptions {
            url: Some(GivenServer {
                target: ConnectionTarget::from_url(url).expect("a URL"),
                is_not_production: true,
            }),
            driver: Some(Driver::Pgbench),
            ..SiteOptions::default()
        }
    }

    #[test]
    fn what_was_not_said_again_is_as_it_was() {
        let url = "postgres://ann:secret@db.example:5433/shop?sslmode=require";
        let kept = KeptSite::of(&begun_with(url)).expect("a site");
        let json = serde_json::to_string(&kept).expect("JSON");
        assert!(!json.contains("secret"), "{json}");
        let read: KeptSite = serde_json::from_str(&json).expect("a site");
        let options = read
            .with(&SiteOptions::default(), Path::new("lab"))
            .expect("nothing contradicts");
        assert_eq!(KeptSite::of(&options).expect("a site"), kept);
        assert_eq!(
            kept.words().join(" "),
            "--driver pgbench --url 'postgres://ann@db.example:5433/shop?sslmode=require' --this-is-not-production"
        );
    }

    #[test]
    fn a_word_that_contradicts_is_refused_with_both() {
        let kept = KeptSite::of(&SiteOptions {
            major: Some(17),
            ..SiteOptions::default()
        });
        let kept = kept.expect("a site");
        let refused = |said: SiteOptions| {
            kept.with(&said, Path::new("lab"))
                .expect_err("it contradicts")
                .to_string()
        };
        let other = refused(SiteOptions {
            major: Some(18),
            ..SiteOptions::default()
        });
        assert!(
            other.contains("lab was begun with --pg 17, and now it is --pg 18"),
            "{other}"
        );
        let more = refused(SiteOptions {
            servers: vec!["/opt/pg".into()],
            ..SiteOptions::default()
        });
        assert!(
            more.contains("begun without --server, and now it is --server /opt/pg"),
            "{more}"
        );
        let usual = SiteOptions {
            driver: Some(Driver::BuiltIn),
            ..SiteOptions::default()
        };
        assert!(kept.with(&usual, Path::new("lab")).is_ok());
    }
}
