//! `pgclinic salvage TARGET --to DEST`: the rows out of files that no server opens.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches, ValueEnum};
use pgclinic_report::Document;
use pgclinic_rows::forms::{FORMS, form_named};
use pgclinic_rows::{
    Account, Durability, Encoding, Outcome, Partial, Rows, SalvageOptions, salvage,
};

use pgclinic_rows::schema::given::{GivenTable, tables_in};

use crate::args::{LoadArgs, SelectionArgs};
use crate::commands::Command;
use crate::exit::{Exit, Failure};
use crate::output::{Color, OutputArgs, ProgressStyle};
use crate::progress::Bar;
use crate::target;
use crate::world::World;

/// The account's name in the destination.
const ACCOUNT: &str = "salvage.json";

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
    /// A data directory whose server is stopped
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// A new or empty folder: one file a table, DEST/<database>/<schema>.<table>.<form>, and the account, salvage.json
    #[arg(long, value_name = "DEST")]
    to: PathBuf,
    /// Also the schema, as SQL that psql takes: types, tables, functions and views before the place of the data; indexes,
    /// constraints and triggers after it
    #[arg(long, value_name = "FILE")]
    ddl: Option<PathBuf>,
    /// CREATE TABLE statements for tables whose columns the catalogs no longer give; other statements are passed over, so that
    /// the output of pg_dump -s serves
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Form of the files
    #[arg(long, value_name = "FORM", default_value = FORMS.first().map_or("", |form| form.name()),
        value_parser = clap::builder::PossibleValuesParser::new(FORMS.iter().map(|form| form.name())))]
    format: String,
    /// Which versions of rows
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = RowsName::Live)]
    rows: RowsName,
    /// Also columns that are generated and stored
    #[arg(long)]
    generated: bool,
    /// Also dropped columns, as bytes
    #[arg(long)]
    dropped: bool,
    /// Of a long value with missing chunks, write what is left instead of null
    #[arg(long)]
    partial_values: bool,
    /// Encoding of the files
    #[arg(long, value_enum, value_name = "ENCODING", default_value_t = EncodingName::Utf8)]
    encoding: EncodingName,
    /// Do not force the files to the disk
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Colours in the summary
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, help_heading = "Output")]
    color: Color,
    /// Progress on stderr
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressStyle::Auto, help_heading = "Output")]
    progress: ProgressStyle,
    /// Say nothing but errors
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

/// See the module.
pub struct Salvage;

impl Command for Salvage {
    fn name(&self) -> &'static str {
        "salvage"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Gets the rows out of files that no server opens, and accounts for what it could not get")
            .after_help("Nothing is written to the target. Exit code 0 whole, 1 something is lost, partial, carved or uncertain, 3 incomplete (something could not be looked at, or the cluster needs recovery).")
    }

    fn run(&self, matches: &ArgMatches, world: &mut World<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        let cluster = target::open_cluster(&arguments.target, Some(&arguments.load))?;
        let options = options(&arguments, &world.temp_folder)?;
        let summary = arguments.summary();
        let bar = Bar::of_bytes(&summary, world.terminal, &world.interrupted);
        let account = salvage(&cluster, &options, &bar);
        bar.finish();
        let mut account = account?;
        account.elapsed_s = start.elapsed().as_secs_f64();
        let exit = exit_of(&account);
        let document = Document::Salvage(account);
        let json = OutputArgs {
            format: "json".into(),
            output: Some(arguments.to.join(ACCOUNT)),
            ..arguments.summary()
        };
        json.write(&document, world)?;
        if !arguments.quiet {
            summary.write(&document, world)?;
        }
        Ok(exit)
    }
}

impl Arguments {
    /// The account as text on stdout.
    fn summary(&self) -> OutputArgs {
        OutputArgs {
            format: "text".into(),
            output: None,
            color: self.color,
            progress: self.progress,
            quiet: self.quiet,
            verbose: false,
        }
    }
}

fn options(arguments: &Arguments, temp_folder: &Path) -> Result<SalvageOptions, Failure> {
    let form = form_named(&arguments.format)
        .ok_or_else(|| Failure::new(format!("there is no form {:?}", arguments.format)))?;
    Ok(SalvageOptions {
        destination: arguments.to.clone(),
        form,
        rows: match arguments.rows {
            RowsName::Live => Rows::Live,
            RowsName::All => Rows::All,
        },
        generated: arguments.generated,
        dropped: arguments.dropped,
        ddl: arguments.ddl.clone(),
        given: given(arguments)?,
        partial: match arguments.partial_values {
            true => Partial::Kept,
            false => Partial::Null,
        },
        encoding: match arguments.encoding {
            EncodingName::Utf8 => Encoding::Utf8,
            EncodingName::Raw => Encoding::Raw,
        },
        durability: match arguments.no_sync {
            true => Durability::Buffered,
            false => Durability::Synced,
        },
        threads: arguments.load.threads(),
        memory_bytes: arguments.load.memory.get(),
        selection: arguments.selection.selection(),
        spec: target::spec_of(&arguments.target),
        spill_folder: arguments.load.spill_folder(temp_folder),
    })
}

/// The tables that a person describes.
fn given(arguments: &Arguments) -> Result<Vec<GivenTable>, Failure> {
    let Some(path) = &arguments.schema else {
        return Ok(Vec::new());
    };
    let failure = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failure(error.to_string()))?;
    tables_in(&text).map_err(failure)
}

fn exit_of(account: &Account) -> Exit {
    match account.outcome {
        _ if account.interrupted => Exit::Interrupted,
        Outcome::Damaged => Exit::Damaged,
        Outcome::Incomplete => Exit::Incomplete,
        Outcome::Whole => Exit::Healthy,
    }
}
