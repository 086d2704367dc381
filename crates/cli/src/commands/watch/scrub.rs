//! `watch --scrub RATE`: `pgclinic check --level pages` of a server's files as a child, slowly,
//! one after the other, each going on where the last one was stopped.
//!
//! Nothing here reads a page. What the child found is kept in a file of its own, so that the age of
//! the last complete scrub is known after a restart.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgclinic_format::control_file::ControlFile;
use pgclinic_model::document::{CheckDocument, DamagedPlace};
use pgclinic_model::{Finding, Severity};
use pgclinic_report::inspect_command;
use pgclinic_watch::{ScrubSource, ScrubStatus, ServerOnDisk};
use serde::{Deserialize, Serialize};

use super::background::Background;
use crate::run_state;

/// Damaged pages that are listed.
const PLACES_MAX: usize = 50;
/// Relations with damage that are listed.
const RELATIONS_MAX: usize = 50;
/// Between two attempts of which the first failed.
const AFTER_FAILURE_S: f64 = 300.0;
const SCHEMA: &str = "pgclinic.scrub/1";

/// How scrubs are made.
#[derive(Debug, Clone)]
pub(super) struct ScrubOptions {
    /// Bytes a second.
    pub(super) rate: NonZeroU64,
    /// Between the begins of two.
    pub(super) every: Duration,
    /// Where states are kept.
    pub(super) state: PathBuf,
    /// This program.
    pub(super) program: PathBuf,
    /// The data directory that the environment names, for a role that may not know it.
    pub(super) pgdata: Option<PathBuf>,
}

/// What is kept of scrubs of one directory.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    schema: String,
    system_identifier: String,
    asked_since: f64,
    /// When the scrub began that is reading, or was stopped.
    begun_at: Option<f64>,
    complete: Option<Complete>,
}

/// What a scrub found that came to its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Complete {
    begun_at: f64,
    ended_at: f64,
    pages: u64,
    unread_bytes: u64,
    damage: BTreeMap<String, u64>,
    damaged_pages: Vec<(String, u64)>,
    places: Vec<DamagedPlace>,
    places_omitted: u64,
}

/// The scrubs of one server.
struct Scrub {
    options: ScrubOptions,
    begun: f64,
    work: Option<(PathBuf, Background, Kept)>,
    failed: Option<(f64, String)>,
    /// Pages of the state of the present one, with the moment at which it was written.
    pages: Option<(SystemTime, u64)>,
}

/// The scrub of one server, to be asked at each sample.
pub(super) fn source(options: ScrubOptions) -> ScrubSource {
    let mut own = Scrub {
        options,
        begun: now(),
        work: None,
        failed: None,
        pages: None,
    };
    ScrubSource::new(move |server| own.status(server))
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

impl Scrub {
    fn status(&mut self, server: &ServerOnDisk) -> ScrubStatus {
        let stopped = self.go_on(server).err();
        let mut status = ScrubStatus {
            clock: now(),
            asked_since: self.begun,
            stopped,
            ..ScrubStatus::default()
        };
        let Some((_, work, kept)) = &self.work else {
            return status;
        };
        status.asked_since = kept.asked_since;
        status.is_reading = kept.begun_at.is_some() && status.stopped.is_none();
        if status.is_reading {
            status.progress = Some(progress_in(&work.log()));
        }
        if let Some(own) = &kept.complete {
            status.complete_at = Some(own.ended_at);
            status.pages.push(("complete", own.pages));
            status.unread_bytes = Some(own.unread_bytes);
            status.damage = own.damage.clone().into_iter().collect();
            status.damaged_pages.clone_from(&own.damaged_pages);
            status.places.clone_from(&own.places);
            status.places_omitted = own.places_omitted;
        }
        if status.is_reading {
            let pages = self.present_pages();
            status.pages.extend(pages.map(|pages| ("present", pages)));
        }
        status
    }

    /// Finds the files, takes what a child has found, and begins the next one where it is time.
    fn go_on(&mut self, server: &ServerOnDisk) -> Result<(), String> {
        let directory = self.directory(server)?;
        if self.work.as_ref().is_none_or(|(own, ..)| *own != directory) {
            let identifier = server.system_identifier.clone().unwrap_or_default();
            let work = Background::open(&self.options.state, &directory)?;
            let kept = kept_of(&work, identifier, self.begun);
            self.work = Some((directory, work, kept));
        }
        let Some((directory, work, kept)) = &mut self.work else {
            return Ok(());
        };
        if let Some(ended) = work.ended() {
            self.failed = match taken(work, kept, ended.code) {
                Ok(()) => None,
                Err(why) => Some((now(), why)),
            };
        }
        if work.is_at_work() {
            return Ok(());
        }
        if work
            .is_taken()
            .map_err(|error| format!("cannot lock the state: {error}"))?
        {
            // Another program, or a child that goes on: what it finds is read as it is written.
            *kept = kept_of(work, kept.system_identifier.clone(), self.begun);
            return Ok(());
        }
        // A child of a parent that was killed may have come to its end since.
        if kept.begun_at.is_some() && work.path("run.json").is_file() {
            taken(work, kept, Some(0))?;
        }
        if let Some((at, why)) = &self.failed
            && now() - at < AFTER_FAILURE_S
        {
            return Err(why.clone());
        }
        if is_due(kept, self.options.every) {
            begin(work, kept, directory, &self.options)?;
        }
        Ok(())
    }

    /// The directory, if it is surely that of this server.
    fn directory(&self, server: &ServerOnDisk) -> Result<PathBuf, String> {
        let of_role = server
            .data_directory
            .as_ref()
            .or(self.options.pgdata.as_ref());
        let directory = of_role.ok_or(
            "this role may not know data_directory (GRANT pg_monitor TO it), and PGDATA names none",
        )?;
        is_of_server(directory, server)?;
        Ok(directory.clone())
    }

    /// Read when the state was written again: once for each GiB.
    fn present_pages(&mut self) -> Option<u64> {
        let (_, work, _) = self.work.as_ref()?;
        let path = work.path("run.state");
        let written = fs::metadata(&path).ok()?.modified().ok()?;
        if self.pages.is_none_or(|(at, _)| at != written) {
            let state = run_state::read(&path).ok()?;
            self.pages = Some((written, state.coverage().pages));
        }
        self.pages.map(|(_, pages)| pages)
    }
}

/// By the number of the cluster and the start of the postmaster: a copy has the same number, and
/// a container may have the same path.
fn is_of_server(directory: &Path, server: &ServerOnDisk) -> Result<(), String> {
    let shown = directory.display();
    let path = directory.join("global/pg_control");
    let bytes = fs::read(&path).map_err(|error| {
        format!(
            "cannot read {}: {error}; the files must be on this machine, and readable for pgclinic",
            path.display()
        )
    })?;
    let control =
        ControlFile::parse(&bytes).map_err(|fault| format!("{}: {fault}", path.display()))?;
    let own = control.system_identifier.to_string();
    match &server.system_identifier {
        None => return Err("this role may not know the number of the cluster, so that its files cannot be distinguished from those of a copy".to_owned()),
        Some(asked) if *asked != own => {
            return Err(format!("{shown} on this machine is of another cluster, {own} and not {asked}"));
        }
        Some(_) => {}
    }
    server.runs_on(directory)
}

fn kept_of(work: &Background, identifier: String, begun: f64) -> Kept {
    let kept: Option<Kept> = work.kept("kept.json");
    let is_same = |own: &Kept| own.schema == SCHEMA && own.system_identifier == identifier;
    kept.filter(is_same).unwrap_or_else(|| Kept {
        schema: SCHEMA.to_owned(),
        system_identifier: identifier.clone(),
        asked_since: begun,
        ..Kept::default()
    })
}

/// The first at once, one that was stopped at once, the next when its time has come.
fn is_due(kept: &Kept, every: Duration) -> bool {
    let Some(complete) = kept.complete.as_ref().filter(|_| kept.begun_at.is_none()) else {
        return true;
    };
    let passed = now() - complete.begun_at;
    // A clock that was set back is no reason to wait for years.
    passed < 0.0 || passed >= every.as_secs_f64()
}

fn begin(
    work: &mut Background,
    kept: &mut Kept,
    directory: &Path,
    options: &ScrubOptions,
) -> Result<(), String> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or("its path is not UTF-8")
    };
    let (state, document) = (
        text(&work.path("run.state"))?,
        text(&work.path("run.json"))?,
    );
    let (directory, rate) = (text(directory)?, format!("{}B/s", options.rate));
    let mut words = vec!["check", &*directory, "--level", "pages", "--rate", &*rate];
    words.extend(["--jobs", "1", "--memory", "64MiB", "--io-priority", "idle"]);
    words.extend([
        "--progress",
        "plain",
        "--format",
        "json",
        "--output",
        &*document,
    ]);
    words.extend(["--state", &*state]);
    let goes_on = kept.begun_at.is_some() && work.path("run.state").is_file();
    if goes_on {
        words.push("--resume");
    } else {
        work.forget(&["run.state", "run.json"]);
        kept.begun_at = Some(now());
    }
    work.keep("kept.json", kept).map_err(|failure| failure.0)?;
    work.start(&options.program, &words)
}

/// What a child found. One that was stopped is gone on with; one that failed begins again.
fn taken(work: &Background, kept: &mut Kept, code: Option<i32>) -> Result<(), String> {
    let begun_at = kept.begun_at.unwrap_or_else(now);
    let document: Option<CheckDocument> = work.kept("run.json");
    work.forget(&["run.json"]);
    match (document, code) {
        (Some(document), Some(0 | 1 | 3)) if !document.interrupted => {
            kept.complete = Some(complete(&document, begun_at));
            kept.begun_at = None;
            work.forget(&["run.state"]);
            work.keep("kept.json", kept).map_err(|failure| failure.0)
        }
        (Some(document), _) if document.interrupted => Ok(()),
        _ => {
            // A state that does not fit is no reason to fail for ever.
            work.forget(&["run.state"]);
            let log = work.log();
            let last = log.lines().rev().find(|line| !line.ends_with("% done"));
            Err(format!(
                "the scrub failed: {}",
                last.unwrap_or("it said nothing")
            ))
        }
    }
}

fn complete(document: &CheckDocument, begun_at: f64) -> Complete {
    let mut own = Complete {
        begun_at,
        ended_at: now(),
        pages: document.coverage.pages,
        unread_bytes: document.coverage.bytes_skipped + document.coverage.bytes_unreadable,
        ..Complete::default()
    };
    let damage = document.findings.iter();
    let mut seen: Option<&Finding> = None;
    for finding in damage.filter(|own| own.severity == Severity::Damage) {
        *own.damage.entry(finding.rule.clone()).or_default() += 1;
        // The page once, however much is wrong on it.
        let is_same = seen.is_some_and(|seen| {
            (&seen.place.path, seen.place.block) == (&finding.place.path, finding.place.block)
        });
        if finding.caused_by.is_some() || is_same {
            continue;
        }
        seen = Some(finding);
        if own.places.len() >= PLACES_MAX {
            own.places_omitted += 1;
            continue;
        }
        own.places.push(DamagedPlace {
            command: inspect_command(&document.target, &finding.place),
            place: finding.place.clone(),
            rule: finding.rule.clone(),
            message: finding.message.clone(),
        });
    }
    let relations = document.relations.iter().map(|own| {
        let pages = own
            .damaged
            .iter()
            .map(|[from, to]| to.saturating_sub(*from))
            .sum();
        let name = match (&own.database, &own.schema, &own.relation) {
            (Some(database), Some(schema), Some(relation)) => {
                format!("{database}.{schema}.{relation}")
            }
            _ => own.path.clone(),
        };
        (name, pages)
    });
    let mut relations: Vec<(String, u64)> = relations.filter(|(_, pages)| *pages > 0).collect();
    relations.sort_by_key(|(_, pages)| std::cmp::Reverse(*pages));
    relations.truncate(RELATIONS_MAX);
    own.damaged_pages = relations;
    own
}

/// From the last line that says `40 % done`.
fn progress_in(log: &str) -> f64 {
    let tenths = log
        .lines()
        .rev()
        .filter_map(|line| line.strip_suffix(" % done"));
    let done = tenths
        .filter_map(|tenth| tenth.trim().parse::<f64>().ok())
        .next();
    done.unwrap_or(0.0) / 100.0
}
