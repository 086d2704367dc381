//! The clusters that are hurt: one that was shut down, the same while its server runs and without
//! data checksums, and one that crashed; each with what the server gives of it, and the files of an
//! older day.

use std::io::Write;
use std::path::{Path, PathBuf};

use pgclinic_servers::{
    Checksums, InitOptions, Installation, RunAs, Scratch, Server, StartOptions, StopMode,
    copy_cluster, initdb,
};

use super::truth::Truth;
use crate::drill::master::Master;
use crate::exit::Failure;

const CONTENT: &str = include_str!("content.sql");
const CONTENT_LATER: &str = include_str!("content_later.sql");
/// A transaction that is prepared and stays so.
const CONTENT_PREPARED: &str = include_str!("content_prepared.sql");
/// Without it no server starts beside a prepared transaction.
const CONFIGURATION: &str = "max_prepared_transactions = 4\n";
const CONTENT_CRASH: &str = include_str!("content_crash.sql");

/// In what state a cluster is hurt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    Stopped,
    WithoutChecksums,
    Running,
    Crashed,
}

impl Condition {
    pub(super) fn name(self) -> &'static str {
        match self {
            Condition::Stopped => "stopped",
            Condition::WithoutChecksums => "without-checksums",
            Condition::Running => "running",
            Condition::Crashed => "crashed",
        }
    }
}

/// A cluster and what the server gives of it.
pub(crate) struct Patient {
    /// In each of them it is hurt.
    pub(super) conditions: &'static [Condition],
    pub(super) master: Master,
    pub(super) truth: Truth,
}

/// All of them, and the data directory as it was before the later content came.
pub(crate) struct Patients {
    pub(super) all: Vec<Patient>,
    pub(super) older: PathBuf,
}

impl Patients {
    /// Makes and fills them.
    pub(crate) fn make(installation: &Installation, run_as: &RunAs) -> Result<Self, Failure> {
        let make = || Maker {
            installation,
            run_as,
        };
        let stopped = make().stopped()?;
        let older = stopped.scratch.path().join("older").join("data");
        let truth = make().truth(&stopped)?;
        let crashed = make().crashed(&stopped)?;
        let crashed_truth = make().truth(&crashed)?;
        let patient = |conditions, master, truth| Patient {
            conditions,
            master,
            truth,
        };
        let shut_down = &[
            Condition::Stopped,
            Condition::WithoutChecksums,
            Condition::Running,
        ];
        Ok(Patients {
            all: vec![
                patient(shut_down, stopped, truth),
                patient(&[Condition::Crashed], crashed, crashed_truth),
            ],
            older,
        })
    }
}

struct Maker<'a> {
    installation: &'a Installation,
    run_as: &'a RunAs,
}

impl Maker<'_> {
    fn stopped(&self) -> Result<Master, Failure> {
        let scratch = Scratch::new(self.run_as, None)?;
        let pgdata = scratch.folder("master")?.join("data");
        let init = InitOptions {
            checksums: Checksums::On,
            wal_segsize_mb: Some(1),
            ..InitOptions::default()
        };
        initdb(self.installation, self.run_as, &pgdata, &init)?;
        configure(&pgdata)?;
        let apart = scratch.folder("apart")?;
        let mut server = self.start(&pgdata)?;
        let mut session = server.connect("postgres")?;
        session.execute(&format!(
            "CREATE TABLESPACE apart LOCATION '{}'",
            apart.display()
        ))?;
        session.execute(CONTENT)?;
        session.execute("VACUUM (ANALYZE)")?;
        session.execute("CREATE DATABASE second TEMPLATE postgres")?;
        drop(session);
        server.stop(StopMode::Fast)?;
        copy_cluster(&pgdata, &scratch.folder("older")?)?;
        let mut server = self.start(&pgdata)?;
        let mut session = server.connect("postgres")?;
        session.execute(CONTENT_LATER)?;
        session.execute("VACUUM (ANALYZE)")?;
        CONTENT_PREPARED
            .lines()
            .try_for_each(|line| session.execute(line))?;
        drop(session);
        server.stop(StopMode::Fast)?;
        Ok(Master {
            installation: self.installation.clone(),
            run_as: self.run_as.clone(),
            pgdata,
            scratch,
        })
    }

    fn crashed(&self, stopped: &Master) -> Result<Master, Failure> {
        let scratch = Scratch::new(self.run_as, None)?;
        let pgdata = copy_cluster(&stopped.pgdata, &scratch.folder("master")?)?.pgdata;
        let mut server = self.start(&pgdata)?;
        let mut session = server.connect("postgres")?;
        session.execute("CHECKPOINT")?;
        session.execute(CONTENT_CRASH)?;
        drop(session);
        server.stop(StopMode::Immediate)?;
        Ok(Master {
            installation: self.installation.clone(),
            run_as: self.run_as.clone(),
            pgdata,
            scratch,
        })
    }

    /// On a copy: starting a server changes files.
    fn truth(&self, master: &Master) -> Result<Truth, Failure> {
        let folder = master.scratch.folder("truth")?;
        let copied = copy_cluster(&master.pgdata, &folder)?;
        let mut server = self.start(&copied.pgdata)?;
        let truth = Truth::read(&server)?;
        server.stop(StopMode::Fast)?;
        std::fs::remove_dir_all(&folder)?;
        Ok(truth)
    }

    /// Nothing is vacuumed or analysed on its own, so that each run makes the same pages.
    fn start(&self, pgdata: &Path) -> Result<Server, Failure> {
        let options = StartOptions::default().with("autovacuum", "off");
        let started = Server::start(self.installation, self.run_as, pgdata, &options);
        Ok(started?)
    }
}

/// What every server of these files reads.
fn configure(pgdata: &Path) -> Result<(), Failure> {
    let path = pgdata.join("postgresql.conf");
    let mut file = std::fs::File::options().append(true).open(path)?;
    Ok(file.write_all(CONFIGURATION.as_bytes())?)
}
