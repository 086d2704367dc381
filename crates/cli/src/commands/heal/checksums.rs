//! `pgclinic heal checksums PGDATA`: data checksums enabled, disabled, verified, and compared
//! between the nodes of a cluster.

mod nodes;
mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use clap::{Args, Command as ClapCommand, FromArgMatches};
use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::Cluster;
use pgclinic_model::Level;
use pgclinic_model::document::{
    CHECKSUMS_SCHEMA, CheckDocument, ChecksumsAction, ChecksumsDocument, ChecksumsOutcome,
    DamagedPage, DamagedPageChoice, Tool,
};
use pgclinic_report::{CHECK, Document};
use pgclinic_surgery::checksums::{
    ChecksumsEnd, ChecksumsJournalDirectory, ChecksumsRun, ChecksumsState, ClosedCluster,
    Durability, Ending, KnownPage, PageOfFork, Survey, damage_elsewhere, described,
};

use crate::args::{LoadArgs, SelectionArgs};
use crate::beside_a_server::let_others_go_first;
use crate::env::{Env, moment};
use crate::exit::{Exit, FailOnArgs, Failure, ResultClass};
use crate::journal_beside::journal_beside;
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::stillness::Stillness;
use crate::target::{self, Opening};

/// Damaged pages that a document names.
const DAMAGED_MAX: usize = 1000;

/// Clap would put all actions into one line.
pub(super) const USAGE: &str = "pgclinic heal checksums PGDATA ACTION [OPTIONS]";

pub(super) const AFTER_HELP: &str = "\
The control file is written last: up to then the cluster starts as before, and
a run that was stopped goes on with --resume or is undone with --undo. A page
that the structure check calls damaged gets no checksum that would make it look
sound: it is healed first, or --leave-damaged or --include decides about it.

Exit codes: 0 done and read back, or nothing to do; 1 --check found a wrong
checksum, or nodes differ; 2 refused or could not work; 3 something could not
be read.

Examples:
  pgclinic heal checksums PGDATA --enable --dry-run
  pgclinic heal checksums PGDATA --enable --standby postgres://standby/postgres
  pgclinic heal checksums --undo PGDATA.checksums.journal
  pgclinic heal checksums OLD_PGDATA --for-upgrade NEW_PGDATA";

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("action").required(true).multiple(false))]
pub(super) struct Arguments {
    /// A data directory whose server was shut down
    ///
    /// Of a primary or a standby.
    #[arg(value_name = "PGDATA", required_unless_present_any = ["undo", "resume"])]
    pgdata: Option<PathBuf>,
    /// Give every page its checksum, then turn them on
    #[arg(long, group = "action")]
    enable: bool,
    /// Turn them off; pages stay as they are
    #[arg(long, group = "action")]
    disable: bool,
    /// Verify the checksums of pages
    ///
    /// Of all pages, or of a selection, as `pgclinic check --level pages` does.
    #[arg(long, group = "action")]
    check: bool,
    /// Say whether pg_upgrade would refuse
    ///
    /// The data directory that initdb made for the new cluster, or the number of its major version,
    /// such as 18, where it is not there yet. Both ways out are shown, with the time that each
    /// takes on this disk.
    #[arg(long, value_name = "NEW", group = "action")]
    for_upgrade: Option<PathBuf>,
    /// Compare with the nodes of --standby; write nothing
    #[arg(long, group = "action", requires = "standby")]
    compare: bool,
    /// Go on with the journal of a run that was stopped
    #[arg(long, value_name = "JOURNAL", group = "action")]
    resume: Option<PathBuf>,
    /// Undo what the run of this journal wrote
    #[arg(long, value_name = "JOURNAL", group = "action")]
    undo: Option<PathBuf>,
    /// A standby, as data directory or postgres:// URL
    ///
    /// Give the option once for each. Nodes whose data checksums differ from what this one has, or
    /// will have, are named with what to do.
    #[arg(long, value_name = "NODE")]
    standby: Vec<PathBuf>,
    /// Show what would be written; write nothing
    #[arg(long, requires = "enable")]
    dry_run: bool,
    /// Do not wait until writes are on the disk
    ///
    /// A crash of the machine may then lose any of them. For copies that can be made again.
    #[arg(long)]
    no_sync: bool,
    /// Leave damaged pages without a true checksum
    ///
    /// The server then refuses them, each time they are read.
    #[arg(long, requires = "enable")]
    leave_damaged: bool,
    /// Give this damaged page a checksum as it stands
    ///
    /// The block counts through all segments of the fork. Give the option once for each page.
    #[arg(long, value_name = "PATH:BLOCK", value_parser = page, requires = "enable")]
    include: Vec<PageOfFork>,
    /// Directory for the journal
    ///
    /// By default beside the data directory.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    fail_on: FailOnArgs,
}

/// `base/5/16384:12`.
fn page(text: &str) -> Result<PageOfFork, String> {
    let parsed = text.rsplit_once(':').and_then(|(path, block)| {
        let block = block.parse().ok()?;
        (!path.is_empty()).then(|| PageOfFork::new(path, block))
    });
    parsed.ok_or_else(|| format!("{text:?} is no page; write base/5/16384:12"))
}

/// The journal of a run, and what is to be done with it.
pub(super) struct ChecksumsAgain<'a> {
    /// `--undo` or `--resume`.
    pub(super) option: &'static str,
    pub(super) journal: &'a Path,
    pub(super) pgdata: Option<&'a Path>,
    pub(super) load: &'a LoadArgs,
    pub(super) output: &'a OutputArgs,
}

/// It was written by a change of data checksums.
pub(super) fn is_journal(journal: &Path) -> bool {
    ChecksumsJournalDirectory::new(journal).file().is_file()
}

/// Completes or undoes a run, as `heal checksums` with the same option does.
pub(super) fn run_again(again: &ChecksumsAgain<'_>, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let command = Arguments::augment_args(ClapCommand::new("checksums"));
    let words = [again.option.as_ref(), again.journal.as_os_str()];
    let pgdata = again.pgdata.map(Path::as_os_str);
    let words = ["checksums".as_ref()]
        .into_iter()
        .chain(words)
        .chain(pgdata);
    let matches = command.try_get_matches_from(words)?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    arguments.load = again.load.clone();
    arguments.output = again.output.clone();
    run(&arguments, world)
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let_others_go_first(arguments.load.io_priority, false, world);
    let start = Instant::now();
    let pgdata = arguments.home()?;
    let targets: Vec<&Path> = vec![&pgdata];
    if arguments.check {
        arguments.output.refuse_early(CHECK, &targets)?;
        let document = arguments.verified(&pgdata, start, world)?;
        let classes = ResultClass::of_check(&document);
        let exit = arguments.fail_on.exit(&classes, document.interrupted);
        return Ok(arguments
            .output
            .give(Document::Check(document), exit, world));
    }
    if !arguments.selection.selection().is_everything() {
        let why = "a selection is for --check: data checksums are on for a whole cluster or off";
        return Err(Failure::new(why));
    }
    arguments.output.refuse_early(CHECKSUMS_SCHEMA, &targets)?;
    let mut document = arguments.changed(&pgdata, world)?;
    document.elapsed_s = start.elapsed().as_secs_f64();
    let exit = exit_of(&document);
    Ok(arguments
        .output
        .give(Document::Checksums(document), exit, world))
}

fn exit_of(document: &ChecksumsDocument) -> Exit {
    match document.outcome {
        ChecksumsOutcome::Done
        | ChecksumsOutcome::Unchanged
        | ChecksumsOutcome::Planned
        | ChecksumsOutcome::Same => Exit::Healthy,
        ChecksumsOutcome::Differs => Exit::Damaged,
        ChecksumsOutcome::Refused => Exit::Failed,
        ChecksumsOutcome::Incomplete => Exit::Incomplete,
        ChecksumsOutcome::Interrupted => Exit::Interrupted,
    }
}

impl Arguments {
    /// The data directory, as named or as the journal knows it.
    fn home(&self) -> Result<PathBuf, Failure> {
        if let Some(pgdata) = &self.pgdata {
            return Ok(pgdata.clone());
        }
        let journal = self.resume.as_ref().or(self.undo.as_ref());
        let journal = journal.ok_or_else(|| Failure::new("name a data directory"))?;
        let read = ChecksumsJournalDirectory::new(journal).read()?;
        Ok(read.pgdata().to_owned())
    }

    fn durability(&self) -> Durability {
        if self.no_sync {
            Durability::NotSynced
        } else {
            Durability::Synced
        }
    }

    fn check_options(&self, pgdata: &Path, world: &Env<'_>) -> CheckOptions {
        CheckOptions {
            level: Level::Pages,
            threads: self.load.threads(),
            evidence: 0,
            selection: self.selection.selection(),
            spec: target::spec_of(pgdata),
            memory: self.load.memory_plan(),
            spill_folder: self.load.spill_folder(&world.temp_folder),
            since: None,
        }
    }

    /// Of the pages of a cluster that has checksums, which are right.
    fn verified(
        &self,
        pgdata: &Path,
        start: Instant,
        world: &mut Env<'_>,
    ) -> Result<CheckDocument, Failure> {
        let cluster = target::open_cluster(pgdata, Opening::new(world, Some(&self.load)))?;
        if cluster.checksums() == Some(false) {
            return Err(Failure::new(format!(
                "data checksums are off in {}: no page has one to verify",
                pgdata.display()
            )));
        }
        let bar = Bar::of_bytes(&self.output, world.terminal, &world.interrupted);
        let mut document = check_cluster(&cluster, &self.check_options(pgdata, world), &bar);
        bar.finish();
        if document.coverage.bytes_seen == 0 && !document.interrupted {
            let why = "the selection matches nothing that holds bytes";
            return Err(Failure::new(why));
        }
        document.elapsed_s = start.elapsed().as_secs_f64();
        Ok(document)
    }

    fn changed(&self, pgdata: &Path, world: &mut Env<'_>) -> Result<ChecksumsDocument, Failure> {
        if let Some(new) = &self.for_upgrade {
            return self.for_upgrade(pgdata, new, world);
        }
        if self.compare {
            return self.compared(pgdata, world);
        }
        let nodes = nodes::standbys(&self.standby, world)?;
        let interrupted = Arc::clone(&world.interrupted);
        let still = Stillness::of(pgdata, &interrupted, &mut |words| world.say(words))?;
        let closed = ClosedCluster::new(pgdata)?;
        still.holds()?;
        let cluster = target::open_cluster(pgdata, Opening::new(world, Some(&self.load)))?;
        let mut job = Job {
            arguments: self,
            closed: &closed,
            cluster: &cluster,
            still: &still,
            document: self.document(pgdata, &cluster),
        };
        match (&self.resume, &self.undo) {
            (Some(journal), _) => job.resume(journal, world)?,
            (_, Some(journal)) => job.undo(journal, world)?,
            _ if self.disable => job.disable(pgdata)?,
            _ => job.enable(pgdata, world)?,
        }
        let mut document = job.document;
        nodes::compare(&mut document, nodes);
        plan::after(&mut document, pgdata);
        Ok(document)
    }

    fn document(&self, pgdata: &Path, cluster: &Cluster) -> ChecksumsDocument {
        let action = match () {
            () if self.disable => ChecksumsAction::Disable,
            () if self.undo.is_some() => ChecksumsAction::Undo,
            () if self.compare || self.for_upgrade.is_some() => ChecksumsAction::Compare,
            () => ChecksumsAction::Enable,
        };
        ChecksumsDocument {
            schema: CHECKSUMS_SCHEMA.into(),
            tool: Tool::this(),
            target: pgclinic_cluster::target_of(cluster, &target::spec_of(pgdata)),
            action,
            outcome: ChecksumsOutcome::Done,
            why: None,
            files: 0,
            bytes: 0,
            pages: 0,
            pages_new: 0,
            pages_to_write: 0,
            pages_written: 0,
            damaged: Vec::new(),
            damaged_omitted: 0,
            findings_elsewhere: 0,
            not_checked: Vec::new(),
            nodes: Vec::new(),
            plan: Vec::new(),
            journal: None,
            synced: !self.no_sync,
            elapsed_s: 0.0,
        }
    }

    fn compared(&self, pgdata: &Path, world: &mut Env<'_>) -> Result<ChecksumsDocument, Failure> {
        let nodes = nodes::standbys(&self.standby, world)?;
        let opening = Opening::new(world, Some(&self.load)).reading_again();
        let cluster = target::open_cluster(pgdata, opening)?;
        let mut document = self.document(pgdata, &cluster);
        nodes::compare(&mut document, nodes);
        document.outcome = nodes::outcome(&document);
        plan::after(&mut document, pgdata);
        Ok(document)
    }

    fn for_upgrade(
        &self,
        pgdata: &Path,
        new: &Path,
        world: &mut Env<'_>,
    ) -> Result<ChecksumsDocument, Failure> {
        let standbys = nodes::standbys(&self.standby, world)?;
        let opening = Opening::new(world, Some(&self.load)).reading_again();
        let cluster = target::open_cluster(pgdata, opening)?;
        let mut document = self.document(pgdata, &cluster);
        let new_node = nodes::new_cluster(new, &cluster, world)?;
        nodes::compare(&mut document, standbys);
        document.nodes.insert(0, new_node);
        document.outcome = nodes::outcome(&document);
        let pace = plan::Pace::measured(&cluster);
        plan::for_upgrade(&mut document, pgdata, new, pace);
        Ok(document)
    }
}

/// One change of one cluster.
struct Job<'a> {
    arguments: &'a Arguments,
    closed: &'a ClosedCluster,
    cluster: &'a Cluster,
    still: &'a Stillness,
    document: ChecksumsDocument,
}

impl Job<'_> {
    fn journal_directory(&self, pgdata: &Path) -> ChecksumsJournalDirectory {
        let named = self.arguments.journal.clone();
        let path = named.unwrap_or_else(|| journal_beside(pgdata, "checksums"));
        ChecksumsJournalDirectory::new(&path)
    }

    fn disable(&mut self, pgdata: &Path) -> Result<(), Failure> {
        if self.closed.checksums()? == ChecksumsState::Off {
            self.document.outcome = ChecksumsOutcome::Unchanged;
            return Ok(());
        }
        let directory = self.journal_directory(pgdata);
        let time = moment(SystemTime::now());
        self.still.holds()?;
        let durability = self.arguments.durability();
        self.closed.disable(&directory, durability, Some(&time))?;
        self.document.target.checksums = Some(false);
        self.document.journal = Some(directory.file().display().to_string());
        Ok(())
    }

    fn enable(&mut self, pgdata: &Path, world: &mut Env<'_>) -> Result<(), Failure> {
        if self.closed.checksums()? == ChecksumsState::On {
            self.document.outcome = ChecksumsOutcome::Unchanged;
            return Ok(());
        }
        let bar = Bar::of_bytes(&self.arguments.output, world.terminal, &world.interrupted);
        let check = self.arguments.check_options(pgdata, world);
        let run = self.run(&check, &bar);
        if self.arguments.dry_run {
            let survey = self.closed.survey(self.cluster, &run)?;
            bar.finish();
            self.surveyed(&survey);
            if self.document.outcome == ChecksumsOutcome::Done {
                self.document.outcome = ChecksumsOutcome::Planned;
            }
            return Ok(());
        }
        let directory = self.journal_directory(pgdata);
        let prepared = self.closed.prepare(self.cluster, &directory, &run)?;
        self.surveyed(&prepared.survey);
        let known = self.known(&prepared.survey.document);
        if self.document.outcome != ChecksumsOutcome::Done {
            prepared.discard(&directory);
            return Ok(());
        }
        if let Err(failure) = self.still.holds() {
            prepared.discard(&directory);
            return Err(failure);
        }
        self.document.journal = Some(directory.file().display().to_string());
        let time = moment(SystemTime::now());
        let closed = self.closed;
        let end = closed.enable(prepared, known, &directory, &run, Some(&time))?;
        bar.finish();
        self.ended(&end);
        Ok(())
    }

    fn run<'r>(&self, check: &'r CheckOptions, bar: &'r Bar) -> ChecksumsRun<'r> {
        ChecksumsRun {
            threads: self.arguments.load.threads(),
            durability: self.arguments.durability(),
            check,
            progress: bar,
        }
    }

    /// What the survey says goes into the document, and whether anything is in the way.
    fn surveyed(&mut self, survey: &Survey) {
        let document = &mut self.document;
        (document.files, document.bytes) = (survey.files, survey.bytes);
        (document.pages, document.pages_new) = (survey.pages, survey.pages_new);
        document.pages_to_write = survey.pages_to_write;
        document.findings_elsewhere = damage_elsewhere(&survey.document);
        document.not_checked = survey.not_read.clone();
        let mut damaged = described(&survey.document);
        for page in &mut damaged {
            page.choice = self.arguments.choice(page);
        }
        let undecided = damaged.iter();
        let undecided = undecided.filter(|page| page.choice == DamagedPageChoice::Undecided);
        let undecided = undecided.count();
        document.damaged_omitted = damaged.len().saturating_sub(DAMAGED_MAX) as u64;
        damaged.truncate(DAMAGED_MAX);
        document.damaged = damaged;
        (document.outcome, document.why) = match () {
            () if survey.document.interrupted => (ChecksumsOutcome::Interrupted, None),
            () if !document.not_checked.is_empty() => {
                let why =
                    "not every page could be read, and a page without a checksum would be refused";
                (ChecksumsOutcome::Incomplete, Some(why.to_owned()))
            }
            () if undecided > 0 => {
                let why = "a checksum would make damaged pages look sound: heal them first, leave them without one (--leave-damaged), or give it to them one by one (--include PATH:BLOCK)";
                (ChecksumsOutcome::Refused, Some(why.to_owned()))
            }
            () => (ChecksumsOutcome::Done, None),
        };
    }

    /// Damaged pages with what becomes of them, for the journal.
    fn known(&self, document: &CheckDocument) -> Vec<KnownPage> {
        let pages = described(document).into_iter();
        let known = pages.map(|page| KnownPage {
            is_left: self.arguments.choice(&page) == DamagedPageChoice::Left,
            page: PageOfFork::new(&page.path, page.block.into()),
        });
        known.collect()
    }

    fn resume(&mut self, journal: &Path, world: &mut Env<'_>) -> Result<(), Failure> {
        self.again(journal, world, ClosedCluster::resume)
    }

    fn undo(&mut self, journal: &Path, world: &mut Env<'_>) -> Result<(), Failure> {
        self.again(journal, world, ClosedCluster::undo)
    }

    /// Goes on with a journal, one way or the other.
    fn again(
        &mut self,
        journal: &Path,
        world: &mut Env<'_>,
        work: impl FnOnce(
            &ClosedCluster,
            &ChecksumsJournalDirectory,
            &ChecksumsRun<'_>,
        ) -> pgclinic_surgery::Result<ChecksumsEnd>,
    ) -> Result<(), Failure> {
        let directory = ChecksumsJournalDirectory::new(journal);
        let bar = Bar::of_bytes(&self.arguments.output, world.terminal, &world.interrupted);
        let check = CheckOptions {
            spec: self.document.target.spec.clone(),
            ..self.arguments.check_options(Path::new(""), world)
        };
        self.still.holds()?;
        let end = work(self.closed, &directory, &self.run(&check, &bar))?;
        bar.finish();
        self.document.journal = Some(directory.file().display().to_string());
        self.ended(&end);
        Ok(())
    }

    fn ended(&mut self, end: &ChecksumsEnd) {
        let document = &mut self.document;
        document.pages_written = end.pages_written;
        match &end.ending {
            Ending::Whole => {
                document.outcome = ChecksumsOutcome::Done;
                document.target.checksums = match document.action {
                    ChecksumsAction::Enable => Some(true),
                    _ => self
                        .closed
                        .checksums()
                        .ok()
                        .map(|now| now == ChecksumsState::On),
                };
            }
            Ending::Interrupted => document.outcome = ChecksumsOutcome::Interrupted,
        }
    }
}

impl Arguments {
    fn choice(&self, page: &DamagedPage) -> DamagedPageChoice {
        let named = PageOfFork::new(&page.path, page.block.into());
        match () {
            () if self.include.contains(&named) => DamagedPageChoice::Included,
            () if self.leave_damaged => DamagedPageChoice::Left,
            () => DamagedPageChoice::Undecided,
        }
    }
}
