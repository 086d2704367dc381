//! `pgclinic check TARGET`: what is wrong in the files.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use pgclinic_cluster::Cluster;
use pgclinic_diagnose::check::ForkCx;
use pgclinic_diagnose::{
    CheckDocument, CheckOptions, Course, Level, StateKeeper, check_cluster_on, check_file,
};
use pgclinic_report::Document;

use crate::args::{ChainArgs, LoadArgs, SelectionArgs};
use crate::collator::ServerCollator;
use crate::commands::Command;
use crate::exit::{Exit, Failure};
use crate::in_flight::{check_archives, check_server, is_url};
use crate::machine;
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::run_state::StateFile;
use crate::target::{self, Opened, Opening};
use crate::world::World;

/// How deep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LevelName {
    /// Checksums, page headers, file names and lengths
    Pages,
    /// All that a page and its fork decide, control file, maps, catalogs against files
    Structure,
    /// Also TOAST both ways, rows against index entries, values that do not decode, references of catalogs, WAL
    Full,
}

#[derive(Debug, Args)]
struct Arguments {
    /// A data directory whose server is stopped; a base backup (a folder, or base.tar); one relation file; or a running server,
    /// postgres://user:password@host:port/database, whose base backup is looked at in flight, at level pages
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    #[command(flatten)]
    chain: ChainArgs,
    /// How deep to look
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LevelName::Structure)]
    level: LevelName,
    /// Damaged pages kept in the document as evidence
    #[arg(long, value_name = "N", default_value_t = 100)]
    evidence: usize,
    /// Programs of a PostgreSQL of the same major: a scratch server of theirs tells how this machine's libc and ICU order text
    #[arg(long, value_name = "BINDIR")]
    collate_with: Option<PathBuf>,
    /// Write to this file how far the run has come, about once for each GiB, so that another can go on after it was stopped or killed
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Go on where the run ended that wrote the state; the cluster must not have changed, and everything else must be asked alike
    #[arg(long, requires = "state")]
    resume: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// See the module.
pub struct Check;

impl Command for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Finds everything that is wrong in a stopped cluster's files, with cause, risk and cure")
            .after_help("Nothing is written to the target. Exit code 0 healthy, 1 damaged, 3 incomplete (something could not be looked at, or the cluster needs recovery).")
    }

    fn run(&self, matches: &ArgMatches, world: &mut World<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        if let Some(mut document) = arguments.checked_in_flight(world)? {
            document.elapsed_s = start.elapsed().as_secs_f64();
            refuse_empty_selection(&arguments, &document)?;
            let exit = Exit::of(&document);
            arguments.output.write(&Document::Check(document), world)?;
            return Ok(exit);
        }
        let mut opened = target::open(
            &arguments.target,
            Opening::new(world, Some(&arguments.load)).with_chain(&arguments.chain),
        )?;
        if let Opened::Cluster(cluster) = &mut opened
            && arguments.level != LevelName::Pages
        {
            cluster.machine = machine::collations();
            if let Some(bindir) = &arguments.collate_with {
                let collator = ServerCollator::start(bindir, cluster.layout.major)?;
                cluster.collator = Some(Box::new(collator));
            }
        }
        let state = arguments.state_file()?;
        let bar = Bar::of_bytes(&arguments.output, world.terminal, &world.interrupted);
        let document = checked(
            &opened,
            &arguments,
            &world.temp_folder,
            state.as_ref(),
            &bar,
        );
        bar.finish();
        let mut document = document?;
        document.elapsed_s = start.elapsed().as_secs_f64();
        refuse_empty_selection(&arguments, &document)?;
        let exit = Exit::of(&document);
        arguments.output.write(&Document::Check(document), world)?;
        state.map_or(Ok(()), StateFile::finish)?;
        Ok(exit)
    }
}

impl Arguments {
    fn state_file(&self) -> Result<Option<StateFile>, Failure> {
        let file = self.state.as_ref();
        file.map(|path| StateFile::new(path, self.resume))
            .transpose()
    }

    /// Of a target that passes by once; nothing where it is read as files are.
    fn checked_in_flight(&self, world: &mut World<'_>) -> Result<Option<CheckDocument>, Failure> {
        let url = self.target.to_str().filter(|text| is_url(text));
        let has_state = self.state.is_some();
        let options = options_of(self, &world.temp_folder);
        let bar =
            |world: &World<'_>| Bar::of_bytes(&self.output, world.terminal, &world.interrupted);
        if let Some(url) = url {
            if has_state || !self.chain.incremental.is_empty() {
                let why = "--state and --incremental are for files, not for a running server";
                return Err(Failure::new(why));
            }
            let server = world.server(url)?;
            let bar = bar(world);
            let rate = self.load.rate.map(NonZeroU64::get);
            let checked = check_server(&server, &options, rate, &bar);
            bar.finish();
            return checked.map(Some);
        }
        let is_plain = self.load.rate.is_none() && self.chain.incremental.is_empty();
        let archive = target::archive_of(&self.target);
        let Some(archive) =
            archive.filter(|_| is_plain && !has_state && self.level == LevelName::Pages)
        else {
            return Ok(None);
        };
        let bar = bar(world);
        let checked = check_archives(&archive, &options, &bar);
        bar.finish();
        checked
    }

    /// Where the run begins.
    fn course<'a>(
        &self,
        cluster: &Cluster,
        options: &CheckOptions,
        state: Option<&'a StateFile>,
    ) -> Result<Course<'a>, Failure> {
        let keeper = state.map(|file| file as &dyn StateKeeper);
        match state.filter(|_| self.resume) {
            None => Ok(Course::new(cluster, options, keeper)),
            Some(file) => Course::resumed(cluster, options, keeper, file.read()?)
                .map_err(|why| Failure::new(format!("cannot go on: {why}"))),
        }
    }
}

fn options_of(arguments: &Arguments, temp_folder: &Path) -> CheckOptions {
    CheckOptions {
        level: match arguments.level {
            LevelName::Pages => Level::Pages,
            LevelName::Structure => Level::Structure,
            LevelName::Full => Level::Full,
        },
        threads: arguments.load.threads(),
        evidence: arguments.evidence,
        selection: arguments.selection.selection(),
        spec: target::spec_of_chain(&arguments.target, &arguments.chain),
        memory_bytes: arguments.load.memory.get(),
        spill_folder: arguments.load.spill_folder(temp_folder),
    }
}

fn checked(
    opened: &Opened,
    arguments: &Arguments,
    temp_folder: &Path,
    state: Option<&StateFile>,
    bar: &Bar,
) -> Result<CheckDocument, Failure> {
    let options = options_of(arguments, temp_folder);
    match opened {
        Opened::Cluster(cluster) => {
            let course = arguments.course(cluster, &options, state)?;
            Ok(check_cluster_on(course, cluster, &options, bar))
        }
        Opened::File(_) if state.is_some() => {
            let why = "--state is for a cluster; one relation file is checked anew in no time";
            Err(Failure::new(why))
        }
        Opened::File(file) => {
            let wanted = |cx: &ForkCx<'_>| options.selection.takes_fork(cx.files, None);
            let forks: Vec<ForkCx<'_>> = file
                .forks
                .iter()
                .map(|files| file.fork_cx(files, options.level))
                .filter(wanted)
                .collect();
            Ok(check_file(
                &forks,
                file.source.as_ref(),
                file.target(&options.spec),
                &options,
                bar,
            ))
        }
    }
}

/// A name that matches nothing is a mistake of the person's, not a healthy cluster.
fn refuse_empty_selection(arguments: &Arguments, document: &CheckDocument) -> Result<(), Failure> {
    let selection = arguments.selection.selection();
    let nothing = document.coverage.bytes_seen == 0 && document.findings_total == 0;
    if selection.is_everything() || !nothing || document.interrupted {
        return Ok(());
    }
    let asked: Vec<String> = [&arguments.selection.database, &arguments.selection.relation]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let asked = if asked.is_empty() {
        "the selection".to_owned()
    } else {
        format!("{:?}", asked.join(" "))
    };
    let hint = "Relations are written schema.name, * and ? are wild, and an empty file has nothing to check";
    Err(Failure::new(format!(
        "{asked} matches nothing that holds bytes in {}. {hint}",
        document.target.spec
    )))
}
