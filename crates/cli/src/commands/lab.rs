//! `pgclinic lab`: experiments on real servers, from the list of questions to the decision.

mod arguments;
mod audience;
mod bisect;
mod compare;
mod experiment;
mod list;
mod load;
mod merge;
mod new;
mod plan;
mod report;
mod run;
mod servers;

use clap::{ArgMatches, Command as ClapCommand, FromArgMatches, Subcommand};

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};

/// What can be done with experiments.
#[derive(Debug, Subcommand)]
enum Work {
    /// The experiments and their questions
    List(list::Arguments),
    /// Every PostgreSQL on this machine and what it was built with
    Servers(servers::Arguments),
    /// What an experiment compares, in which order, and what it costs
    ///
    /// The costs are time, disk and bytes written.
    Plan(plan::Arguments),
    /// Runs an experiment, or goes on with one of the same plan
    Run(run::Arguments),
    /// Runs what a directory has no result for yet
    Resume(run::ResumeArguments),
    /// What a directory's results say: the decision, the curves, every run
    Report(report::Arguments),
    /// Finds the minor release that changed a metric
    ///
    /// The ends are run until they differ; then the releases between are halved.
    Bisect(bisect::Arguments),
    /// Compares two directories of one experiment that differ in one thing
    Compare(compare::Arguments),
    /// Merges directories of one plan from several machines
    Merge(merge::Arguments),
    /// Writes a commented experiment of your own
    New(new::Arguments),
    /// Runs a pgbench script with many clients against a server
    Load(load::Arguments),
}

/// The command `lab`.
pub struct Lab;

impl Command for Lab {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn arguments(&self) -> ClapCommand {
        Work::augment_subcommands(ClapCommand::new(self.name()))
            .about("Runs experiments on real servers, on this hardware")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .after_help(
                "Servers run as an unprivileged user, in scratch directories that are removed at\n\
                 the end.\n\n\
                 Exit codes: 0 every run is done or skipped for a reason, 2 could not work,\n\
                 3 some runs failed or gave nothing, 130 interrupted (resume goes on).",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        match Work::from_arg_matches(matches)? {
            Work::List(arguments) => list::run(&arguments, world),
            Work::Servers(arguments) => servers::run(&arguments, world),
            Work::Plan(arguments) => plan::run(&arguments, world),
            Work::Run(arguments) => run::run(&arguments, world),
            Work::Resume(arguments) => run::resume(&arguments, world),
            Work::Report(arguments) => report::run(&arguments, world),
            Work::Bisect(arguments) => bisect::run(&arguments, world),
            Work::Compare(arguments) => compare::run(&arguments, world),
            Work::Merge(arguments) => merge::run(&arguments, world),
            Work::New(arguments) => new::run(&arguments, world),
            Work::Load(arguments) => load::run(&arguments, world),
        }
    }
}
