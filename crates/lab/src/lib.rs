//! The laboratory: experiments on real PostgreSQL servers whose answers can be trusted.
//!
//! ```text
//! experiments/   the questions, one file each            experiment.rs   what an experiment says of itself
//! plan/          matrix, order of runs, cost, budget     cell.rs         arms, axes, cells, metrics, results
//! bench*.rs      what one run has at hand                servers_of_arms/  its server, its data, cold and warm
//! runner/        journal, run folders, resume           published/      what others have found
//! decision/      verdicts in plain words, by what `pgclinic-statistics` says a handful of runs can say
//! analysis/      results to the document of a report    across/         more than one folder
//! learned/       the shape of a person's own table, and a copy of that shape; yours.rs  what a person brings
//! by_url.rs      servers that are there already       asking.rs       small questions
//! load/          many clients that run a script          samplers/      what is watched beside a run
//! environment/   machine and server as facts            user_experiment/  experiments out of a person's own file
//! bisect/        which minor release changed a figure
//! ```
//!
//! A result counts when its folder is whole; whatever is killed leaves at most one run undone, and
//! no server.
#![forbid(unsafe_code)]

pub mod analysis;
mod asking;
mod bench;
mod bench_load;
mod bench_processors;
mod bench_watch;
pub mod bisect;
mod cell;
pub mod compare;
mod cost;
pub mod decision;
pub mod environment;
mod error;
mod experiment;
pub mod experiments;
mod external_server;
pub mod load;
mod need;
mod plan;
mod prepared_folder;
pub mod published;
mod runner;
pub mod samplers;
mod servers_of_arms;
pub mod table_profile;
mod user_experiment;
mod user_input;

pub use bench::Bench;
pub use bench_load::Loaded;
pub use cell::{Arm, Axis, Better, Cell, Metric, Outcome, Point, RunResult};
pub use cost::Cost;
pub use error::{Error, Result};
pub use experiment::{Base, Experiment, Matrix, Measured, Scale, Use};
pub use experiments::oauth_login::OauthSetUp;
pub use experiments::{EXPERIMENTS, experiment_named};
pub use external_server::{ByUrl, GivenServer, WORD};
pub use load::script::statements;
pub use need::{Features, Need};
pub use pgclinic_statistics as statistics;
pub use plan::{LeftOut, PLAN_SCHEMA, Plan, PlanOptions, block_seed};
pub use prepared_folder::PreparedFolder;
pub use runner::{
    Audience, CalmOptions, Entry, Event, KeptSite, RunFolder, RunOptions, SkippedHere, Unreadable,
    carry_out, skipped_here,
};
pub use servers_of_arms::{ColdStart, Device, Site, SiteOptions, refuse_data_directory};
pub use user_experiment::{OwnExperiment, TEMPLATE};
pub use user_input::UserInput;
