//! `pgclinic check TARGET`: what is wrong in the files.

mod with_measure;

use std::ffi::OsString;
use std::mem::take;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use pgclinic_check::check::ForkCx;
use pgclinic_check::{
    CheckOptions, ResumableRun, Since, StateKeeper, account_for_remains, check_cluster_on,
    check_file, check_running,
};
use pgclinic_cluster::{Cluster, selected};
use pgclinic_model::document::{NotChecked, Verdict};
use pgclinic_model::{CheckDocument, Level};
use pgclinic_report::{CHECK, Document};
use pgclinic_servers::ConnectionTarget;

use crate::args::{ChainArgs, LoadArgs, RunningArgs, SelectionArgs};
use crate::asked_server::AskedServer;
use crate::beside_a_server::{self, BesideAServer};
use crate::collator::ServerCollator;
use crate::commands::{Command, measure};
use crate::env::Env;
use crate::exit::{Exit, FailOnArgs, Failure, ResultClass};
use crate::foreseen;
use crate::ignored_findings::IgnoreArgs;
use crate::machine;
use crate::near_names::why_nothing;
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::run_state::{self, StateFile};
use crate::status_line;
use crate::stream::{check_archives, check_server};
use crate::target::{self, OpenTarget, Opening};
use crate::undetected_server::{self, UndetectedServer, Watch};
use with_measure::{Companion, check_and_measure, measure_as_well};

/// How deep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LevelName {
    /// Checksums, page headers, file names and lengths
    Pages,
    /// All that a page and its fork decide, control file, maps, catalogs against files
    Structure,
    /// Also TOAST both ways, rows against index entries, values that do not decode, references of
    /// catalogs, WAL
    Full,
}

#[derive(Debug, Args)]
struct Arguments {
    /// Data directory, base backup, relation file, or server URL
    ///
    /// A data directory, whose server may be running; a base backup, as a directory or as base.tar;
    /// one relation file; or a running server, postgres://user:password@host:port/database. The
    /// base backup of a running server is checked as it streams, at level pages; with --level
    /// structure or full its files are read through SQL instead.
    ///
    /// Where none is given it is $PGDATA.
    #[arg(value_name = "TARGET", required = false)]
    target: PathBuf,
    #[command(flatten)]
    chain: ChainArgs,
    /// Depth
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LevelName::Structure)]
    level: LevelName,
    /// Damaged pages to keep in the document
    ///
    /// By default none: their bytes are those of your customers. With --evidence 100 the document
    /// shows what stands on them.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["redact", "redact_with"])]
    evidence: usize,
    /// PostgreSQL programs to ask for the order of text
    ///
    /// The directory holds the programs of a PostgreSQL of the same major. A scratch server made
    /// from them tells how libc and ICU of this machine order text.
    #[arg(long, value_name = "DIR")]
    collate_with: Option<PathBuf>,
    /// Write to this file how far the run has come
    ///
    /// It is written about once for each GiB. With it --resume goes on after the run was stopped or
    /// killed, and --since starts from what this run found. The file lies outside of the target.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Check only what changed since the run of this state
    ///
    /// Pages are checked that changed since that run began, and those in which it found something;
    /// others are passed over. The run must have come to its end, on the same files, with the same
    /// version of pgclinic. What it could not read is checked whole.
    #[arg(long, value_name = "STATE")]
    since: Option<PathBuf>,
    /// Go on where the run of --state ended
    ///
    /// All options must be the same, and a stopped cluster must not have changed.
    #[arg(long, requires = "state")]
    resume: bool,
    /// Ask this running server about damaged pages
    ///
    /// The server runs on the data directory; its URL is postgres://user@host:port/database. It is
    /// asked for the damaged pages, and whether they are still in use.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Let the server write its memory when that decides
    ///
    /// Where indexes know pages that the files of a running server do not have, the server may hold
    /// them in memory. With this option it is asked for a CHECKPOINT then, which its user must be
    /// allowed. It needs --server, or a postgres:// target.
    #[arg(long)]
    checkpoint: bool,
    /// Do this as well, from one read of the files
    ///
    /// The report then ends with the figures of `pgclinic measure`; in JSON they are `measured`.
    /// Beside a running server they have a read of their own.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["since", "resume"])]
    with: Option<Companion>,
    #[command(flatten)]
    running: RunningArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// One line for a monitoring system, with its codes
    ///
    /// 0 OK, 1 WARNING (warnings, or the cluster needs recovery), 2 CRITICAL (damage), 3 UNKNOWN
    /// (incomplete, or the check could not work), as plugins of Nagios have them. --fail-on says
    /// which results but warnings count. The report goes to --output, where that is given.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["quiet", "verbose"])]
    status_line: bool,
    #[command(flatten)]
    fail_on: FailOnArgs,
    #[command(flatten)]
    ignore: IgnoreArgs,
}

/// The command `check`.
pub struct Check;

impl Command for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Finds what is wrong in a cluster's files: cause, risk, cure")
            .after_help(
                "Nothing is written to the target. A server may run on it: a page that it changes\n\
                 meanwhile is read again before it counts.\n\n\
                 Exit codes: 0 healthy, 1 damaged, 2 could not work or could not write the\n\
                 report, 3 incomplete (something could not be checked, or the cluster needs\n\
                 recovery). --fail-on says which of them count.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        match check_and_report(&arguments, matches, world) {
            Err(failure) if arguments.status_line => {
                let (line, exit) = status_line::of_failure(&failure.0);
                world.write(format!("{line}\n").as_bytes())?;
                Ok(exit)
            }
            ended => ended,
        }
    }
}

fn check_and_report(
    arguments: &Arguments,
    matches: &ArgMatches,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let start = Instant::now();
    let output = &arguments.output;
    output.refuse_early(CHECK, &arguments.targets())?;
    let ignored = arguments.ignore.read(world)?;
    let named = target::named_server(&arguments.target, world)?;
    if let Some(named) = &named {
        arguments.refuse_options_of_files(named)?;
    }
    let level_is_asked = matches.value_source("level") == Some(ValueSource::CommandLine);
    let through_sql = level_is_asked && arguments.level != LevelName::Pages;
    let in_flight = named.as_ref().filter(|_| !through_sql);
    if let Some(with) = arguments.with {
        with.refuse_stream(in_flight)?;
    }
    if let Some(mut document) = arguments.checked_in_flight(in_flight, world)? {
        document.elapsed_s = start.elapsed().as_secs_f64();
        refuse_empty_selection(arguments, &document, world)?;
        ignored.mark(&mut document, world);
        return arguments.give(document, world);
    }
    let state = arguments.state_file()?;
    let mut document = arguments.looked(named.as_ref(), state.as_ref(), world)?;
    document.elapsed_s = start.elapsed().as_secs_f64();
    if let Some(measured) = &mut document.measured {
        measured.elapsed_s = document.elapsed_s;
    }
    refuse_empty_selection(arguments, &document, world)?;
    ignored.mark(&mut document, world);
    let exit = arguments.give(document, world)?;
    let kept = state.map_or(Ok(()), |state| state.is_written());
    Ok(match kept {
        Ok(()) => exit,
        Err(failure) => world.unwritten(&failure, exit),
    })
}

/// Nothing needs a report: no finding, and nothing that was to be checked is missing.
fn is_all_well(document: &CheckDocument) -> bool {
    document.verdict == Verdict::Healthy && document.findings.is_empty()
}

/// What a check of a running server at level `structure` finds, for a command that begins with it.
pub(crate) fn check_structure_of(
    server: &ConnectionTarget,
    url: &Path,
    world: &mut Env<'_>,
) -> Result<CheckDocument, Failure> {
    let command = Arguments::augment_args(ClapCommand::new("check"));
    let words = ["check", "--level", "structure", "--progress", "none", "--"];
    let words = words.iter().map(OsString::from).chain([url.into()]);
    let matches = command.try_get_matches_from(words)?;
    let arguments = Arguments::from_arg_matches(&matches)?;
    arguments.looked(Some(server), None, world)
}

impl Arguments {
    /// The target as it is found when nobody else moved it meanwhile.
    fn looked(
        &self,
        named: Option<&ConnectionTarget>,
        state: Option<&StateFile>,
        world: &mut Env<'_>,
    ) -> Result<CheckDocument, Failure> {
        let first = UndetectedServer::told(self.running.running);
        // A look that is taken again does not go on with what the one before it wrote.
        let mut resumes = self.resume;
        let look = |unseen, world: &mut Env<'_>| {
            let course = CourseOf {
                state,
                resumes: take(&mut resumes),
            };
            self.look(named, unseen, course, world)
        };
        undetected_server::look(first, world, look)
    }

    /// Writes the document as it was asked for, and gives the exit code that its findings ask for.
    fn give(&self, document: CheckDocument, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let mut classes = ResultClass::of_check(&document);
        let measured = document.measured.as_deref();
        classes.extend(measured.and_then(measure::class_of));
        if self.status_line {
            return self.give_status(document, &classes, world);
        }
        let exit = self.fail_on.exit(&classes, document.interrupted);
        if self.output.is_silent() && exit == Exit::Healthy && is_all_well(&document) {
            return Ok(exit);
        }
        Ok(self.output.give(Document::Check(document), exit, world))
    }

    /// One line on stdout, and the document where a file was named for it.
    fn give_status(
        &self,
        document: CheckDocument,
        classes: &[ResultClass],
        world: &mut Env<'_>,
    ) -> Result<Exit, Failure> {
        let mut told = self.fail_on.failing(classes);
        told.extend(classes.iter().filter(|own| **own == ResultClass::Warning));
        let (line, exit) = status_line::of_check(&document, &told);
        if self.output.output.is_some() {
            self.output.write(&mut Document::Check(document), world)?;
        }
        world.write(format!("{line}\n").as_bytes())?;
        Ok(exit)
    }

    /// One look at the target, with what is known of a running server; and what turned out of one
    /// meanwhile.
    fn look(
        &self,
        named: Option<&ConnectionTarget>,
        unseen: Option<UndetectedServer>,
        course: CourseOf<'_>,
        world: &mut Env<'_>,
    ) -> Result<(CheckDocument, Option<Option<UndetectedServer>>), Failure> {
        let (opened, unseen) = self.opened(named, unseen, world)?;
        if let Some(with) = self.with {
            with.refuse_target(&opened)?;
        }
        let watch = match &opened {
            OpenTarget::Cluster(cluster) => Some(Watch::begin(cluster)),
            OpenTarget::File(_) | OpenTarget::TruncatedArchive(_) => None,
        };
        let server = self.asked_server(&opened, named, world)?;
        self.let_it_go_first(&opened, world);
        let (options, anew) = self.since(&opened, options_of(self, world), world)?;
        let bar = Bar::of_bytes(&self.output, world.terminal, &world.interrupted);
        foresee(&opened, &options, &bar);
        let mut done = checked(
            &opened,
            &options,
            world,
            (server, course),
            (self.with, &bar),
        );
        if let (Ok(document), Some(Companion::Measure), OpenTarget::Cluster(cluster)) =
            (&mut done, self.with, &opened)
            && cluster.is_running()
        {
            let opening = self.opening(named, unseen, world).reading_again();
            let cluster = target::open_cluster(&self.target, opening)?;
            measure_as_well(document, (&cluster, named), &options, &bar);
        }
        bar.finish();
        let mut document = done?;
        let gap = unseen.map(UndetectedServer::gap);
        document
            .coverage
            .not_checked
            .extend(gap.into_iter().chain(anew));
        let news = match (&opened, watch) {
            (OpenTarget::Cluster(cluster), Some(watch)) => watch.seen(cluster),
            _ => None,
        };
        Ok((document, news.map(Some)))
    }

    fn opening<'a>(
        &'a self,
        named: Option<&'a ConnectionTarget>,
        unseen: Option<UndetectedServer>,
        world: &'a Env<'_>,
    ) -> Opening<'a> {
        Opening::new(world, Some(&self.load))
            .with_chain(&self.chain)
            .of_server(named)
            .with_unseen(unseen)
    }

    /// The target; and what is known of a running server on it that cannot be seen.
    fn opened(
        &self,
        named: Option<&ConnectionTarget>,
        unseen: Option<UndetectedServer>,
        world: &Env<'_>,
    ) -> Result<(OpenTarget, Option<UndetectedServer>), Failure> {
        let opening = self.opening(named, unseen, world).beside_a_server();
        let mut opened = target::open(&self.target, opening)?;
        let unseen = match &opened {
            OpenTarget::Cluster(cluster) => opening.unseen_beside(cluster, &self.target),
            OpenTarget::File(_) | OpenTarget::TruncatedArchive(_) => None,
        };
        if let OpenTarget::Cluster(cluster) = &mut opened
            && self.level != LevelName::Pages
        {
            // What this machine's libraries say is nothing to a server on another.
            if named.is_none_or(ConnectionTarget::is_on_this_machine) {
                cluster.machine = machine::collations();
            }
            if let Some(bindir) = &self.collate_with {
                let collator = ServerCollator::start(bindir, cluster.layout.major)?;
                cluster.collator = Some(Arc::new(collator));
            }
        }
        Ok((opened, unseen))
    }

    /// The server that was named, where one is running.
    fn asked_server(
        &self,
        opened: &OpenTarget,
        named: Option<&ConnectionTarget>,
        world: &mut Env<'_>,
    ) -> Result<Option<AskedServer>, Failure> {
        let asked = match (&self.server, named) {
            (Some(url), _) => world.server(url)?,
            (None, Some(named)) => named.clone(),
            (None, None) if self.checkpoint => {
                let why = "--checkpoint needs --server, or a postgres:// target";
                return Err(Failure::new(why));
            }
            (None, None) => return Ok(None),
        };
        match opened {
            OpenTarget::Cluster(cluster) if cluster.is_running() => {
                let server = AskedServer::open(asked, cluster)?;
                Ok(Some(server.with_checkpoint(self.checkpoint)))
            }
            _ => {
                let why = "--server is for the data directory of a running server, and none is";
                Err(Failure::new(why))
            }
        }
    }

    /// Reads wait for those of a running server, unless the user says otherwise.
    fn let_it_go_first(&self, opened: &OpenTarget, world: &mut Env<'_>) {
        let running = matches!(opened, OpenTarget::Cluster(cluster) if cluster.is_running());
        beside_a_server::let_others_go_first(self.load.io_priority, running, world);
    }

    /// The options with what `--since` says. Where the state is of files that were exchanged since,
    /// everything is examined, and a note says so.
    fn since(
        &self,
        opened: &OpenTarget,
        options: CheckOptions,
        world: &mut Env<'_>,
    ) -> Result<(CheckOptions, Option<NotChecked>), Failure> {
        let Some(path) = &self.since else {
            return Ok((options, None));
        };
        let cluster = match opened {
            OpenTarget::Cluster(cluster) => cluster,
            OpenTarget::TruncatedArchive(remains) => return Err(remains.failure()),
            OpenTarget::File(_) => {
                let why = "--since is for a cluster; one relation file is checked again in no time";
                return Err(Failure::new(why));
            }
        };
        let refused = |why: String| Failure::new(format!("cannot use {}: {why}", path.display()));
        let state = run_state::read(path).map_err(refused)?;
        let since = Since::of(&state, cluster, &options).map_err(refused)?;
        if let Some(why) = state.is_of_other_files(cluster) {
            let note = looked_at_anew(path, &why);
            if !self.output.quiet {
                world.say(&format!("pgclinic: {}: {}", note.what, note.why));
            }
            return Ok((options, Some(note)));
        }
        let options = CheckOptions {
            since: Some(since),
            ..options
        };
        Ok((options, None))
    }

    fn state_file(&self) -> Result<Option<StateFile>, Failure> {
        let file = self.state.as_ref();
        file.map(|path| StateFile::new(path, self.resume, &self.targets()))
            .transpose()
    }

    /// What is only read.
    fn targets(&self) -> Vec<&Path> {
        self.chain.behind(&self.target)
    }

    /// What is for files only, and not for a server by its URL.
    fn refuse_options_of_files(&self, named: &ConnectionTarget) -> Result<(), Failure> {
        let is_asked = self.state.is_some()
            || self.since.is_some()
            || self.running.running
            || !self.chain.incremental.is_empty();
        let why =
            "--state, --since, --running and --incremental are for files, not for a running server";
        if is_asked {
            Err(Failure::new(format!("{named}: {why}")))
        } else {
            Ok(())
        }
    }

    /// Of a target that passes by once; nothing where it is read as files are.
    fn checked_in_flight(
        &self,
        server: Option<&ConnectionTarget>,
        world: &Env<'_>,
    ) -> Result<Option<CheckDocument>, Failure> {
        let has_state = self.state.is_some();
        let options = options_of(self, world);
        let bar = |world: &Env<'_>| Bar::of_bytes(&self.output, world.terminal, &world.interrupted);
        if let Some(server) = server {
            let bar = bar(world);
            let rate = self.load.rate.map(NonZeroU64::get);
            let checked = check_server(server, &options, rate, &bar);
            bar.finish();
            return checked.map(Some);
        }
        let is_plain = self.with.is_none()
            && self.load.rate.is_none()
            && self.since.is_none()
            && self.chain.incremental.is_empty();
        let archive = target::archive_of(&self.target);
        let Some(archive) = archive.filter(|_| {
            is_plain && !has_state && self.level == LevelName::Pages && !self.running.running
        }) else {
            return Ok(None);
        };
        let bar = bar(world);
        let checked = check_archives(&archive, &options, &bar);
        bar.finish();
        checked
    }
}

/// The comparisons of relations, which nobody can count before catalogs are read, are taken to be
/// as much as the pass over their pages. Beside a server only the deepest level has them.
fn foresee(opened: &OpenTarget, options: &CheckOptions, bar: &Bar) {
    if let OpenTarget::Cluster(cluster) = opened
        && options.since.is_none()
    {
        let times = match (options.level, cluster.is_running()) {
            (Level::Pages, _) | (Level::Structure, true) => 1,
            (Level::Structure, false) | (Level::Full, _) => 2,
        };
        foreseen::tell(cluster, &options.selection, times, bar);
    }
}

/// Where a run begins, and what keeps how far it came.
#[derive(Clone, Copy)]
struct CourseOf<'a> {
    state: Option<&'a StateFile>,
    resumes: bool,
}

impl<'a> CourseOf<'a> {
    /// The course on this cluster, or why the state does not fit.
    fn course(
        self,
        cluster: &Cluster,
        options: &CheckOptions,
    ) -> Result<ResumableRun<'a>, Failure> {
        let keeper = self.state.map(|file| file as &dyn StateKeeper);
        let course = match self.state.filter(|_| self.resumes) {
            None => ResumableRun::new(cluster, options, keeper),
            Some(file) => ResumableRun::resumed(cluster, options, keeper, file.read()?)
                .map_err(|why| Failure::new(format!("cannot go on: {why}")))?,
        };
        course.keep_first();
        self.state.map_or(Ok(()), StateFile::is_written)?;
        Ok(course)
    }
}

fn options_of(arguments: &Arguments, world: &Env<'_>) -> CheckOptions {
    CheckOptions {
        level: match arguments.level {
            LevelName::Pages => Level::Pages,
            LevelName::Structure => Level::Structure,
            LevelName::Full => Level::Full,
        },
        threads: arguments.load.threads(),
        evidence: arguments.evidence,
        selection: arguments.selection.selection(),
        spec: target::spec_of_target(&arguments.target, &arguments.chain, world),
        memory: arguments.load.memory_plan(),
        spill_folder: arguments.load.spill_folder(&world.temp_folder),
        since: None,
    }
}

/// For the part of a report that says what was asked and not done: `--since` passed over nothing.
fn looked_at_anew(state: &Path, why: &str) -> NotChecked {
    NotChecked {
        what: format!("what changed since {}", state.display()),
        why: format!("{why}: everything was examined, as without --since"),
        inherent: true,
    }
}

fn checked(
    opened: &OpenTarget,
    options: &CheckOptions,
    world: &Env<'_>,
    (server, course): (Option<AskedServer>, CourseOf<'_>),
    (with, bar): (Option<Companion>, &Bar),
) -> Result<CheckDocument, Failure> {
    match opened {
        OpenTarget::Cluster(cluster) if cluster.is_running() => {
            let course = course.course(cluster, options)?;
            let beside = BesideAServer::new(&world.interrupted, server);
            Ok(check_running(course, cluster, options, bar, &beside))
        }
        OpenTarget::Cluster(cluster) => {
            let course = course.course(cluster, options)?;
            Ok(match with {
                Some(Companion::Measure) => check_and_measure(course, cluster, options, bar),
                None => check_cluster_on(course, cluster, options, bar),
            })
        }
        OpenTarget::TruncatedArchive(remains) if course.state.is_some() => Err(remains.failure()),
        OpenTarget::TruncatedArchive(remains) => {
            let source = remains.source.as_ref();
            Ok(account_for_remains(source, &remains.troubles, options))
        }
        OpenTarget::File(_) if course.state.is_some() => {
            let why = "--state is for a cluster; one relation file is checked again in no time";
            Err(Failure::new(why))
        }
        OpenTarget::File(file) => {
            let wanted = |cx: &ForkCx<'_>| selected::fork(&options.selection, cx.files, None);
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
                options,
                bar,
            ))
        }
    }
}

/// A name that matches nothing is a mistake of the user's, not a healthy cluster.
fn refuse_empty_selection(
    arguments: &Arguments,
    document: &CheckDocument,
    world: &Env<'_>,
) -> Result<(), Failure> {
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
    let opened = target::open_cluster(&arguments.target, Opening::new(world, None));
    let SelectionArgs {
        database, relation, ..
    } = &arguments.selection;
    let why = opened.map_or_else(
        |_| String::new(),
        |own| why_nothing(&own, database, relation),
    );
    Err(Failure::new(format!(
        "{asked} matches nothing that holds bytes in {}{why}. {hint}",
        document.target.spec
    )))
}
