//! `pgclinic injure PGDATA --injury NAME`: surgical damage with a journal, on copies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_model::plan::Change;
use pgclinic_model::{plural, verb_of};
use pgclinic_surgery::{
    Applied, Chosen, Consent, DamageBudget, Disk, Injury, InjuryOptions, InjuryTargets,
    JournalFolder, Operation, PageBudget, PlannedInjuries, PlannedInjury, apply, copy_to, injuries,
    is_marked, plan_named, plan_random, undo,
};

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::journal_beside::journal_beside;
use crate::near_names;
use crate::stillness::Stillness;
use crate::target::{self, Opening};

#[derive(Debug, Args)]
struct Arguments {
    /// A data directory whose server is stopped
    #[arg(value_name = "PGDATA", required_unless_present_any = ["undo", "list"])]
    pgdata: Option<PathBuf>,
    /// The injury; --list shows them
    ///
    /// Several are made together, each at a place of its own. With --random, those to choose from.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["undo", "list", "random", "lost_segments"])]
    injury: Vec<String>,
    /// Injure random pages, such as 2% or 40
    ///
    /// The seed chooses pages and injuries, and the same seed gives the same damage. Pages of TOAST
    /// tables belong to their tables.
    #[arg(long, value_name = "PAGES", value_parser = PageBudget::parse, conflicts_with_all = ["undo", "list", "block", "item"])]
    random: Option<PageBudget>,
    /// Lose random segments of tables as well
    #[arg(long, value_name = "N", conflicts_with_all = ["undo", "list", "block", "item"])]
    lost_segments: Option<u64>,
    /// Injure a copy of it, in this new directory
    ///
    /// The copy is marked with the file pgclinic.drill.
    #[arg(long, value_name = "DIR", conflicts_with = "undo")]
    copy_to: Option<PathBuf>,
    /// Directory for the journal
    ///
    /// By default beside the data directory, as PGDATA.INJURY.journal; what changes is written to
    /// journal.json in it first.
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
    ///
    /// For injuries of TOAST chunks, the table that they belong to will do.
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
                   pgclinic injure COPY --random 2% --lost-segments 3 --seed 7\n  \
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
        let Some(pgdata) = &arguments.pgdata else {
            return Err(Failure::new(
                "name a data directory and an injury; --list shows the injuries",
            ));
        };
        let named = arguments.injury.iter().map(|name| near_names::injury(name));
        let named: Vec<&'static Injury> = named.collect::<Result<_, _>>()?;
        injure(&arguments, pgdata, &named, world)
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
            "undone: {} in {}, {changes} {} taken back and compared\n",
            undone.what,
            undone.pgdata.display(),
            if changes == 1 { "change" } else { "changes" }
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
    named: &[&'static Injury],
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
    let cluster = target::open_cluster(&pgdata, Opening::new(world, None))?;
    let planned = plan(arguments, named, &InjuryTargets::new(&cluster))?;
    let mut words = shown(arguments, &planned);
    if let Some(still) = still {
        still.holds().map_err(|failure| match &arguments.copy_to {
            Some(copy) => Failure::new(format!(
                "{} to it, and its copy {} is of no use",
                failure.0,
                copy.display()
            )),
            None => failure,
        })?;
        let applied = carried_out(arguments, &pgdata, &planned)?;
        words.push_str(&format!(
            "written to {}\nundo: pgclinic injure --undo {}\n",
            pgdata.display(),
            applied.journal.display()
        ));
    }
    print(world, &words)
}

/// What was asked for: named injuries, or random ones within a budget.
fn plan(
    arguments: &Arguments,
    named: &[&'static Injury],
    targets: &InjuryTargets<'_>,
) -> Result<PlannedInjuries, Failure> {
    let options = InjuryOptions {
        database: arguments.database.clone(),
        relation: arguments.relation.clone(),
        block: arguments.block,
        item: arguments.item,
        seed: arguments.seed,
        sealed: arguments.sealed,
    };
    if !is_random(arguments) {
        return Ok(plan_named(targets, named, &options)?);
    }
    let budget = DamageBudget {
        pages: arguments.random.unwrap_or(PageBudget::Count(0)),
        lost_segments: arguments.lost_segments.unwrap_or(0),
    };
    Ok(plan_random(targets, named, &options, budget)?)
}

fn is_random(arguments: &Arguments) -> bool {
    arguments.random.is_some() || arguments.lost_segments.is_some()
}

/// The name of one injury, or of several together.
fn name_of(arguments: &Arguments, planned: &PlannedInjuries) -> String {
    match planned.injuries.as_slice() {
        _ if is_random(arguments) => format!("random-injuries-{}", arguments.seed),
        [(injury, _)] => injury.name.into(),
        several => format!("{}-injuries", several.len()),
    }
}

fn carried_out(
    arguments: &Arguments,
    pgdata: &Path,
    planned: &PlannedInjuries,
) -> Result<Applied, Failure> {
    let name = name_of(arguments, planned);
    let consent = match arguments.this_is_not_production {
        Some(identifier) if !is_marked(pgdata) => Consent::Typed(identifier),
        _ => Consent::Marked,
    };
    let journal = arguments
        .journal
        .clone()
        .unwrap_or_else(|| journal_beside(pgdata, &name));
    let operation = Operation {
        pgdata,
        patch: &planned.patch,
        journal: &journal,
        consent,
        what: &name,
        time: None,
        beside: &[],
        control_file: None,
    };
    Ok(apply(&operation)?)
}

/// The whole plan: one injury with all that is known of it, or several with a line each.
fn shown(arguments: &Arguments, planned: &PlannedInjuries) -> String {
    match planned.injuries.as_slice() {
        [(injury, one)] if !is_random(arguments) => shown_one(injury, one),
        several => shown_together(arguments, planned, several),
    }
}

fn shown_one(injury: &Injury, planned: &PlannedInjury) -> String {
    let damage = &planned.damage;
    let mut words = format!(
        "{}: {}\nplace: {}\n{}",
        injury.name,
        damage.words,
        planned.place,
        changes(planned)
    );
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

fn changes(planned: &PlannedInjury) -> String {
    let changes = planned.patch.changes.iter();
    let line = |change: &Change| match change {
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
    };
    changes.map(line).collect()
}

fn shown_together(arguments: &Arguments, planned: &PlannedInjuries, injuries: &[Chosen]) -> String {
    let mut words = format!(
        "seed {}: {}",
        arguments.seed,
        plural(injuries.len(), "injury")
    );
    if is_random(arguments) {
        words.push_str(&format!(", of {}", plural(planned.pages, "page")));
    }
    words.push('\n');
    for (injury, one) in injuries {
        words.push_str(&format!(
            "{}: {}\n  {}\n{}",
            injury.name,
            one.damage.words,
            one.place,
            changes(one)
        ));
    }
    if planned.left_over > 0 {
        words.push_str(&format!(
            "{} of the budget {} left: no injury fits any other page\n",
            plural(planned.left_over, "page"),
            verb_of(planned.left_over, "are")
        ));
    }
    let must: BTreeSet<&str> = injuries
        .iter()
        .flat_map(|(_, one)| one.damage.must.iter().copied())
        .collect();
    if !must.is_empty() {
        let must: Vec<&str> = must.into_iter().collect();
        words.push_str(&format!("check will say: {}\n", must.join(", ")));
    }
    let blind = injuries
        .iter()
        .filter(|(_, one)| one.damage.must.is_empty())
        .count();
    if blind > 0 {
        words.push_str(&format!("check may not see {blind} of them\n"));
    }
    words
}

fn list() -> String {
    injuries()
        .iter()
        .map(|injury| format!("{:32} {}\n", injury.name, injury.summary))
        .collect()
}

fn print(world: &mut Env<'_>, words: &str) -> Result<Exit, Failure> {
    world.print(words)?;
    Ok(Exit::Healthy)
}
