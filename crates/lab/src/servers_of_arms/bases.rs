//! Bases: clusters that are made and filled once, then copied for each run or shared by runs that only read.

use std::path::{Path, PathBuf};

use pgclinic_servers::{
    Checksums, InitOptions, Installation, Scratch, Server, StartOptions, StopMode, copy_cluster,
    initdb,
};

use crate::cell::Arm;
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Scale, Use};
use crate::servers_of_arms::Site;

/// The parameter of an arm that names the folder of its data.
const FOLDER: &str = "folder";

/// The data directory of one run.
#[derive(Debug)]
pub(crate) struct Data {
    /// Where it is.
    pub(crate) pgdata: PathBuf,
    /// Holds a copy; a shared one belongs to the site.
    scratch: Option<Scratch>,
}

impl Data {
    /// Whether other runs use it too.
    pub(crate) fn is_shared(&self) -> bool {
        self.scratch.is_none()
    }
}

/// Which base for which experiment, server and seed.
pub(crate) struct Wish<'a> {
    pub(crate) experiment: &'a dyn Experiment,
    pub(crate) installation: &'a Installation,
    pub(crate) arm: &'a Arm,
    pub(crate) base: Base,
    pub(crate) scale: Scale,
    pub(crate) seed: u64,
}

impl Wish<'_> {
    /// The folder of an arm that is one.
    fn folder(&self) -> Option<&Path> {
        self.arm.parameters.get(FOLDER).map(Path::new)
    }
}

impl Site {
    /// The data directory for a run, its base made now if it is not there yet.
    pub(crate) fn data(&mut self, wish: &Wish<'_>) -> Result<Data> {
        let pgdata = self.base(wish)?;
        if wish.base.used_as == Use::Shared {
            return Ok(Data {
                pgdata,
                scratch: None,
            });
        }
        let scratch = self.scratch_in(wish.folder())?;
        let copied = copy_cluster(&pgdata, scratch.path())?;
        Ok(Data {
            pgdata: copied.pgdata,
            scratch: Some(scratch),
        })
    }

    fn base(&mut self, wish: &Wish<'_>) -> Result<PathBuf> {
        let key = format!(
            "{} {} {:?} {:?} {} {}",
            wish.experiment.name(),
            wish.installation.bindir.display(),
            wish.arm.initdb,
            wish.folder(),
            wish.base.name,
            wish.scale.name()
        );
        if let Some((_, pgdata)) = self.bases.get(&key) {
            return Ok(pgdata.clone());
        }
        let scratch = self.scratch_in(wish.folder())?;
        let pgdata = scratch.folder("data")?;
        self.make_base(wish, &pgdata)?;
        self.bases.insert(key, (scratch, pgdata.clone()));
        Ok(pgdata)
    }

    fn make_base(&mut self, wish: &Wish<'_>, pgdata: &Path) -> Result<()> {
        self.check_interrupted()?;
        initdb(wish.installation, self.run_as(), pgdata, &options(wish.arm))?;
        // Filling is quick and quiet: what the runs measure comes later, on their own settings.
        let start = StartOptions::default()
            .with("max_wal_size", "8GB")
            .with("wal_level", "minimal")
            .with("maintenance_work_mem", "256MB")
            .with("shared_buffers", "256MB");
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

/// Checksums are on unless the arm's arguments of `initdb` say otherwise.
fn options(arm: &Arm) -> InitOptions {
    let off = "--no-data-checksums";
    let checksums = match arm.initdb.iter().any(|argument| argument == off) {
        true => Checksums::Off,
        false => Checksums::On,
    };
    let own = arm.initdb.iter();
    InitOptions {
        checksums,
        extra: own.filter(|argument| *argument != off).cloned().collect(),
        ..InitOptions::default()
    }
}
