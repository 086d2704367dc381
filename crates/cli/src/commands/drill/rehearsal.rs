//! `pgclinic drill --on-copy-of TARGET`, and `--exam DIR`: a user's own cluster is copied, and the
//! copy is hurt.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::RehearsalScore;
use pgclinic_model::plural;
use pgclinic_report::Document;
use pgclinic_servers::{RunAs, Scratch};
use pgclinic_surgery::{DamageBudget, Injury, PageBudget};

use super::{Arguments, end, tell, threads, timed};
use crate::drill::rehearsal::{self, Asking, UntilInterrupted, Wanted};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::near_names;
use crate::target::{self, Opening};

/// Pages that are hurt where nobody says how many.
const PAGES: PageBudget = PageBudget::Count(20);

/// What of a rehearsal was asked for, if anything.
pub(super) fn asked_for<'a>(arguments: &'a Arguments) -> Option<Asked<'a>> {
    match (&arguments.exam, &arguments.on_copy_of) {
        (Some(directory), Some(original)) => Some(Asked::Exam(directory, original)),
        (Some(directory), None) => Some(Asked::Marks(directory)),
        (None, Some(original)) => Some(Asked::Drill(original)),
        (None, None) => None,
    }
}

/// A rehearsal.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    /// Of this original.
    Drill(&'a Path),
    /// In this directory, on a copy of this original.
    Exam(&'a Path, &'a Path),
    /// The marks of the exam in this directory.
    Marks(&'a Path),
}

/// Does what was asked for; an interruption is no failure.
pub(super) fn rehearse(
    arguments: &Arguments,
    asked: Asked<'_>,
    start: Instant,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    match done(arguments, asked, start, world) {
        Err(_) if world.is_interrupted() => Ok(Exit::Interrupted),
        done => done,
    }
}

fn done(
    arguments: &Arguments,
    asked: Asked<'_>,
    start: Instant,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let document = match asked {
        Asked::Drill(original) => drill(arguments, original, world)?,
        Asked::Exam(directory, original) => return exam(arguments, (directory, original), world),
        Asked::Marks(directory) => marks(arguments, directory, world)?,
    };
    let Document::Rehearsal(mut rehearsal) = document else {
        return Err(Failure::new("a rehearsal ends with its own document"));
    };
    rehearsal.previous = previous(arguments)?;
    let passed = rehearsal.passed;
    let document = timed(Document::Rehearsal(rehearsal), start);
    Ok(end(arguments, document, passed, world))
}

fn drill(arguments: &Arguments, original: &Path, world: &mut Env<'_>) -> Result<Document, Failure> {
    let scratch = Scratch::new(&RunAs::new(None)?, arguments.scratch.as_deref())?;
    let cluster = opened(original, world)?;
    let stop = UntilInterrupted(Arc::clone(&world.interrupted));
    let wanted = wanted(arguments, original)?;
    let mut say = |words: &str| tell(arguments, world, words);
    rehearsal::run(&cluster, &wanted, scratch.path(), &mut say, &stop)
}

/// Makes the damaged copy, and keeps its damage to itself.
fn exam(
    arguments: &Arguments,
    (directory, original): (&Path, &Path),
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let cluster = opened(original, world)?;
    let stop = UntilInterrupted(Arc::clone(&world.interrupted));
    let wanted = wanted(arguments, original)?;
    let mut say = |words: &str| tell(arguments, world, words);
    let directory = &absolute(directory)?;
    let injuries = rehearsal::hide(&cluster, &wanted, directory, &mut say, &stop)?;
    let words = format!(
        "{} is damaged in {injuries}, and {} knows which: do not look into it\nfind and mend the damage; the exam is marked by: pgclinic drill --exam {}\n",
        directory.display(),
        rehearsal::key_of(directory).display(),
        directory.display(),
        injuries = plural(injuries, "place")
    );
    world.print(&words)?;
    Ok(Exit::Healthy)
}

fn marks(
    arguments: &Arguments,
    directory: &Path,
    world: &mut Env<'_>,
) -> Result<Document, Failure> {
    let directory = &absolute(directory)?;
    if !rehearsal::key_of(directory).exists() {
        return Err(Failure::new(format!(
            "there is no exam in {}: name what it is to be a copy of with --on-copy-of",
            directory.display()
        )));
    }
    let cluster = opened(directory, world)?;
    let stop = UntilInterrupted(Arc::clone(&world.interrupted));
    let mut say = |words: &str| tell(arguments, world, words);
    rehearsal::mark(&cluster, directory, processors(arguments), &mut say, &stop)
}

/// Files for a while lie beside it.
fn absolute(directory: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(directory);
    absolute.map_err(|error| Failure::new(format!("{}: {error}", directory.display())))
}

fn opened(target: &Path, world: &Env<'_>) -> Result<Cluster, Failure> {
    target::open_cluster(target, Opening::new(world, None))
}

fn wanted<'a>(arguments: &'a Arguments, original: &Path) -> Result<Wanted<'a>, Failure> {
    let injuries = arguments.injury.iter().map(|name| near_names::injury(name));
    let injuries: Vec<&'static Injury> = injuries.collect::<Result<_, _>>()?;
    Ok(Wanted {
        spec: original.display().to_string(),
        database: arguments.database.as_deref(),
        relation: arguments.relation.as_deref(),
        injuries,
        budget: DamageBudget {
            pages: arguments.random.unwrap_or(PAGES),
            lost_segments: arguments.lost_segments.unwrap_or(0),
        },
        seed: arguments.seed,
        threads: processors(arguments),
        server: if arguments.no_server {
            Asking::Never
        } else {
            Asking::IfAtHand
        },
    })
}

fn processors(arguments: &Arguments) -> NonZeroUsize {
    NonZeroUsize::new(threads(arguments)).unwrap_or(NonZeroUsize::MIN)
}

/// The score in the report of an earlier rehearsal.
fn previous(arguments: &Arguments) -> Result<Option<RehearsalScore>, Failure> {
    let Some(path) = &arguments.previous else {
        return Ok(None);
    };
    let unreadable = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    match Document::from_json(&bytes).map_err(|error| unreadable(error.to_string()))? {
        Document::Rehearsal(earlier) => Ok(Some(earlier.score)),
        other => Err(unreadable(format!(
            "it holds {}, and not a rehearsal",
            other.schema()
        ))),
    }
}
