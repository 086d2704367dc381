//! Which installation an arm runs on, and what it can do.

use pgclinic_servers::{Installation, Server, StartOptions, StopMode, Wanted, find, here};

use crate::cell::Arm;
use crate::error::{Error, Result};
use crate::external_server::ExternalServer;
use crate::need::Features;
use crate::servers_of_arms::Site;

impl Site {
    /// The installation for an arm; one that cannot be had is remembered and not tried again.
    /// `tell` hears slow steps.
    pub fn installation(&mut self, arm: &Arm, tell: &mut dyn FnMut(&str)) -> Result<Installation> {
        let key = arm.version.clone().unwrap_or_default();
        if !self.installations.contains_key(&key) {
            let found = self.look_for(arm, tell);
            self.installations
                .insert(key.clone(), found.map_err(|error| error.to_string()));
        }
        match self.installations.get(&key) {
            Some(Ok(installation)) => Ok(installation.clone()),
            Some(Err(why)) => Err(Error::Skip(why.clone())),
            None => Err(Error::Skip(format!("no server for version {key}"))),
        }
    }

    /// The installation that an arm has run on.
    pub(crate) fn known_installation(&self, arm: &Arm) -> Option<&Installation> {
        let key = arm.version.clone().unwrap_or_default();
        self.installations.get(&key)?.as_ref().ok()
    }

    /// The installation for an arm, if it is given, installed, or was fetched before.
    pub(crate) fn installation_here(&self, arm: &Arm) -> Result<Option<Installation>> {
        let (major, minor) = numbers(arm.version.as_deref())?;
        if let Some(given) = &self.given {
            return by_url(given, major, minor).map(Some);
        }
        let major = major.or(self.options.major);
        if let Some(given) = self.given(major, minor)? {
            return Ok(Some(given));
        }
        Ok(here(&wanted(major, minor)))
    }

    fn given(&self, major: Option<u16>, minor: Option<u16>) -> Result<Option<Installation>> {
        for folder in &self.options.servers {
            let given = Installation::in_folder(folder)?;
            if fits(&given, major, minor) {
                return Ok(Some(given));
            }
        }
        Ok(None)
    }

    fn look_for(&self, arm: &Arm, tell: &mut dyn FnMut(&str)) -> Result<Installation> {
        let (major, minor) = numbers(arm.version.as_deref())?;
        if let Some(given) = &self.given {
            return by_url(given, major, minor);
        }
        let major = major.or(self.options.major);
        if let Some(given) = self.given(major, minor)? {
            return Ok(given);
        }
        find(&wanted(major, minor), tell).map_err(|error| match error {
            pgclinic_servers::Error::Fetch { what, why } => Error::Skip(format!(
                "{what} is not here and could not be fetched: {why}. Install it, or give its directory with --server"
            )),
            other => other.into(),
        })
    }

    /// What was found out about this installation when it first ran.
    pub(crate) fn known_features(&self, installation: &Installation) -> Option<&Features> {
        let by_url = self.given.as_ref().map(|given| &given.features);
        by_url.or_else(|| self.features.get(&installation.bindir))
    }

    /// Starts the installation once on an empty cluster and asks what it can do.
    pub(crate) fn learn(&mut self, installation: &Installation) -> Result<()> {
        if self.known_features(installation).is_some() {
            return Ok(());
        }
        let pgdata = self.pristine(installation, &[])?;
        let start = StartOptions::default();
        let mut server = Server::start(installation, self.run_as(), &pgdata, &start)?;
        let mut session = server
            .connect("postgres")
            .map_err(Error::sql("connecting to ask the server what it can do"))?;
        let features = Features::probe(installation, &mut session)?;
        drop(session);
        // Bases are copied from it: it must not need recovery.
        server.stop(StopMode::Fast)?;
        self.features.insert(installation.bindir.clone(), features);
        Ok(())
    }
}

fn wanted(major: Option<u16>, minor: Option<u16>) -> Wanted {
    Wanted {
        major,
        minor,
        ..Wanted::default()
    }
}

/// The server at the URL, if an arm of this version may run on it.
fn by_url(given: &ExternalServer, major: Option<u16>, minor: Option<u16>) -> Result<Installation> {
    let found = given.installation();
    if fits(&found, major, minor) {
        Ok(found)
    } else {
        Err(Error::Skip(format!(
            "the server at the URL is PostgreSQL {}",
            found.version
        )))
    }
}

fn fits(installation: &Installation, major: Option<u16>, minor: Option<u16>) -> bool {
    let (_, own_minor) = numbers(Some(&installation.version)).unwrap_or_default();
    major.is_none_or(|major| major == installation.major)
        && minor.is_none_or(|minor| Some(minor) == own_minor)
}

/// Major and minor out of `15` and `15.6`.
fn numbers(version: Option<&str>) -> Result<(Option<u16>, Option<u16>)> {
    let Some(version) = version else {
        return Ok((None, None));
    };
    let wrong = || Error::Refused(format!("\"{version}\" is no version; write 15 or 15.6"));
    let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    match version.split_once('.') {
        Some((major, minor)) => Ok((Some(number(major)?), Some(number(minor)?))),
        None => Ok((Some(number(version)?), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_server_must_be_of_the_wanted_minor() {
        let installation = Installation {
            bindir: "/opt/pg/bin".into(),
            major: 15,
            version: "15.6".to_owned(),
        };
        assert!(fits(&installation, None, None) && fits(&installation, Some(15), Some(6)));
        assert!(!fits(&installation, Some(15), Some(5)) && !fits(&installation, Some(16), None));
        assert!(numbers(Some("fifteen")).is_err());
    }
}
