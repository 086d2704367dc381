//! Bases: clusters that are made and filled once, then copied for each run or shared by runs that
//! only read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pgclinic_servers::{
    Checksums, InitOptions, Installation, Scratch, Server, StartOptions, StopMode, copy_cluster,
    initdb,
};

use crate::cell::{Arm, FOLDER};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Scale, Use};
use crate::servers_of_arms::Site;

/// Where the data of one run is.
#[derive(Debug)]
pub(crate) enum Data {
    /// A data directory of ours.
    Files {
        /// Where it is.
        pgdata: PathBuf,
        /// Holds a copy; a shared one belongs to the site.
        scratch: Option<Scratch>,
    },
    /// A schema on a server that is not ours.
    Schema {
        /// Its name.
        name: String,
        /// Whether other runs use it too.
        is_shared: bool,
    },
}

impl Data {
    /// Whether other runs use it too.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Files { scratch, .. } => scratch.is_none(),
            Self::Schema { is_shared, .. } => *is_shared,
        }
    }
}

/// Which base for which experiment, server and seed.
pub(crate) struct BaseRequest<'a> {
    pub(crate) experiment: &'a dyn Experiment,
    pub(crate) installation: &'a Installation,
    pub(crate) arm: &'a Arm,
    pub(crate) base: Base,
    pub(crate) scale: Scale,
    pub(crate) seed: u64,
}

impl BaseRequest<'_> {
    /// Tells bases apart.
    pub(crate) fn key(&self) -> String {
        format!(
            "{} {} {:?} {:?} {} {:?} {}",
            self.experiment.name(),
            self.installation.bindir.display(),
            self.arm.initdb,
            self.folder(),
            self.base.name,
            self.base.settings,
            self.scale.name()
        )
    }

    /// The folder of an arm that is one.
    fn folder(&self) -> Option<&Path> {
        self.arm.parameters.get(FOLDER).map(Path::new)
    }
}

impl Site {
    /// The data directory for a run, its base made now if it is not there yet.
    pub(crate) fn data(&mut self, wish: &BaseRequest<'_>) -> Result<Data> {
        if self.given.is_some() {
            return self.schema(wish);
        }
        let pgdata = self.base(wish)?;
        if wish.base.used_as == Use::Shared {
            return Ok(Data::Files {
                pgdata,
                scratch: None,
            });
        }
        let scratch = self.scratch_in(wish.folder())?;
        let copied = copy_cluster(&pgdata, scratch.path())?;
        Ok(Data::Files {
            pgdata: copied.pgdata,
            scratch: Some(scratch),
        })
    }

    /// A schema filled for this wish on the server that was given; one that runs share is filled
    /// once.
    fn schema(&mut self, wish: &BaseRequest<'_>) -> Result<Data> {
        let is_shared = wish.base.used_as == Use::Shared;
        let given = self.given.as_mut().ok_or_else(no_url)?;
        let key = wish.key();
        if let Some(name) = given.shared(&key).filter(|_| is_shared) {
            return Ok(Data::Schema { name, is_shared });
        }
        let name = given.new_schema()?;
        let settings = given.session_settings(&name, &wish.base.settings);
        let mut session = given.connect(&given.target().database, &settings)?;
        wish.experiment
            .fill(&wish.base.name, wish.scale, wish.seed, &mut session)?;
        if is_shared {
            given.share(key, name.clone());
        }
        Ok(Data::Schema { name, is_shared })
    }

    fn base(&mut self, wish: &BaseRequest<'_>) -> Result<PathBuf> {
        let key = wish.key();
        if let Some((_, pgdata)) = self.bases.get(&key) {
            return Ok(pgdata.clone());
        }
        let pristine = self.pristine(wish.installation, &wish.arm.initdb)?;
        let scratch = self.scratch_in(wish.folder())?;
        let pgdata = copy_cluster(&pristine, scratch.path())?.pgdata;
        self.fill_base(wish, &pgdata)?;
        self.bases.insert(key, (scratch, pgdata.clone()));
        Ok(pgdata)
    }

    /// Removes all bases but these, by their keys; one that is needed again is made again.
    pub(crate) fn keep_bases(&mut self, keys: &BTreeSet<String>) {
        self.bases.retain(|key, _| keys.contains(key));
    }

    /// A cluster that nobody has used, made once for each installation and arguments of `initdb`.
    pub(crate) fn pristine(
        &mut self,
        installation: &Installation,
        arguments: &[String],
    ) -> Result<PathBuf> {
        self.check_interrupted()?;
        let key = format!("{} {arguments:?}", installation.bindir.display());
        if let Some((_, pgdata)) = self.pristine.get(&key) {
            return Ok(pgdata.clone());
        }
        let scratch = self.scratch()?;
        let pgdata = scratch.folder("data")?;
        initdb(installation, self.run_as(), &pgdata, &options(arguments))?;
        self.pristine.insert(key, (scratch, pgdata.clone()));
        Ok(pgdata)
    }

    fn fill_base(&mut self, wish: &BaseRequest<'_>, pgdata: &Path) -> Result<()> {
        let start = to_fill(&wish.base);
        let mut server = Server::start(wish.installation, self.run_as(), pgdata, &start)?;
        let unlimited = pgclinic_servers::ConnectOptions {
            wall_limit: std::time::Duration::from_secs(24 * 3600),
            ..pgclinic_servers::ConnectOptions::default()
        };
        let mut session = server
            .connect_with("postgres", &unlimited)
            .map_err(Error::sql("connecting to fill the base"))?;
        wish.experiment
            .fill(&wish.base.name, wish.scale, wish.seed, &mut session)?;
        drop(session);
        server.stop(StopMode::Fast)?;
        Ok(())
    }
}

/// Settings with which a server does not start while WAL is minimal.
const MORE_WAL: [&str; 3] = ["archive_mode", "max_wal_senders", "summarize_wal"];

/// Filling is quick and quiet, and what the base asks for is in force: how values are packed, where
/// an index is built.
fn to_fill(base: &Base) -> StartOptions {
    let mut start = StartOptions::default()
        .with("max_wal_size", "8GB")
        .with("maintenance_work_mem", "256MB")
        .with("shared_buffers", "256MB");
    if !MORE_WAL
        .iter()
        .any(|name| base.settings.contains_key(*name))
    {
        start = start.with("wal_level", "minimal");
    }
    let own = base.settings.iter();
    own.fold(start, |start, (name, value)| start.with(name, value))
}

fn no_url() -> Error {
    Error::Refused("no server was given by URL".to_owned())
}

/// Checksums are on unless the arm's arguments of `initdb` say otherwise.
fn options(arguments: &[String]) -> InitOptions {
    let off = "--no-data-checksums";
    let checksums = if arguments.iter().any(|argument| argument == off) {
        Checksums::Off
    } else {
        Checksums::On
    };
    let own = arguments.iter();
    InitOptions {
        checksums,
        extra: own.filter(|argument| *argument != off).cloned().collect(),
        ..InitOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = pairs.iter();
        own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn last(options: &StartOptions, name: &str) -> Option<String> {
        let mut found = options.settings.iter().rev();
        found
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.clone())
    }

    #[test]
    fn what_a_base_asks_for_is_in_force_while_it_is_filled() {
        let asked = settings(&[
            ("default_toast_compression", "lz4"),
            ("maintenance_work_mem", "1MB"),
        ]);
        let start = to_fill(&Base::copied("lz4").under(&asked));
        let value = |name: &str| last(&start, name).unwrap_or_default();
        assert_eq!(value("default_toast_compression"), "lz4");
        assert_eq!(value("maintenance_work_mem"), "1MB", "above the quick ones");
        assert_eq!(value("wal_level"), "minimal");
        let sends = to_fill(&Base::empty().under(&settings(&[("max_wal_senders", "3")])));
        assert_eq!(last(&sends, "wal_level"), None, "it would not start");
    }
}
