//! `pgclinic salvage TARGET --to DEST`: the rows out of files that no server opens.

mod file;
mod folder;
mod recover;
mod stream;
mod text_settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use pgclinic_report::Document;
use pgclinic_salvage::formats::{FORMS, form_named};
use pgclinic_salvage::{
    Destination, Durability, Encoding, LOCK_WAIT, Partial, Rows, SalvageError, SalvageOptions,
    Stream, TextStyle, end_of_load, end_of_work, salvage, salvage_live,
};

use pgclinic_model::Progress;
use pgclinic_model::document::{NotChecked, Outcome, SalvageDestination, SalvageReport};
use pgclinic_salvage::schema::given::{GivenTable, tables_in};
use pgclinic_servers::ConnectionTarget;
use stream::Parts;
use text_settings::TextArgs;

use crate::args::{ChainArgs, LoadArgs, RunningArgs, SelectionArgs};
use crate::beside_a_server;
use crate::commands::Command;
use crate::destination::refuse_early_beside;
use crate::env::{Env, Terminal};
use crate::exit::{Exit, FailOnArgs, Failure, ResultClass};
use crate::near_names::nothing_selected;
use crate::output::{Color, OutputArgs, ProgressStyle};
use crate::privacy::PrivacyArgs;
use crate::progress::Bar;
use crate::server_copy::ServerCopy;
use crate::stillness::Stillness;
use crate::stream::is_url;
use crate::target::{self, Opening};
use crate::undetected_server::{UndetectedServer, Watch};

/// The account's name in the destination, and that of its page.
const ACCOUNT: &str = "salvage.json";
const PAGE: &str = "salvage.html";
const LOAD_SCRIPT: &str = "load.sql";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RowsName {
    /// Those that a server would show, and those whose fate nothing tells
    Live,
    /// All versions that can be read, with xmin, xmax, ctid and verdict in front
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum EncodingName {
    /// UTF-8, whatever the database has
    Utf8,
    /// The database's own bytes
    Raw,
}

#[derive(Debug, Args)]
struct Arguments {
    /// Data directory or its remains, base backup, file, or server URL
    ///
    /// A data directory, whose server may be running, or what is left of one: a directory with
    /// base/, or with the files of one database; a base backup, as a directory or as base.tar; one
    /// relation file, with --columns or --schema; or a database of a running server,
    /// postgres://user:password@host:port/name.
    ///
    /// Where none is given it is $PGDATA.
    #[arg(value_name = "TARGET", required = false)]
    target: PathBuf,
    #[command(flatten)]
    chain: ChainArgs,
    /// Directory, postgres:// URL, or - for stdout
    ///
    /// A new or empty directory gets one file a table, DEST/<database>/<schema>.<table>.<format>,
    /// and the account, salvage.json, with its page, salvage.html.
    ///
    /// In a database, postgres://user:password@host:port/name, the schema is made and loaded where
    /// its schemas are empty; given again after a failure, the load goes on.
    ///
    /// On stdout the rows of one table are written; the summary goes to stderr.
    #[arg(long, value_name = "DEST", required_unless_present = "guess")]
    to: Option<PathBuf>,
    /// Where the account goes
    ///
    /// By default DEST/salvage.json for a directory.
    #[arg(long, value_name = "FILE")]
    account: Option<PathBuf>,
    /// Also write the schema, as SQL for psql
    ///
    /// Types, tables, functions and views come before the place of the data; indexes, constraints
    /// and triggers after it.
    #[arg(long, value_name = "FILE")]
    ddl: Option<PathBuf>,
    /// CREATE TABLE statements where catalogs are lost
    ///
    /// For tables whose columns the catalogs no longer give, or for one relation file. Other
    /// statements are passed over, so that the output of pg_dump -s serves.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Columns of one relation file: 'id int4, body text'
    ///
    /// Dropped columns are listed too, as in 'id int4, old dropped(4, 4), body text'.
    #[arg(long, value_name = "COLUMNS", conflicts_with = "schema")]
    columns: Option<String>,
    /// Do not read the catalogs; guess columns from rows
    ///
    /// Every file of rows is a table, with the columns that --schema gives after a line `-- file
    /// base/5/16384`, else with columns guessed from its rows. Databases whose pg_class cannot be
    /// read are always taken so.
    #[arg(long, conflicts_with_all = ["columns", "toast", "ddl"])]
    without_catalogs: bool,
    /// Print only a guess of the columns, as CREATE TABLE
    ///
    /// For one relation file, or for all in a data directory, from the rows, with the confidence of
    /// each column. Correct the statements and give them with --schema.
    #[arg(long, conflicts_with_all = ["schema", "columns", "to"])]
    guess: bool,
    /// The TOAST file that belongs to the relation file
    #[arg(long, value_name = "FILE")]
    toast: Option<PathBuf>,
    /// Format
    #[arg(long, value_name = "FORMAT", hide_default_value = true, default_value = FORMS.first().map_or("", |form| form.name()),
        value_parser = clap::builder::PossibleValuesParser::new(FORMS.iter().map(|form| form.name())))]
    format: String,
    /// Row versions
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = RowsName::Live)]
    rows: RowsName,
    /// Also generated columns that are stored
    ///
    /// A server as the destination computes them itself.
    #[arg(long)]
    generated: bool,
    /// Also dropped columns, as bytes; to files only
    #[arg(long)]
    dropped: bool,
    /// Write what is left of an incomplete TOASTed value
    ///
    /// By default such a value is written as null.
    #[arg(long)]
    partial_values: bool,
    /// Check written rows against keys and index counts
    ///
    /// No primary key or unique constraint may hold a value twice, no foreign key may lack its row,
    /// and there must be as many rows as an index leads to. Tables with keys are read again.
    #[arg(long)]
    verify: bool,
    /// Encoding
    ///
    /// A server as the destination takes UTF-8.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = EncodingName::Utf8)]
    encoding: EncodingName,
    /// Let a real server recover a copy, and salvage that
    ///
    /// For a cluster that crashed. Without this option the write-ahead log is applied in memory.
    #[arg(long)]
    recover: bool,
    /// Directory for the copy of --recover
    ///
    /// It needs as much room as the cluster.
    #[arg(long, value_name = "DIR", requires = "recover")]
    recover_in: Option<PathBuf>,
    /// Go on in the directory of a salvage that ended early
    ///
    /// The cluster and the options must be the same. Tables that are whole are not written again.
    #[arg(long)]
    resume: bool,
    /// Do not force the files to the disk
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    running: RunningArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, help_heading = "Output")]
    color: Color,
    /// Progress
    ///
    /// It goes to stderr.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressStyle::Auto, help_heading = "Output")]
    progress: ProgressStyle,
    /// Print only errors
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    privacy: PrivacyArgs,
    #[command(flatten)]
    fail_on: FailOnArgs,
}

/// The command `salvage`.
pub struct Salvage;

impl Command for Salvage {
    fn name(&self) -> &'static str {
        "salvage"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Gets the rows out of files that no server opens")
            .long_about(
                "Gets the rows out of files that no server opens, and accounts for what it\n\
                 could not get",
            )
            .after_help(
                "Nothing is written to the target. While a server runs, rows are those of the end\n\
                 of the write-ahead log on disk.\n\n\
                 Exit codes: 0 whole, 1 something is lost, partial, carved or uncertain, 2 could\n\
                 not work or could not write the account, 3 incomplete (something could not be\n\
                 read, or the cluster needs recovery). --fail-on says which of them count.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        if arguments.guess {
            return file::guess(&arguments, world);
        }
        let start = Instant::now();
        arguments.refuse_files_early()?;
        arguments.privacy.refuse_early()?;
        let (options, parts) = options(&arguments, world)?;
        let server = target::named_server(&arguments.target, world)?;
        let loaded = match &options.destination {
            Destination::Server(target) => Some(target.clone()),
            Destination::Folder(_) | Destination::Stream(_) => None,
        };
        let summary = arguments.summary();
        let bar = Bar::of_bytes(&summary, world.terminal, &world.interrupted);
        let destination = destination_of(&options);
        let account = salvaged(&arguments, server, options, parts, &bar, world);
        bar.finish();
        let mut account = account?;
        account.destination = Some(with_load_script(destination));
        account.elapsed_s = start.elapsed().as_secs_f64();
        let exit = arguments
            .fail_on
            .exit(&classes_of(&account), account.interrupted);
        let mut document = Document::Salvage(account);
        arguments.summary().close(&mut document, world)?;
        for (format, path) in arguments.account_files() {
            let file = OutputArgs {
                format: format.into(),
                output: Some(path),
                ..arguments.summary()
            };
            if let Err(failure) = file.write_again(&document, world) {
                return Ok(world.report_failed(&failure));
            }
        }
        if exit != Exit::Interrupted {
            end(&arguments, loaded.as_deref())?;
        }
        if !arguments.quiet {
            summarize(&arguments, &document, world)?;
        }
        Ok(exit)
    }
}

/// Where the rows go.
fn destination_of(options: &SalvageOptions) -> SalvageDestination {
    let (kind, spec) = match &options.destination {
        Destination::Folder(path) => ("directory", Some(path.display().to_string())),
        Destination::Server(target) => ("server", Some(target.to_string())),
        Destination::Stream(_) => ("stdout", None),
    };
    SalvageDestination {
        kind: kind.into(),
        spec,
        load_script: None,
        with_schema: options.ddl.is_some(),
    }
}

/// The directory that was made goes by its whole path, with what loads it, if it could be written.
fn with_load_script(mut destination: SalvageDestination) -> SalvageDestination {
    if let ("directory", Some(path)) = (destination.kind.as_str(), &destination.spec) {
        let path = PathBuf::from(path);
        let is_there = path.join(LOAD_SCRIPT).is_file();
        destination.load_script = is_there.then(|| LOAD_SCRIPT.to_owned());
        destination.spec = Some(target::spec_of(&path));
    }
    destination.with_schema &= destination.load_script.is_some();
    destination
}

/// The account is written: there is nothing to be gone on with.
fn end(arguments: &Arguments, loaded: Option<&ConnectionTarget>) -> Result<(), SalvageError> {
    match loaded {
        Some(target) => end_of_load(target),
        None if arguments.is_to_folder() => end_of_work(arguments.to()),
        None => Ok(()),
    }
}

fn salvaged(
    arguments: &Arguments,
    server: Option<ConnectionTarget>,
    mut options: SalvageOptions,
    parts: Option<Parts>,
    progress: &dyn Progress,
    world: &mut Env<'_>,
) -> Result<SalvageReport, Failure> {
    let is_chain = !arguments.chain.incremental.is_empty();
    if is_chain && (server.is_some() || arguments.recover) {
        let why = "--incremental is for backups that are read as they are, not for a server and not with --recover";
        return Err(Failure::new(why));
    }
    let is_file =
        arguments.target.is_file() && !pgclinic_source::tar::is_archive(&arguments.target);
    let is_one_file = is_file && !is_chain;
    if arguments.verify && (server.is_some() || is_one_file || arguments.without_catalogs) {
        let why = "--verify needs the catalogs of a data directory or backup, which tell the keys";
        return Err(Failure::new(why));
    }
    if arguments.running.running && server.is_some() {
        let why = "--running is for a data directory, not for the URL of a server";
        return Err(Failure::new(why));
    }
    if let Some(target) = server {
        options.spec = target.to_string();
        return Ok(salvage_live(&target, &options, progress)?);
    }
    if arguments.running.running && (is_file || arguments.recover) {
        let why = "--running is for a data directory on which a server is running, and not with --recover";
        return Err(Failure::new(why));
    }
    if is_one_file {
        return file::run(arguments, options, parts, progress, world);
    }
    if arguments.columns.is_some() || arguments.toast.is_some() {
        let why = "--columns and --toast are for one relation file; for tables of a data directory there is --schema";
        return Err(Failure::new(why));
    }
    options.given = given(arguments)?;
    let recovered = if arguments.recover {
        Some(recovered(arguments, world)?)
    } else {
        None
    };
    let pgdata = recovered
        .as_ref()
        .map_or(&arguments.target, |copy| &copy.pgdata);
    let opening = Opening::new(world, Some(&arguments.load))
        .with_chain(&arguments.chain)
        .with_unseen(UndetectedServer::told(arguments.running.running))
        .reading_again();
    let cluster = folder::open(pgdata, opening)?;
    let unseen = opening.unseen_beside(&cluster, pgdata);
    let watch = Watch::begin(&cluster);
    beside_a_server::let_others_go_first(arguments.load.io_priority, cluster.is_running(), world);
    if options.without_catalogs && matches!(options.destination, Destination::Server(_)) {
        let why =
            "without catalogs there is no schema to be made on a server: salvage into a directory";
        return Err(Failure::new(why));
    }
    let read = &cluster;
    let spec = options.spec.clone();
    let work = move || {
        salvage(read, &options, progress).map_err(|error| match error {
            SalvageError::NothingSelected => nothing_selected(&arguments.selection, &spec, &[read]),
            other => other.into(),
        })
    };
    let mut account = stream::taken(parts, world, work)?;
    account
        .not_salvaged
        .extend(unseen.map(UndetectedServer::gap));
    if let Some(news) = watch.seen(&cluster) {
        account.cast_doubt(NotChecked {
            inherent: false,
            why: format!(
                "{}; with --running it is read rightly: what seems lost here may be whole",
                news.gap().why
            ),
            ..news.gap()
        });
    }
    Ok(account)
}

/// What was written, on stdout; after a stream on stderr.
fn summarize(
    arguments: &Arguments,
    document: &Document,
    world: &mut Env<'_>,
) -> Result<(), Failure> {
    if !arguments.is_stream() {
        return arguments.summary().write_again(document, world);
    }
    let Env {
        stderr, terminal, ..
    } = world;
    let mut none = std::io::sink();
    let mut beside = Env {
        stdin: &mut std::io::empty(),
        stdout: &mut **stderr,
        stderr: &mut none,
        terminal: Terminal {
            stdout: terminal.stderr,
            ..*terminal
        },
        started: world.started,
        host: world.host.clone(),
        temp_folder: world.temp_folder.clone(),
        pgdata: None,
        config_files: Vec::new(),
        server_defaults: Default::default(),
        passwords: Default::default(),
        interrupted: Arc::clone(&world.interrupted),
        program: None,
        state_directory: None,
        has_own_process: world.has_own_process,
    };
    arguments.summary().write_again(document, &mut beside)
}

fn recovered(arguments: &Arguments, world: &mut Env<'_>) -> Result<ServerCopy, Failure> {
    // Refuses what a server is running on, and what is no cluster.
    target::open_cluster(&arguments.target, Opening::new(world, None))?;
    if !arguments.target.is_dir() {
        let why = "only a directory can be recovered; restore the backup into one first";
        return Err(Failure::new(format!(
            "{}: {why}",
            arguments.target.display()
        )));
    }
    let interrupted = Arc::clone(&world.interrupted);
    let mut say = |words: &str| {
        if !arguments.quiet {
            world.say(words);
        }
    };
    let still = Stillness::of(&arguments.target, &interrupted, &mut say)?;
    recover::recover(
        &arguments.target,
        arguments.recover_in.as_deref(),
        &still,
        &mut |_| {},
    )
}

impl Arguments {
    /// The destination; without one nothing is written.
    fn to(&self) -> &Path {
        self.to.as_deref().unwrap_or(Path::new(""))
    }

    /// Refuses files beside the destination that cannot be written or would lie in the target.
    fn refuse_files_early(&self) -> Result<(), Failure> {
        let targets = self.chain.behind(&self.target);
        let files = [("account", &self.account), ("schema", &self.ddl)];
        let mut named = files
            .into_iter()
            .filter_map(|(what, path)| Some((what, path.as_deref()?)));
        named.try_for_each(|(what, path)| refuse_early_beside(self.to(), path, what, &targets))
    }

    /// Where the account goes, and its page, which only a directory has; none of both for a server
    /// that has no file for it.
    fn account_files(&self) -> Vec<(&'static str, PathBuf)> {
        let beside = |name: &str| self.is_to_folder().then(|| self.to().join(name));
        let account = self.account.clone().or_else(|| beside(ACCOUNT));
        let files = [("json", account), ("html", beside(PAGE))];
        let named = files.into_iter();
        named
            .filter_map(|(format, path)| Some((format, path?)))
            .collect()
    }

    fn is_to_folder(&self) -> bool {
        !self.is_stream() && !self.to().to_str().is_some_and(is_url)
    }

    /// The rows go to stdout.
    fn is_stream(&self) -> bool {
        self.to() == Path::new("-")
    }

    /// The account as text.
    fn summary(&self) -> OutputArgs {
        OutputArgs {
            format: "text".into(),
            output: None,
            color: self.color,
            progress: self.progress,
            quiet: self.quiet,
            verbose: false,
            privacy: self.privacy.clone(),
        }
    }
}

fn options(
    arguments: &Arguments,
    world: &mut Env<'_>,
) -> Result<(SalvageOptions, Option<Parts>), Failure> {
    let form = form_named(&arguments.format)
        .ok_or_else(|| Failure::new(format!("there is no form {:?}", arguments.format)))?;
    let mut parts = None;
    let destination = match target::named_server(arguments.to(), world)? {
        Some(target) => Destination::Server(Box::new(target)),
        None if arguments.is_stream() => {
            let (stream, taken) = Stream::new();
            parts = Some(taken);
            Destination::Stream(stream)
        }
        None => Destination::Folder(arguments.to().to_owned()),
    };
    if arguments.verify && !matches!(destination, Destination::Folder(_)) {
        let why = "--verify is for files in a directory: a server holds the rows to their keys when it makes the keys";
        return Err(Failure::new(why));
    }
    if arguments.resume && parts.is_some() {
        let why = "--resume goes on in a directory: what went into a stream is gone";
        return Err(Failure::new(why));
    }
    let text = arguments.text.style()?;
    let is_for_servers = form.name() == "sql" || matches!(destination, Destination::Server(_));
    if is_for_servers && text != TextStyle::default() {
        let why = "the options of text are for csv, copy and jsonl: what a server reads is written as any server reads it";
        return Err(Failure::new(why));
    }
    let options = SalvageOptions {
        destination,
        form,
        rows: match arguments.rows {
            RowsName::Live => Rows::Live,
            RowsName::All => Rows::All,
        },
        generated: arguments.generated,
        dropped: arguments.dropped,
        ddl: arguments.ddl.clone(),
        given: Vec::new(),
        without_catalogs: arguments.without_catalogs,
        partial: if arguments.partial_values {
            Partial::Kept
        } else {
            Partial::Null
        },
        verify: arguments.verify,
        encoding: match arguments.encoding {
            EncodingName::Utf8 => Encoding::Utf8,
            EncodingName::Raw => Encoding::Raw,
        },
        text,
        durability: if arguments.no_sync {
            Durability::Buffered
        } else {
            Durability::Synced
        },
        resume: arguments.resume,
        threads: arguments.load.threads(),
        memory: arguments.load.memory_plan(),
        selection: arguments.selection.selection(),
        spec: target::spec_of_target(&arguments.target, &arguments.chain, world),
        spill_folder: arguments.load.spill_folder(&world.temp_folder),
        lock_wait: LOCK_WAIT,
    };
    Ok((options, parts))
}

/// The tables that a user describes.
fn given(arguments: &Arguments) -> Result<Vec<GivenTable>, Failure> {
    let Some(path) = &arguments.schema else {
        return Ok(Vec::new());
    };
    let failure = |why: String| Failure::new(format!("{}: {why}", path.display()));
    tables_in(&read_text(path)?).map_err(failure)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let failure = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    std::fs::read_to_string(path).map_err(failure)
}

/// The classes that hold for what was salvaged. A recovery that is due is done in memory; where it
/// cannot be, rows are missing, and the account is incomplete.
fn classes_of(account: &SalvageReport) -> Vec<ResultClass> {
    let mut gaps = account.not_salvaged.iter();
    let has_gaps = account.outcome == Outcome::Incomplete || gaps.any(|gap| !gap.inherent);
    let is_damaged = account.outcome == Outcome::Damaged;
    let mut classes = Vec::new();
    classes.extend(is_damaged.then_some(ResultClass::Damage));
    classes.extend(has_gaps.then_some(ResultClass::Incomplete));
    classes
}
