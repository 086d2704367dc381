//! `pgclinic injure PGDATA --injury NAME`: surgical damage with a journal, on copies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_model::plan::Change;
use pgclinic_surgery::{
    Applied, Consent, Disk, Injury, InjuryOptions, JournalFolder, Operation, PlannedInjury, apply,
    copy_to, injuries, injury_named, is_marked, plan_injury, undo,
};

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::journal_beside::journal_beside;
use crate::stillness::Stillness;
use crate::target::{self, Opening};

#[derive(Debug, Args)]
struct Arguments {
    /// A data directory whose server is stopped
    #[arg(value_name = "PGDATA", required_unless_present_any = ["undo", "list"])]
    pgdata: Option<PathBuf>,
    /// The injury; --list shows them
    #[arg(long, value_name = "NAME", required_unless_present_any = ["undo", "list"])]
    injury: Option<String>,
    /// Injure a copy of it, in this new directory
    ///
    /// The copy is marked with the file pgclinic.drill.
    #[arg(long, value_name = "DIR", conflicts_with = "undo")]
    copy_to: Option<PathBuf>,
    /// Directory for the journal
    ///
    /// By default beside the data directory.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Undo the injury of this journal
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = ["injury", "list"])]
    undo: Option<PathBuf>,
    /// List every injury
    #[arg(long)]
    list: bool,
    /// Only in this database
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Only this relation, as schema.name
    #[arg(long, value_name = "NAME")]
    relation: Option<String>,
    /// Only this block
    #[arg(long, value_name = "N")]
    block: Option<u32>,
    /// Only this line pointer number
    #[arg(long, value_name = "N")]
    item: Option<u16>,
    /// Chooses place and damage
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Make the page's checksum match again
    #[arg(long)]
    sealed: bool,
    /// Show what would be written; write nothing
    #[arg(long)]
    plan: bool,
    /// For an unmarked directory: its system ID
    ///
    /// The data directory carries no mark, and nobody needs it: type its system identifier.
    #[arg(long, value_name = "ID")]
    this_is_not_production: Option<u64>,
}

/// The command `injure`.
pub struct Injure;

impl Command for Injure {
    fn name(&self) -> &'static str {
        "injure"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Damages a copy on purpose, with a journal that undoes it")
            .after_help(
                "Only directories with the file pgclinic.drill are touched; --copy-to makes one.\n\n\
                 Examples:\n  \
                   pgclinic injure PGDATA --copy-to /var/tmp/copy --injury zeroed-sector\n  \
                   pgclinic injure --undo /var/tmp/copy.zeroed-sector.journal",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        if arguments.list {
            return print(world, &list());
        }
        if let Some(journal) = &arguments.undo {
            let words = taken_back(journal, arguments.pgdata.as_deref(), world)?;
            return print(world, &words);
        }
        let (Some(pgdata), Some(name)) = (&arguments.pgdata, &arguments.injury) else {
            return Err(Failure::new(
                "name a data directory and an injury; --list shows the injuries",
            ));
        };
        injure(&arguments, pgdata, injury_named(name)?, world)
    }
}

/// Undoes a journal, in words.
fn taken_back(
    journal: &Path,
    pgdata: Option<&Path>,
    world: &mut Env<'_>,
) -> Result<String, Failure> {
    let home = match pgdata {
        Some(pgdata) => pgdata.to_owned(),
        None => JournalFolder::new(journal).read(&Disk)?.pgdata,
    };
    still(&home, world)?.holds()?;
    let undone = undo(journal, pgdata)?;
    Ok(match undone.changes {
        0 => format!("{} was undone before; nothing was written\n", undone.what),
        changes => format!(
            "undone: {} in {}, {changes} changes taken back and compared\n",
            undone.what,
            undone.pgdata.display()
        ),
    })
}

/// What is written to, or copied, belongs to no server that is running.
fn still(pgdata: &Path, world: &mut Env<'_>) -> Result<Stillness, Failure> {
    let interrupted = Arc::clone(&world.interrupted);
    Stillness::of(pgdata, &interrupted, &mut |words| world.say(words))
}

fn injure(
    arguments: &Arguments,
    pgdata: &Path,
    injury: &Injury,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    if let Some(pid) = target::running_server(pgdata) {
        let why = "its files are never written to. Name a new directory with --copy-to after stopping it, or use a backup";
        return Err(Failure::new(format!(
            "the server with process {pid} is running on {}: {why}",
            pgdata.display()
        )));
    }
    if !pgdata.is_dir() || target::archive_of(pgdata).is_some() {
        let why = "only that can be hurt; restore a backup in archives into a directory first";
        return Err(Failure::new(format!(
            "{} is no data directory, and {why}",
            pgdata.display()
        )));
    }
    let still = if arguments.plan {
        None
    } else {
        Some(still(pgdata, world)?)
    };
    let pgdata = match (&arguments.copy_to, arguments.plan) {
        (Some(copy), false) => copy_to(pgdata, copy)?.pgdata,
        _ => pgdata.to_path_buf(),
    };
    let options = InjuryOptions {
        database: arguments.database.clone(),
        relation: arguments.relation.clone(),
        block: arguments.block,
        item: arguments.item,
        seed: arguments.seed,
        sealed: arguments.sealed,
    };
    let planned = plan_injury(
        &target::open_cluster(&pgdata, Opening::new(world, None))?,
        injury,
        &options,
    )?;
    let mut words = shown(injury, &planned);
    if let Some(still) = still {
        still.holds().map_err(|failure| match &arguments.copy_to {
            Some(copy) => Failure::new(format!(
                "{} to it, and its copy {} is of no use",
                failure.0,
                copy.display()
            )),
            None => failure,
        })?;
        let applied = carried_out(arguments, &pgdata, injury, &planned)?;
        words.push_str(&format!(
            "written to {}\nundo: pgclinic injure --undo {}\n",
            pgdata.display(),
            applied.journal.display()
        ));
    }
    print(world, &words)
}

fn carried_out(
    arguments: &Arguments,
    pgdata: &Path,
    injury: &Injury,
    planned: &PlannedInjury,
) -> Result<Applied, Failure> {
    let consent = match arguments.this_is_not_production {
        Some(identifier) if !is_marked(pgdata) => Consent::Typed(identifier),
        _ => Consent::Marked,
    };
    let journal = arguments
        .journal
        .clone()
        .unwrap_or_else(|| journal_beside(pgdata, injury.name));
    let operation = Operation {
        pgdata,
        patch: &planned.patch,
        journal: &journal,
        consent,
        what: injury.name,
        time: None,
        beside: &[],
        control_file: None,
    };
    Ok(apply(&operation)?)
}

fn shown(injury: &Injury, planned: &PlannedInjury) -> String {
    let damage = &planned.damage;
    let mut words = format!(
        "{}: {}\nplace: {}\n",
        injury.name, damage.words, planned.place
    );
    for change in &planned.patch.changes {
        words.push_str(&match change {
            Change::Bytes {
                path,
                offset,
                after,
                ..
            } => format!("  {path}: {} bytes at {offset}\n", after.len()),
            Change::Cut { path, len, .. } => format!("  {path}: truncated to {len} bytes\n"),
            Change::Remove { path, .. } => format!("  {path}: removed\n"),
            Change::Extend { path, after, .. } => {
                format!("  {path}: {} bytes longer\n", after.len())
            }
            other => format!("  {}: made\n", other.path()),
        });
    }
    if !damage.must.is_empty() {
        words.push_str(&format!("check will say: {}\n", damage.must.join(", ")));
    }
    if let Some(why) = damage.blind {
        words.push_str(&format!("check may not see it: {why}\n"));
    }
    words.push_str(&format!(
        "without the journal: {}\n",
        injury.recovery_advice
    ));
    words
}

fn list() -> String {
    injuries()
        .iter()
        .map(|injury| format!("{:32} {}\n", injury.name, injury.summary))
        .collect()
}

fn print(world: &mut Env<'_>, words: &str) -> Result<Exit, Failure> {
    write!(world.stdout, "{words}")
        .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
    Ok(Exit::Healthy)
}
