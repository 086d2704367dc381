//! `lab compare`: two folders of one experiment, with one thing changed in between.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pgclinic_lab::RunFolder;
use pgclinic_lab::across::{Group, Recorded, compare};
use pgclinic_report::Document;

use super::arguments::JudgeArgs;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;
use crate::world::World;

/// A group by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum GroupName {
    /// Version and build of the servers
    Server,
    /// Settings of the servers
    Settings,
    /// What the arms are told apart by
    Arms,
    /// Processor, memory, disk, kernel, mount options
    Machine,
}

impl From<GroupName> for Group {
    fn from(name: GroupName) -> Self {
        match name {
            GroupName::Server => Group::Server,
            GroupName::Settings => Group::Settings,
            GroupName::Arms => Group::Arms,
            GroupName::Machine => Group::Machine,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A folder of `lab run`: what there was before
    before: PathBuf,
    /// Another one of the same experiment: what there is now
    after: PathBuf,
    /// Differences that are known not to matter; by themselves, more than one kind is refused
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    allow: Vec<GroupName>,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut World<'_>) -> Result<Exit, Failure> {
    let folders = [&arguments.before, &arguments.after];
    let [one, other] = folders.map(|path| RunFolder::open(path));
    let (one, other) = (one?, other?);
    let (results_one, _) = one.results()?;
    let (results_other, _) = other.results()?;
    let names = folders.map(|path| path.display().to_string());
    let allowed: Vec<Group> = arguments.allow.iter().copied().map(Group::from).collect();
    let command = format!("pgclinic lab compare {} {}", names[0], names[1]);
    let about = arguments.judge.about(names.join(", "), command);
    let side = |name, plan, results| Recorded {
        name,
        plan,
        results,
    };
    let document = compare(
        &side(names[0].as_str(), one.plan(), results_one.as_slice()),
        &side(names[1].as_str(), other.plan(), results_other.as_slice()),
        &allowed,
        &about,
    )?;
    arguments
        .output
        .write(&Document::Experiment(document), world)?;
    Ok(Exit::Healthy)
}
