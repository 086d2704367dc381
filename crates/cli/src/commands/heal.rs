//! `pgclinic heal PGDATA --at PATH:BLOCK:ITEM --kill`: a plan, and with consent the plan carried
//! out, with a journal that takes it back.

mod accused;
mod at;
mod carry_out;
mod checksums;
mod consent;
mod elsewhere;
mod ends;
mod evidence;
mod given_up;
mod journal;
mod live;
mod lock_file;
mod prove;
mod saved_plan;
mod scratch;
mod shown_commands;
mod start;
mod status;
mod wal;
mod wanted;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use pgclinic_cluster::{Cluster, target_of};
use pgclinic_model::Level;
use pgclinic_model::document::{
    CureRequest, HEAL_SCHEMA, HealDocument, HealEvidence, HealOutcome, HealScope, Tool,
};
use pgclinic_model::{plural, shell_word, verb_of};
use pgclinic_report::Document;
use pgclinic_surgery::cures::{HealPlan, ProvenPages, plan_heal};

use crate::args::LoadArgs;
use crate::beside_a_server::let_others_go_first;
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;
use crate::stillness::Stillness;
use crate::target::{self, Opening};
use at::At;
use checksums::ChecksumsAgain;
use consent::Consents;
use evidence::{EvidenceArgs, Found, Search};
use live::LiveArgs;

/// How deep to look for damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LevelOfHeal {
    /// All that a page, its fork and its maps decide
    Structure,
    /// Also TOASTed values, and rows against index entries
    Full,
}

impl LevelOfHeal {
    fn level(self) -> Level {
        match self {
            LevelOfHeal::Structure => Level::Structure,
            LevelOfHeal::Full => Level::Full,
        }
    }
}

#[derive(Debug, Args)]
struct Arguments {
    /// A data directory whose server was shut down, or a postgres:// URL
    ///
    /// For a running server the plan is made of SQL, each statement with what it locks; --run runs
    /// one of them.
    #[arg(value_name = "PGDATA", required_unless_present_any = ["undo", "resume"])]
    pgdata: Option<PathBuf>,
    /// Where: PATH:BLOCK:ITEM, or PATH:BLOCK for a page
    ///
    /// PATH is any file of the relation, relative to the data directory, as in base/5/16384. BLOCK
    /// counts through the whole fork, ITEM is the line pointer number from 1. It may be given
    /// several times: the cure is done at each place, in this order.
    #[arg(long, value_name = "PLACE", value_parser = at::parse)]
    at: Vec<At>,
    /// Work on a copy of it, in this new directory
    ///
    /// The copy is marked with the file pgclinic.drill, and is where to begin.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["undo", "resume"])]
    copy_to: Option<PathBuf>,
    /// Directory for the journal
    ///
    /// By default beside the data directory.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["undo", "resume"])]
    journal: Option<PathBuf>,
    /// Plan for damaged pages even where no server starts
    ///
    /// Without it, what keeps a server from starting is planned for first.
    #[arg(long, conflicts_with_all = ["at", "undo", "resume"])]
    pages: bool,
    /// How deep
    ///
    /// At level full TOASTed values are read, and rows are compared with index entries: a page that
    /// is sound by itself, and is not what it was, is found and given back.
    #[arg(long, value_enum, default_value = "structure", conflicts_with_all = ["at", "apply", "undo", "resume"])]
    level: LevelOfHeal,
    /// Give pages of indexes back, too
    ///
    /// Where an image in WAL or the page of a copy has no later record. REINDEX builds any index
    /// from its table, without this.
    #[arg(long, conflicts_with_all = ["at", "undo", "resume"])]
    index_pages: bool,
    /// Let a real server roll pages of indexes forward
    ///
    /// Where later records are not applied by this program: a server of the cluster's major is
    /// found or fetched, and recovers the damaged relations alone, from the newest backup and the
    /// WAL since, in a scratch cluster that is removed again.
    #[arg(long, requires = "index_pages", conflicts_with_all = ["at", "apply", "undo", "resume"])]
    scratch: bool,
    /// Directory for the cluster of --scratch
    ///
    /// By default in the cache. It takes as much room as the WAL since the backup.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["at", "undo", "resume"])]
    scratch_in: Option<PathBuf>,
    /// Let a real server read a copy of what was healed
    ///
    /// One of the cluster's major is found or fetched, started on a copy that is removed again, and
    /// reads every relation; amcheck verifies tables and B-trees where it is installed, and the
    /// rows of the tables that were healed are counted by it and from the files.
    #[arg(long, conflicts_with_all = ["save", "undo"])]
    prove: bool,
    /// Directory for the copy of --prove
    ///
    /// By default in the cache.
    #[arg(long, value_name = "DIR", requires = "prove")]
    prove_in: Option<PathBuf>,
    /// Write the plan to this file, to be carried out later
    #[arg(long, value_name = "FILE", conflicts_with_all = ["yes", "accept", "apply", "undo", "resume"])]
    save: Option<PathBuf>,
    /// Carry out the plan of this file
    ///
    /// Only when system identifier, control file and pages are those of the plan, and the plan is
    /// what would be planned for them again: one that was edited is refused.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "undo", "resume"])]
    apply: Option<PathBuf>,
    /// Give the first bytes back that this journal keeps
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = ["at", "resume"])]
    undo: Option<PathBuf>,
    /// Complete what was interrupted, by its journal
    #[arg(long, value_name = "JOURNAL", conflicts_with = "at")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    cure: CureArgs,
    #[command(flatten)]
    evidence: EvidenceArgs,
    #[command(flatten)]
    consents: Consents,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What is done.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "Cures")]
struct CureArgs {
    /// Make a row visible to all: heap_force_freeze
    #[arg(long)]
    freeze: bool,
    /// Give up a row: LP_DEAD, heap_force_kill
    #[arg(long)]
    kill: bool,
    /// Let the server ask pg_xact again about a row
    #[arg(long)]
    clear_hint_bits: bool,
    /// Set a line pointer LP_UNUSED
    #[arg(long)]
    empty_line_pointer: bool,
    /// Give up a page: zeros, zero_damaged_pages
    #[arg(long)]
    zero_page: bool,
    /// Replace a row's TOASTed value by null or ''
    ///
    /// By the empty value where the column is NOT NULL and its type is text, varchar, char or
    /// bytea.
    #[arg(long, value_name = "COLUMN")]
    cut_toast_value: Option<String>,
}

impl Arguments {
    /// A journal of data checksums, which its own command completes or takes back: whoever has one
    /// at hand need not know which command wrote it.
    fn journal_of_checksums(&self) -> Option<ChecksumsAgain<'_>> {
        let (option, journal) = match (&self.undo, &self.resume) {
            (Some(journal), _) => ("--undo", journal),
            (None, Some(journal)) => ("--resume", journal),
            (None, None) => return None,
        };
        checksums::is_journal(journal).then_some(ChecksumsAgain {
            option,
            journal,
            pgdata: self.pgdata.as_deref(),
            load: &self.load,
            output: &self.output,
        })
    }

    /// What damage is looked for.
    fn scope(&self) -> HealScope {
        HealScope {
            level: self.level.level(),
            index_pages: self.index_pages,
            scratch: self.scratch,
        }
    }

    /// What is for files only, and not for a server by its URL.
    fn refuse_options_of_files(&self) -> Result<(), Failure> {
        let is_asked = !self.at.is_empty()
            || self.cure.named().is_some()
            || self.evidence.is_given()
            || self.copy_to.is_some()
            || self.journal.is_some()
            || self.save.is_some()
            || self.apply.is_some()
            || self.level != LevelOfHeal::Structure
            || self.index_pages
            || self.scratch_in.is_some()
            || self.prove;
        let why = "for the URL of a running server there are --run, --yes and --accept: cures of files are for a data directory whose server was shut down";
        if is_asked {
            return Err(Failure::new(why));
        }
        Ok(())
    }
}

impl CureArgs {
    /// Name of the cure, and its column.
    fn named(&self) -> Option<(&'static str, Option<String>)> {
        let flags = [
            ("freeze", self.freeze),
            ("kill", self.kill),
            ("clear-hint-bits", self.clear_hint_bits),
            ("empty-line-pointer", self.empty_line_pointer),
            ("zero-page", self.zero_page),
            ("cut-toast-value", self.cut_toast_value.is_some()),
        ];
        let named = flags.into_iter().find(|(_, is_set)| *is_set);
        named.map(|(name, _)| (name, self.cut_toast_value.clone()))
    }
}

const CHECKSUMS: &str = "checksums";

/// The command `heal`.
pub struct Heal;

impl Command for Heal {
    fn name(&self) -> &'static str {
        "heal"
    }

    fn arguments(&self) -> ClapCommand {
        let checksums = checksums::Arguments::augment_args(ClapCommand::new(CHECKSUMS))
            .about("Turns data checksums on or off, and verifies them")
            .override_usage(checksums::USAGE)
            .after_help(checksums::AFTER_HELP);
        Arguments::augment_args(ClapCommand::new(self.name()))
            .subcommand(checksums)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .about("Plans a cure of a page, carries it out, and undoes it")
            .after_help(
                "Without --yes or --accept nothing is written: the plan is shown.\n\n\
                 Examples:\n  \
                   pgclinic heal PGDATA --at base/5/16384:35:7 --kill\n  \
                   pgclinic heal PGDATA --at base/5/16384:35:7 --kill --accept 0123abcd \\\n      \
                     --copy-to /var/tmp/copy\n  \
                   pgclinic heal --undo PGDATA.heal.journal\n\n\
                 Exit codes: 0 healed and checked again, undone, or a plan saved; 1 damage\n\
                 remains on what was healed, 2 refused, 3 partly undecided: a plan that waits\n\
                 for consent, a cure left out, a page that could not be checked again.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        if let Some((CHECKSUMS, matches)) = matches.subcommand() {
            return checksums::run(&checksums::Arguments::from_arg_matches(matches)?, world);
        }
        let arguments = Arguments::from_arg_matches(matches)?;
        if let Some(again) = arguments.journal_of_checksums() {
            return checksums::run_again(&again, world);
        }
        // The files that it writes are those of no running server.
        let_others_go_first(arguments.load.io_priority, false, world);
        let start = Instant::now();
        let targets: Vec<&Path> = arguments.pgdata.iter().map(PathBuf::as_path).collect();
        arguments.output.refuse_early(HEAL_SCHEMA, &targets)?;
        let mut document = match (&arguments.undo, &arguments.resume) {
            (Some(journal), _) => journal::undone(journal, arguments.pgdata.as_deref(), world)?,
            (_, Some(journal)) => journal::resumed(&arguments, journal, world)?,
            (None, None) => planned(&arguments, world)?,
        };
        document.elapsed_s = start.elapsed().as_secs_f64();
        if !start::is_start(&document) {
            // A file that lets a server start is no damaged page.
            document.count_reach();
        }
        let exit = exit_of(&document, &arguments)?;
        let done = what_was_done(&document);
        match arguments.output.write(&mut Document::Heal(document), world) {
            Ok(()) => Ok(exit),
            Err(Failure(why)) => Ok(world.report_failed(&Failure(why + &done))),
        }
    }
}

/// What was done before the report failed, and the way back; empty where nothing was written.
fn what_was_done(document: &HealDocument) -> String {
    let answered = document.statements.iter();
    let run = answered.filter(|own| own.answer.is_some()).count();
    if run > 0 {
        let run = plural(run, "statement");
        return format!(". Before that, {run} ran on the server, which pgclinic cannot undo");
    }
    let Some(applied) = &document.applied else {
        return String::new();
    };
    let (pgdata, journal) = (&applied.pgdata, shell_word(&applied.journal));
    if document.outcome == HealOutcome::Undone {
        return format!(". Before that, the first bytes were given back to {pgdata}");
    }
    format!(
        ". Before that, {} {} written to {pgdata}; the journal brings the former bytes back: pgclinic heal --undo {journal}",
        plural(applied.changes, "change"),
        verb_of(applied.changes, "were"),
    )
}

/// Writes the plan where that was asked for; the exit code.
fn exit_of(document: &HealDocument, arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(path) = &arguments.save {
        saved_plan::save(path, document)?;
        return Ok(Exit::Healthy);
    }
    Ok(match document.outcome {
        HealOutcome::Planned if !document.obstacles.is_empty() => Exit::Failed,
        HealOutcome::Healed | HealOutcome::Undone | HealOutcome::NothingToHeal => Exit::Healthy,
        HealOutcome::DamageRemains => Exit::Damaged,
        HealOutcome::Planned | HealOutcome::PartlyUndecided => Exit::Incomplete,
    })
}

/// A plan, carried out where somebody consented.
fn planned(arguments: &Arguments, world: &mut Env<'_>) -> Result<HealDocument, Failure> {
    let Some(pgdata) = &arguments.pgdata else {
        return Err(Failure::new("name a data directory"));
    };
    if let Some(server) = target::named_server(pgdata, world)? {
        return live::planned(arguments, (&server, pgdata), world);
    }
    if arguments.live.run.is_some() {
        let why = "--run is for the postgres:// URL of a running server";
        return Err(Failure::new(why));
    }
    if arguments.scratch_in.is_some() && !arguments.scratch && arguments.apply.is_none() {
        return Err(Failure::new("--scratch-in is for --scratch"));
    }
    refuse_others(pgdata)?;
    let cluster = opened(pgdata, world)?;
    let of_files = match status::planned(arguments, pgdata, &cluster, world)? {
        Some(found) => Some(found),
        None => wal::planned(arguments, pgdata, &cluster, world)?,
    };
    if of_files.is_none()
        && let Some(document) = start::planned(arguments, pgdata, &cluster, world)?
    {
        return Ok(document);
    }
    let (document, proven) = match (of_files, &arguments.apply) {
        (Some(found), _) => found,
        (None, Some(path)) => saved(arguments, path, pgdata, &cluster, world)?,
        (None, None) if arguments.cure.named().is_some() || !arguments.at.is_empty() => {
            let requests = requests(arguments)?;
            let proven = ProvenPages::default();
            (plan_of(&cluster, pgdata, &requests, &proven)?, proven)
        }
        (None, None) => {
            let (named, found) = sought(arguments, pgdata, &cluster, world)?;
            let denied = start::by_rows(arguments, pgdata, (&cluster, &found.denied), world)?;
            if let Some(document) = denied {
                return Ok(document);
            }
            let (mut document, proven) = by_evidence(pgdata, &cluster, (named, found))?;
            document.scope = Some(arguments.scope());
            (document, proven)
        }
    };
    let chosen = arguments.consents.chosen(&document.cures)?;
    if chosen.is_empty() && arguments.prove && !document.cures.is_empty() {
        let why = "--prove shows what a server makes of what was carried out: add --yes or --accept, first with --copy-to DIR";
        return Err(Failure::new(why));
    }
    if chosen.is_empty() {
        return Ok(consent::with_commands(document, pgdata));
    }
    if let Some(why) = document.obstacles.first() {
        return Err(Failure::new(why));
    }
    let job = carry_out::Job {
        arguments,
        pgdata,
        chosen: &chosen,
        proven: &proven,
    };
    job.carry_out(document, world)
}

/// The plan of a file, made again.
fn saved(
    arguments: &Arguments,
    path: &Path,
    pgdata: &Path,
    cluster: &Cluster,
    world: &Env<'_>,
) -> Result<(HealDocument, ProvenPages), Failure> {
    let saved = saved_plan::read(path)?;
    let proven = match &saved.evidence {
        None => ProvenPages::default(),
        Some(evidence) => Search {
            arguments,
            pgdata,
            cluster,
            evidence,
            scratch: saved.scope.is_some_and(|scope| scope.scratch),
            world,
        }
        .proven_again(&saved.request)?,
    };
    let mut document = plan_of(cluster, pgdata, &saved.request, &proven)?;
    saved_plan::refuse_changed(&saved, &document)?;
    (document.evidence, document.not_healed) = (saved.evidence, saved.not_healed);
    document.scope = saved.scope;
    document.not_checked = saved.not_checked;
    Ok((document, proven))
}

/// What the structure check finds damaged, and with what evidence.
fn sought(
    arguments: &Arguments,
    pgdata: &Path,
    cluster: &Cluster,
    world: &Env<'_>,
) -> Result<(HealEvidence, Found), Failure> {
    let named = arguments.evidence.named()?;
    let search = Search {
        arguments,
        pgdata,
        cluster,
        evidence: &named,
        scratch: arguments.scratch,
        world,
    };
    let found = search.found()?;
    Ok((named, found))
}

/// A plan for all of it.
fn by_evidence(
    pgdata: &Path,
    cluster: &Cluster,
    (named, found): (HealEvidence, Found),
) -> Result<(HealDocument, ProvenPages), Failure> {
    let Found {
        requests,
        proven,
        mut not_healed,
        not_checked,
        ..
    } = found;
    not_healed.extend(lock_file::unusable(pgdata));
    let mut document = plan_of(cluster, pgdata, &requests, &proven)?;
    if requests.is_empty() && not_healed.is_empty() {
        document.outcome = if not_checked.is_empty() {
            HealOutcome::NothingToHeal
        } else {
            HealOutcome::PartlyUndecided
        };
        document.follow_up.clear();
        document.warnings.clear();
    }
    document.evidence = Some(named);
    (document.not_healed, document.not_checked) = (not_healed, not_checked);
    Ok((document, proven))
}

fn requests(arguments: &Arguments) -> Result<Vec<CureRequest>, Failure> {
    let Some((cure, column)) = arguments.cure.named() else {
        return Err(Failure::new(
            "name a cure, such as --kill; --help lists them",
        ));
    };
    if arguments.at.is_empty() {
        return Err(Failure::new(
            "name the place with --at PATH:BLOCK:ITEM, such as base/5/16384:35:7",
        ));
    }
    arguments
        .at
        .iter()
        .map(|at| at.request(cure, column.clone()))
        .collect()
}

/// Only a data directory that no server has open is planned for: another one changes while it is
/// read.
fn refuse_others(pgdata: &Path) -> Result<(), Failure> {
    if let Some(pid) = target::running_server(pgdata) {
        let why = "its pages change while they are read, and its files are never written to. Shut it down first, or name a copy";
        return Err(Failure::new(format!(
            "the server with process {pid} is running on {}: {why}",
            pgdata.display()
        )));
    }
    if !pgdata.is_dir() || target::archive_of(pgdata).is_some() {
        let why = "only that can be healed; restore a backup in archives into a directory first";
        return Err(Failure::new(format!(
            "{} is no data directory, and {why}",
            pgdata.display()
        )));
    }
    Ok(())
}

fn opened(pgdata: &Path, world: &Env<'_>) -> Result<Cluster, Failure> {
    target::open_cluster(pgdata, Opening::new(world, None))
}

/// Nobody else is at work on the files.
fn still(pgdata: &Path, world: &mut Env<'_>) -> Result<Stillness, Failure> {
    let interrupted = Arc::clone(&world.interrupted);
    Stillness::of(pgdata, &interrupted, &mut |words| world.say(words))
}

fn plan_of(
    cluster: &Cluster,
    pgdata: &Path,
    requests: &[CureRequest],
    proven: &ProvenPages,
) -> Result<HealDocument, Failure> {
    let plan = plan_heal(cluster, requests, proven)?;
    Ok(document_of(cluster, pgdata, plan))
}

fn document_of(cluster: &Cluster, pgdata: &Path, plan: HealPlan) -> HealDocument {
    HealDocument {
        schema: HEAL_SCHEMA.into(),
        tool: Tool::this(),
        target: target_of(cluster, &target::spec_of(pgdata)),
        outcome: HealOutcome::Planned,
        basis: plan.basis,
        request: plan.request,
        evidence: None,
        scope: None,
        reach: None,
        not_healed: Vec::new(),
        not_checked: Vec::new(),
        obstacles: plan.obstacles,
        cures: plan.cures,
        warnings: plan.warnings,
        other_findings: Vec::new(),
        follow_up: plan.follow_up,
        applied: None,
        statements: Vec::new(),
        proof: None,
        elapsed_s: 0.0,
    }
}
