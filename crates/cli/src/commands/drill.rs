//! `pgclinic drill`: a rehearsal on a real PostgreSQL, from fetching it to the scoreboard.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use pgclinic_cluster::target_of;
use pgclinic_model::document::{
    BlindDocument, DrillDocument, DrillRow, LossDocument, NotRun, OutcomeCounts, RowOutcome,
    START_DRILL_SCHEMA, StartDrillDocument, Target, Tool,
};
use pgclinic_model::plural;
use pgclinic_model::{CheckDocument, Level, Severity, Verdict as CheckVerdict};
use pgclinic_report::{DRILL, Document, Options, by_name, drill_row_line};
use pgclinic_servers::{Installation, RunAs, Wanted, find, sweep};
use pgclinic_surgery::{InjuryTargets, PageBudget};

mod rehearsal;
mod scenario;

use crate::commands::Command;
use crate::destination::refuse_early;
use crate::drill::injury_set::InjurySet;
use crate::drill::master::{Master, MasterOptions};
use crate::drill::matrix::Ward;
use crate::drill::{blind, loss, master, matrix, oracle, readings, start};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::near_names;
use crate::output::{OutputArgs, REPORT, manual, write_file};
use crate::progress::Bar;

/// Blind shots of each kind where nobody says how many.
const SHOTS: usize = 10;

/// What is rehearsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WardName {
    /// Declared injuries, or blind shots
    Injuries,
    /// Everything that bears witness to rows, lost in every way
    Loss,
    /// Servers that are kept from starting, in every way
    Start,
}

/// Options of other rehearsals than that on a copy of a user's cluster.
const STRANGERS: [&str; 9] = [
    "pg",
    "pg_bindir",
    "run_as",
    "large",
    "all",
    "blind",
    "shots",
    "tenth",
    "ward",
];

#[derive(Debug, Args)]
struct Arguments {
    /// PostgreSQL's major, 13 to 18
    ///
    /// By default the newest installed one, else 18 is fetched.
    #[arg(long, value_name = "N")]
    pg: Option<u16>,
    /// Directory with PostgreSQL's programs
    #[arg(long, value_name = "DIR")]
    pg_bindir: Option<PathBuf>,
    /// Run servers as this user when started as root
    ///
    /// By default postgres, else nobody.
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
    /// Chooses contents, places and damage
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also a table of more than one segment
    ///
    /// It brings the injuries that need such a table.
    #[arg(long)]
    large: bool,
    /// Every injury, not a few of each family
    ///
    /// By default the first injury of each family and of each kind of page or file is made.
    #[arg(long, conflicts_with_all = ["injury", "blind"])]
    all: bool,
    /// Only these injuries
    #[arg(long, value_name = "NAME", conflicts_with = "blind")]
    injury: Vec<String>,
    /// Damage one place, and ask everything about it
    ///
    /// A server on a hurt copy is asked by COPY, index scan, VACUUM, CREATE INDEX, ANALYZE,
    /// autovacuum, pg_dump, amcheck, pageinspect, with ignore_checksum_failure, with
    /// zero_damaged_pages, with pg_surgery, and so are check, explain and salvage. Then the ways
    /// out are carried out, and the rows are counted. NAME is a message, one of --scenarios, or an
    /// injury; it may be given several times. The answer is Markdown.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["all", "injury", "blind", "large", "shots", "ward", "tenth", "on_copy_of", "exam"])]
    scenario: Vec<String>,
    /// List the scenarios
    #[arg(long, conflicts_with = "scenario")]
    scenarios: bool,
    /// Random shots instead of declared injuries
    #[arg(long)]
    blind: bool,
    /// Blind shots of each kind [default: 10]
    ///
    /// With and without checksums. With --ward loss it is the number of random losses of each
    /// state, instead of all losses.
    #[arg(long, value_name = "N")]
    shots: Option<usize>,
    /// Ward
    #[arg(long, value_name = "NAME", value_enum, default_value = "injuries", conflicts_with_all = ["blind", "injury", "large"])]
    ward: WardName,
    /// One cell in ten of the ward loss
    ///
    /// These cells are always the same.
    #[arg(long, conflicts_with = "shots")]
    tenth: bool,
    /// Injure a copy of this data directory or backup
    ///
    /// Only the files that are needed are copied, and the original is only read. Random injuries
    /// are made, and what check finds and salvage saves of the copy is scored.
    #[arg(long, value_name = "TARGET", conflicts_with_all = STRANGERS)]
    on_copy_of: Option<PathBuf>,
    /// Hide the damage of a copy in this new directory
    ///
    /// With --on-copy-of the copy is made and its key kept in DIR.key. Without it, what was made of
    /// the copy since is marked.
    #[arg(long, value_name = "DIR", conflicts_with_all = STRANGERS)]
    exam: Option<PathBuf>,
    /// Pages to injure, such as 2% or 40 [default: 20]
    #[arg(long, value_name = "PAGES", value_parser = PageBudget::parse, requires = "on_copy_of")]
    random: Option<PageBudget>,
    /// Lose random segments of tables as well
    #[arg(long, value_name = "N", requires = "on_copy_of")]
    lost_segments: Option<u64>,
    /// Copy only this database
    #[arg(long, value_name = "NAME", requires = "on_copy_of")]
    database: Option<String>,
    /// Injure only this relation, as schema.name
    #[arg(long, value_name = "NAME", requires = "on_copy_of")]
    relation: Option<String>,
    /// Directory for the copy
    ///
    /// By default the cache. It is removed at the end.
    #[arg(
        long,
        value_name = "DIR",
        requires = "on_copy_of",
        conflicts_with = "exam"
    )]
    scratch: Option<PathBuf>,
    /// Start no server on the injured copy
    ///
    /// By default one of the cluster's major that is on this machine reads a second copy, and what
    /// it says is reported.
    #[arg(long, requires = "on_copy_of", conflicts_with = "exam")]
    no_server: bool,
    /// Show the score of this report beside
    ///
    /// The report of an earlier rehearsal, written with --format json.
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,
    /// Also write the HTML report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Copies that are injured at the same time
    ///
    /// By default one for each processor.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The command `drill`.
pub struct Drill;

impl Command for Drill {
    fn name(&self) -> &'static str {
        "drill"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Rehearses damage and recovery on copies of a real cluster")
            .after_help(
                "Damages copies of a real cluster, checks them, shows them to the server, and\n\
                 undoes the damage, in a scratch directory that is removed at the end.\n\
                 A few injuries stand for all and take less than a minute; --all makes all.\n\
                 --on-copy-of does the same with a copy of your own cluster or backup.\n\
                 Exit code 0 only when every expectation held.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        arguments.output.refuse_early(DRILL, &[])?;
        if arguments.scenarios {
            return scenario::list(&arguments, world);
        }
        if !arguments.scenario.is_empty() {
            return scenario::show(&arguments, world);
        }
        let report = arguments.report.as_deref();
        report.map_or(Ok(()), |path| refuse_early(path, REPORT, &[]))?;
        refuse_strangers(&arguments)?;
        if let Some(asked) = rehearsal::asked_for(&arguments) {
            return rehearsal::rehearse(&arguments, asked, start, world);
        }
        let (installation, run_as) = installation(&arguments, world)?;
        let of_ward = match arguments.ward {
            WardName::Injuries => None,
            WardName::Loss => Some(loss_drill(&arguments, &installation, &run_as, world)?),
            WardName::Start => Some(start_drill(&arguments, &installation, &run_as, world)?),
        };
        if let Some((document, passed)) = of_ward {
            return Ok(end(&arguments, timed(document, start), passed, world));
        }
        let master = prepare(&arguments, installation, run_as)?;
        let cluster = master::open(&master.pgdata)?;
        let healthy = master::check(&master.pgdata, 0)?;
        if healthy.verdict != CheckVerdict::Healthy {
            return Err(unhealthy(&healthy));
        }
        tell(
            &arguments,
            world,
            "reading everything once, to know what the healthy server says",
        );
        let mut readings = readings::of(&cluster);
        let heard = hear_healthy(&master, &readings)?;
        let reads_indexes = !heard
            .answer
            .messages
            .iter()
            .any(|message| message.contains("pg_prewarm"));
        if !reads_indexes {
            readings::without_pages(&mut readings);
            tell(
                &arguments,
                world,
                "this server has no pg_prewarm: it is not asked to read indexes",
            );
        }
        let scanned = readings::scanned(&readings);
        let ward = Ward {
            master: &master,
            healthy: &healthy,
            readings: &readings,
            heard: &heard,
            reads_indexes,
            scanned: &scanned,
        };
        let (document, passed) = if arguments.blind {
            blind_drill(&arguments, &ward, &cluster, world)?
        } else {
            declared_drill(&arguments, &ward, &cluster, world)?
        };
        Ok(end(&arguments, timed(document, start), passed, world))
    }
}

/// Refuses options that another rehearsal has.
fn refuse_strangers(arguments: &Arguments) -> Result<(), Failure> {
    for name in &arguments.injury {
        near_names::injury(name)?;
    }
    let is_loss = arguments.ward == WardName::Loss;
    if arguments.previous.is_some() && rehearsal::asked_for(arguments).is_none() {
        return Err(Failure::new("--previous belongs to --on-copy-of or --exam"));
    }
    if arguments.tenth && !is_loss {
        return Err(Failure::new("--tenth belongs to --ward loss"));
    }
    if arguments.shots.is_some() && !arguments.blind && !is_loss {
        return Err(Failure::new("--shots belongs to --blind or --ward loss"));
    }
    if arguments.all && arguments.ward != WardName::Injuries {
        return Err(Failure::new(
            "--all belongs to --ward injuries; --ward loss and --ward start make all by themselves",
        ));
    }
    Ok(())
}

/// Writes what was found; how the run ends.
fn end(arguments: &Arguments, mut document: Document, passed: bool, world: &mut Env<'_>) -> Exit {
    let exit = match passed {
        _ if world.is_interrupted() => Exit::Interrupted,
        true => Exit::Healthy,
        false => Exit::Damaged,
    };
    let closed = arguments.output.close(&mut document, world);
    match closed.and_then(|()| write_reports(arguments, &document, world)) {
        Ok(()) => exit,
        Err(failure) => world.report_failed(&failure),
    }
}

fn tell(arguments: &Arguments, world: &mut Env<'_>, words: &str) {
    if !arguments.output.quiet {
        world.say(&format!("drill: {words}"));
    }
}

/// The programs, and who runs them.
fn installation(
    arguments: &Arguments,
    world: &mut Env<'_>,
) -> Result<(Installation, RunAs), Failure> {
    let swept = sweep()?;
    if swept.folders + swept.servers > 0 {
        tell(
            arguments,
            world,
            &format!(
                "removed {} and stopped {} that an earlier run left behind",
                plural(swept.folders, "directory"),
                plural(swept.servers, "server")
            ),
        );
    }
    let wanted = Wanted {
        bindir: arguments.pg_bindir.clone(),
        major: arguments.pg,
        ..Wanted::default()
    };
    let quiet = arguments.output.quiet;
    let installation = find(&wanted, &mut |line| {
        if !quiet {
            world.say(&format!("drill: {line}"));
        }
    })?;
    let run_as = RunAs::new(arguments.run_as.as_deref())?;
    let words = format!(
        "making a cluster of PostgreSQL {} from {}",
        installation.version,
        installation.bindir.display()
    );
    tell(arguments, world, &words);
    Ok((installation, run_as))
}

fn prepare(
    arguments: &Arguments,
    installation: Installation,
    run_as: RunAs,
) -> Result<Master, Failure> {
    Master::make(
        installation,
        run_as,
        &MasterOptions {
            seed: arguments.seed,
            large: arguments.large,
        },
    )
}

/// The master is read on a copy, so that reading it does not change it.
fn hear_healthy(
    master: &Master,
    readings: &[readings::DatabaseReadings],
) -> Result<oracle::Heard, Failure> {
    let copy = crate::drill::bench_copy::BenchCopy::make(master, "healthy")?;
    let heard = oracle::hear(master, &copy.pgdata, readings);
    let folder = copy.pgdata.parent().map(PathBuf::from).unwrap_or_default();
    std::fs::remove_dir_all(folder)?;
    if !heard.answer.started || heard.answer.crashed {
        return Err(Failure::new(format!(
            "the server does not work on a healthy copy: {}",
            heard.answer.messages.join("; ")
        )));
    }
    Ok(heard)
}

fn unhealthy(document: &CheckDocument) -> Failure {
    let first = document
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Damage);
    let told =
        first.map(|finding| format!("{}: {}: {}", finding.rule, finding.place, finding.message));
    let gap = document
        .coverage
        .not_checked
        .first()
        .map(|entry| format!("{}: {}", entry.what, entry.why));
    Failure::new(format!(
        "the cluster is not healthy before anything hurt it ({}). This is a fault of pgclinic or of this machine; please report it",
        told.or(gap).unwrap_or_default()
    ))
}

fn threads(arguments: &Arguments) -> usize {
    let machine = || std::thread::available_parallelism().map_or(1, usize::from);
    arguments.jobs.unwrap_or_else(machine).max(1)
}

fn declared_drill(
    arguments: &Arguments,
    ward: &Ward<'_>,
    cluster: &pgclinic_cluster::Cluster,
    world: &mut Env<'_>,
) -> Result<(Document, bool), Failure> {
    let targets = InjuryTargets::new(cluster);
    let set = match arguments.injury.as_slice() {
        [] if arguments.all => InjurySet::All,
        [] => InjurySet::Default,
        names => InjurySet::Named(names),
    };
    let plan = matrix::plan(&targets, arguments.seed, arguments.large, set);
    let (planned, mut not_run) = (plan.planned, plan.not_run);
    let bar = Bar::of_steps(
        &arguments.output,
        world.terminal,
        &world.interrupted,
        planned.len() as u64,
    );
    let step = |row: &DrillRow| {
        bar.tell(&drill_row_line(row));
        bar.step(&row.injury);
    };
    let mut rows = matrix::run(
        ward,
        &planned,
        threads(arguments),
        &world.interrupted,
        &step,
    )?;
    bar.finish();
    let interrupted = rows.len() < planned.len() && world.is_interrupted();
    not_run.extend(matrix::left_over(&planned, &rows));
    let all_ran = rows.len() >= planned.len();
    rows.extend(plan.failed.into_iter().map(homeless));
    let outcomes = OutcomeCounts::of(&rows);
    let passed = outcomes.failed == 0 && all_ran;
    let document = DrillDocument {
        schema: "pgclinic.drill/1".into(),
        tool: Tool::this(),
        target: target_of(cluster, "a cluster made for this drill"),
        level: ward.healthy.level,
        coverage: ward.healthy.coverage.clone(),
        server: format!("postgres (PostgreSQL) {}", ward.master.installation.version),
        seed: arguments.seed,
        rows,
        outcomes,
        not_run,
        left_out: plan.left_out,
        passed,
        interrupted,
        elapsed_s: 0.0,
    };
    Ok((Document::Drill(document), passed))
}

/// An injury that found no page to hurt fails the drill.
fn homeless(entry: NotRun) -> DrillRow {
    DrillRow {
        injury: entry.injury,
        variant: "raw".into(),
        place: pgclinic_model::Place::default(),
        wound: String::new(),
        found_by: Vec::new(),
        message: None,
        cause: None,
        missing: Vec::new(),
        unexpected: Vec::new(),
        blind: None,
        server_does_not_look: None,
        server_says: None,
        server_says_true: None,
        with_checksums: None,
        without_checksums: None,
        undone: false,
        way_out: None,
        outcome: RowOutcome::Failed,
        failures: vec![entry.why],
    }
}

fn blind_drill(
    arguments: &Arguments,
    ward: &Ward<'_>,
    cluster: &pgclinic_cluster::Cluster,
    world: &mut Env<'_>,
) -> Result<(Document, bool), Failure> {
    let shots = blind::aim(cluster, arguments.seed, arguments.shots.unwrap_or(SHOTS));
    let bar = Bar::of_steps(
        &arguments.output,
        world.terminal,
        &world.interrupted,
        shots.len() as u64,
    );
    let step = |name: &str| bar.step(name);
    let trials = blind::run(ward, &shots, threads(arguments), &world.interrupted, &step)?;
    bar.finish();
    let shots_left = shots.len().saturating_sub(trials.len()) as u64;
    let passed = shots_left == 0;
    let kinds = blind::score(&trials);
    let mut misses: Vec<_> = trials
        .into_iter()
        .filter(|trial| trial.found_by.is_empty())
        .collect();
    misses.sort_by_key(|trial| !trial.hurts);
    let document = BlindDocument {
        schema: "pgclinic.drill-blind/1".into(),
        tool: Tool::this(),
        target: target_of(cluster, "a cluster made for this drill"),
        level: ward.healthy.level,
        coverage: ward.healthy.coverage.clone(),
        server: format!("postgres (PostgreSQL) {}", ward.master.installation.version),
        seed: arguments.seed,
        kinds,
        misses,
        passed,
        interrupted: shots_left > 0 && world.is_interrupted(),
        shots_left,
        elapsed_s: 0.0,
    };
    Ok((Document::Blind(document), passed))
}

fn loss_drill(
    arguments: &Arguments,
    installation: &Installation,
    run_as: &RunAs,
    world: &mut Env<'_>,
) -> Result<(Document, bool), Failure> {
    let patients = loss::Patients::make(installation, run_as)?;
    let share = match (arguments.shots, arguments.tenth) {
        (Some(count), _) => loss::Share::Random(count),
        (None, true) => loss::Share::Tenth,
        (None, false) => loss::Share::All,
    };
    let planned = loss::count(&patients, share, arguments.seed)?;
    let bar = Bar::of_steps(
        &arguments.output,
        world.terminal,
        &world.interrupted,
        planned as u64,
    );
    let step = |name: &str| bar.step(name);
    let outcome = loss::run(
        &patients,
        (share, arguments.seed),
        threads(arguments),
        &world.interrupted,
        &step,
    )?;
    bar.finish();
    let passed = outcome.cells.iter().all(|cell| cell.passed) && !outcome.cells.is_empty();
    let done = outcome.cells.len() + outcome.not_run.len();
    let cells_left = planned.saturating_sub(done) as u64;
    let document = LossDocument {
        schema: "pgclinic.drill-loss/1".into(),
        tool: Tool::this(),
        target: Target {
            spec: "a cluster made for this drill".into(),
            ..outcome.healthy.target
        },
        level: Level::Full,
        coverage: outcome.healthy.coverage,
        server: format!("postgres (PostgreSQL) {}", installation.version),
        seed: arguments.seed,
        cells: outcome.cells,
        not_run: outcome.not_run,
        passed,
        interrupted: cells_left > 0 && world.is_interrupted(),
        cells_left,
        elapsed_s: 0.0,
    };
    Ok((Document::Loss(document), passed))
}

fn start_drill(
    arguments: &Arguments,
    installation: &Installation,
    run_as: &RunAs,
    world: &mut Env<'_>,
) -> Result<(Document, bool), Failure> {
    let bar = Bar::of_steps(
        &arguments.output,
        world.terminal,
        &world.interrupted,
        start::count() as u64,
    );
    let step = |name: &str| bar.step(name);
    let outcome = start::run(
        (installation, run_as),
        (arguments.seed, threads(arguments)),
        &world.interrupted,
        &step,
    )?;
    bar.finish();
    let passed = outcome.cells.iter().all(|cell| cell.passed) && outcome.not_run.is_empty();
    let cells_left = start::count().saturating_sub(outcome.cells.len()) as u64;
    let document = StartDrillDocument {
        schema: START_DRILL_SCHEMA.into(),
        tool: Tool::this(),
        target: outcome.target,
        server: format!("postgres (PostgreSQL) {}", installation.version),
        seed: arguments.seed,
        cells: outcome.cells,
        not_run: outcome.not_run,
        passed,
        interrupted: cells_left > 0 && world.is_interrupted(),
        cells_left,
        elapsed_s: 0.0,
    };
    Ok((Document::StartDrill(document), passed))
}

fn timed(mut document: Document, start: Instant) -> Document {
    let elapsed = start.elapsed().as_secs_f64();
    match &mut document {
        Document::Drill(drill) => drill.elapsed_s = elapsed,
        Document::Blind(blind) => blind.elapsed_s = elapsed,
        Document::Loss(loss) => loss.elapsed_s = elapsed,
        Document::StartDrill(own) => own.elapsed_s = elapsed,
        Document::Rehearsal(rehearsal) => rehearsal.elapsed_s = elapsed,
        Document::Check(_)
        | Document::Inspect(_)
        | Document::Measure(_)
        | Document::CatalogCost(_)
        | Document::Diff(_)
        | Document::Checksums(_)
        | Document::Salvage(_)
        | Document::Heal(_)
        | Document::Experiment(_)
        | Document::Watch(_) => {}
    }
    document
}

fn write_reports(
    arguments: &Arguments,
    document: &Document,
    world: &mut Env<'_>,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.report {
        write_page(path, document)?;
        // Before the scoreboard: its last line is what is read last.
        tell(
            arguments,
            world,
            &format!("the report is {}", path.display()),
        );
    }
    arguments.output.write_again(document, world)
}

fn write_page(path: &Path, document: &Document) -> Result<(), Failure> {
    let html = by_name("html").ok_or_else(|| Failure::new("there is no form html"))?;
    let options = Options {
        explain: &manual,
        ..Options::default()
    };
    write_file(path, REPORT, |out| html.render(document, &options, out))
}
