//! Arguments that several works of the laboratory share.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pgclinic_lab::analysis::{About, Judge};
use pgclinic_lab::load::{ConnectionTarget, Driver};
use pgclinic_lab::table_profile::look;
use pgclinic_lab::{
    GivenServer, OauthSetUp, Plan, PlanOptions, PreparedFolder, RunFolder, Scale, SiteOptions,
    UserInput,
};

use super::experiment::{FoundExperiment, find};
use crate::args::size;
use crate::commands::measure::traffic;
use crate::env::Env;
use crate::exit::Failure;
use crate::target::{Opening, open_cluster};

/// A scale by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ScaleName {
    /// The smallest that still shows the effect: seconds
    Smallest,
    /// A few minutes on two cores
    Quick,
    /// The sizes of the published figures
    Published,
}

impl From<ScaleName> for Scale {
    fn from(name: ScaleName) -> Self {
        match name {
            ScaleName::Smallest => Scale::Smallest,
            ScaleName::Quick => Scale::Quick,
            ScaleName::Published => Scale::Published,
        }
    }
}

/// What of an experiment is planned.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
pub(super) struct PlanArgs {
    /// Sizes
    #[arg(long, value_enum, value_name = "SCALE", default_value_t = ScaleName::Quick)]
    scale: ScaleName,
    /// Orders the runs and makes the data
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How often each cell is run
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,
    /// Only these arms; the first left is the baseline
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    arm: Vec<String>,
    /// Compare these directories
    ///
    /// For experiments whose arms are directories, such as file systems. A name in front, as in
    /// zfs-noatime-lz4=/tank/pg, becomes the name of the arm.
    #[arg(long, value_name = "[NAME=]DIR", value_parser = PreparedFolder::parse)]
    folder: Vec<PreparedFolder>,
    /// Only these values of an axis: rows=1000,100000
    #[arg(long, value_name = "AXIS=VALUE,…", value_parser = axis_values)]
    only: Vec<(String, Vec<String>)>,
    /// Make data of the shape of a table in this cluster
    ///
    /// A data directory, whose server may be running, or a base backup. Columns, sizes, nulls,
    /// compressibility and order are those of the table; values are made up. For experiments on the
    /// shape of data. How fast the table was written is counted in its WAL, for catalog-churn and
    /// for a load with rate = "learned".
    #[arg(long, value_name = "PGDATA", requires = "relation")]
    learn_from: Option<PathBuf>,
    /// With --learn-from: the table, as schema.name
    #[arg(long, value_name = "NAME", requires = "learn_from")]
    relation: Option<String>,
    /// With --learn-from: the table's database
    ///
    /// Needed where several databases have such a table.
    #[arg(long, value_name = "NAME", requires = "learn_from")]
    database: Option<String>,
    /// Your own statements as the cycle of catalog-churn
    #[arg(long, value_name = "FILE.sql")]
    ddl: Option<PathBuf>,
    /// Project the growth of catalog-churn over this table
    ///
    /// Each line holds a label, a comma and a number of cycles.
    #[arg(long, value_name = "FILE.csv")]
    traffic: Option<PathBuf>,
    /// Try your own issuer in oauth-login
    ///
    /// It is asked for its discovery document, as psql asks it.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Try the rules of this data directory in oauth-login
    ///
    /// Its pg_hba.conf and pg_ident.conf: what has to do with OAuth is read by a server.
    #[arg(long, value_name = "DIR")]
    pgdata: Option<PathBuf>,
    /// Take what fits in this time
    ///
    /// Time that is left is spent where the decision is uncertain.
    #[arg(long, value_name = "N", value_parser = minutes)]
    minutes: Option<f64>,
    /// Take what fits in this much disk, such as 20GB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    disk: Option<NonZeroU64>,
}

impl PlanArgs {
    /// The experiment of this name with what the user brings, and its plan.
    pub(super) fn plan(
        &self,
        name: &str,
        world: &Env<'_>,
    ) -> Result<(FoundExperiment, Plan), Failure> {
        let (known, options) = self.of(name, world)?;
        let plan = Plan::make(known.experiment(), known.text(), &options)?;
        Ok((known, plan))
    }

    /// What is planned of the experiment, without a plan yet.
    pub(super) fn of(
        &self,
        name: &str,
        world: &Env<'_>,
    ) -> Result<(FoundExperiment, PlanOptions), Failure> {
        let yours = self.yours(world)?;
        Ok((find(name)?.with(&yours)?, self.options(yours)))
    }

    /// Examines the table and reads the file, where they are named.
    fn yours(&self, world: &Env<'_>) -> Result<UserInput, Failure> {
        let mut yours = UserInput::default();
        if let (Some(target), Some(relation)) = (&self.learn_from, &self.relation) {
            let cluster = open_cluster(target, Opening::new(world, None).reading_again())?;
            yours.shape = Some(look(&cluster, self.database.as_deref(), relation)?);
        }
        if let Some(file) = &self.ddl {
            let text = std::fs::read_to_string(file);
            let failed = |error| Failure::new(format!("cannot read {}: {error}", file.display()));
            yours.ddl = Some(text.map_err(failed)?);
        }
        if self.issuer.is_some() || self.pgdata.is_some() {
            let own = OauthSetUp::read(self.issuer.clone(), self.pgdata.as_deref())?;
            yours.oauth = Some(own);
        }
        if let Some(file) = &self.traffic {
            yours.traffic = traffic::read(file)?;
        }
        Ok(yours)
    }

    /// For the planner.
    fn options(&self, yours: UserInput) -> PlanOptions {
        PlanOptions {
            yours,
            scale: self.scale.into(),
            seed: self.seed,
            blocks: self.blocks,
            arms: self.arm.clone(),
            version: None,
            folders: self.folder.clone(),
            only: self.only.clone(),
            minutes: self.minutes,
            disk_bytes: self.disk.map(NonZeroU64::get),
        }
    }
}

/// How results are judged.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Decision")]
pub(super) struct JudgeArgs {
    /// Smallest difference that matters
    ///
    /// In percent. Where a difference is proved to be smaller, the sides are equivalent.
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    margin: f64,
    /// Share of decisions that are right
    ///
    /// In percent: all decisions of a page together are right in at least this share of cases.
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = confidence)]
    confidence: f64,
}

impl JudgeArgs {
    /// For the document of this directory.
    pub(super) fn about(&self, folder: String, command: String) -> About {
        About {
            folder,
            command,
            judge: self.judge(),
        }
    }

    /// For the runs that are made only where the decision is open.
    pub(super) fn judge(&self) -> Judge {
        Judge {
            alpha: (100.0 - self.confidence) / 100.0,
            margin: self.margin / 100.0,
        }
    }
}

/// Which servers, where.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Servers")]
pub(super) struct SiteArgs {
    /// Use the PostgreSQL in this directory
    ///
    /// Given more than once, an arm takes the first whose version fits.
    #[arg(long, value_name = "DIR")]
    server: Vec<PathBuf>,
    /// PostgreSQL's major for arms that name no version
    ///
    /// By default the newest installed one, else 18 is fetched.
    #[arg(long, value_name = "N")]
    pg: Option<u16>,
    /// Run servers as this user when started as root
    ///
    /// By default postgres, else nobody.
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
    /// Put data directories below this one
    ///
    /// To measure its disk. By default pgclinic's cache directory.
    #[arg(long, value_name = "DIR")]
    data_folder: Option<PathBuf>,
    /// Delay each disk request, as in 2ms; needs root
    ///
    /// Data directories lie on a disk that is made for the run, on which each request waits this
    /// long.
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    slow_disk: Option<Duration>,
    /// Run on this server instead of starting one
    ///
    /// The run keeps to schemas of its own, and nothing is restarted.
    #[arg(long, value_name = "URL", value_parser = ConnectionTarget::from_url, conflicts_with_all = ["server", "pg", "data_folder", "slow_disk"])]
    url: Option<ConnectionTarget>,
    /// With --url: the server may suffer
    ///
    /// For experiments that do more than work in a schema of their own.
    #[arg(long, requires = "url")]
    this_is_not_production: bool,
    /// Load driver
    ///
    /// For experiments that have a load. By default the laboratory's own clients.
    #[arg(long, value_enum, value_name = "DRIVER")]
    driver: Option<DriverName>,
}

/// A driver by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum DriverName {
    /// The laboratory's own clients
    BuiltIn,
    /// pgbench, where it is installed
    Pgbench,
}

impl From<DriverName> for Driver {
    fn from(name: DriverName) -> Self {
        match name {
            DriverName::BuiltIn => Driver::BuiltIn,
            DriverName::Pgbench => Driver::Pgbench,
        }
    }
}

impl SiteArgs {
    /// For the laboratory, in a directory that may have been begun with servers and places of its
    /// own.
    pub(super) fn options_in(
        &self,
        folder: &RunFolder,
        world: &mut Env<'_>,
    ) -> Result<SiteOptions, Failure> {
        let mut options = folder.site(&self.options(world))?;
        if self.url.is_none() {
            let given = options.url.take();
            options.url = given.map(|given| GivenServer {
                target: world.with_password(given.target),
                ..given
            });
        }
        Ok(options)
    }

    /// For the laboratory.
    pub(super) fn options(&self, world: &mut Env<'_>) -> SiteOptions {
        SiteOptions {
            servers: self.server.clone(),
            major: self.pg,
            run_as: self.run_as.clone(),
            data_folder: self.data_folder.clone(),
            slow_disk: self.slow_disk,
            driver: self.driver.map(Driver::from),
            url: self.url.clone().map(|target| GivenServer {
                target: world.with_password(target),
                is_not_production: self.this_is_not_production,
            }),
        }
    }
}

/// `2ms`, at least one and at most ten seconds.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text
        .strip_suffix("ms")
        .and_then(|text| text.trim().parse().ok());
    let number = number.filter(|ms| (1..=10_000).contains(ms));
    let number = number.ok_or_else(|| format!("{text:?} is no delay; write 2ms"))?;
    Ok(Duration::from_millis(number))
}

fn axis_values(text: &str) -> Result<(String, Vec<String>), String> {
    let wrong = || format!("{text:?} names no values of an axis; write rows=1000,100000");
    let (axis, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if axis.is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok((axis.to_owned(), values))
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "{text:?} is no percentage between 0 and 50; write 2"
        )),
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (50.0..=99.99).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "{text:?} is no percentage between 50 and 99.99; write 95"
        )),
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes.is_finite() && minutes > 0.0 => Ok(minutes),
        _ => Err(format!("{text:?} is not a number of minutes; write 40")),
    }
}
