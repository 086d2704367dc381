//! `watch --scrub RATE`: `pgclinic check --level pages` of a server's files, slowly. Nothing here
//! reads a page.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pgclinic_model::document::{CheckDocument, DamagedPlace};
use pgclinic_model::{Finding, Severity};
use pgclinic_report::inspect_command;
use pgclinic_watch::{FileSource, ScrubStatus, ServerOnDisk};
use serde::{Deserialize, Serialize};

use super::background::Background;
use super::own_files::{directory_of, relation_bytes};
use super::repeated::{Extent, Job, Outcome, Repeated, Schedule, bytes_in, now, written_at};
use crate::run_state;

/// Damaged pages that are listed.
const PLACES_MAX: usize = 50;
/// The rule of a file that ends within a block.
const PARTIAL_BLOCK: &str = "partial-block";
/// Relations with damage that are listed.
const RELATIONS_MAX: usize = 50;

/// What a scrub found that came to its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Found {
    pages: u64,
    unread_bytes: u64,
    damage: BTreeMap<String, u64>,
    damaged_pages: Vec<(String, u64)>,
    #[serde(default)]
    partial_blocks: Vec<(String, u64)>,
    places: Vec<DamagedPlace>,
    places_omitted: u64,
}

struct Scrub {
    pgdata: Option<PathBuf>,
    runs: Repeated<Found>,
    /// Pages of the state of the present one, with the moment at which it was written.
    pages: Option<(SystemTime, u64)>,
}

/// The scrub of one server, to be asked at each sample.
pub(super) fn source(
    rate: NonZeroU64,
    schedule: Schedule,
    pgdata: Option<PathBuf>,
) -> FileSource<ScrubStatus> {
    let rate = format!("{rate}B/s");
    let words = [
        "check", "--level", "pages", "--jobs", "1", "--memory", "64MiB",
    ];
    let more = ["--io-priority", "idle", "--rate", &rate];
    let job = Job {
        name: "scrub",
        words: words.into_iter().chain(more).map(str::to_owned).collect(),
        resumes: true,
        read: found,
        extent,
    };
    let mut own = Scrub {
        pgdata,
        runs: Repeated::new(schedule, job),
        pages: None,
    };
    FileSource::new(move |server| own.status(server))
}

impl Scrub {
    fn status(&mut self, server: &ServerOnDisk) -> ScrubStatus {
        let stopped = self.go_on(server).err();
        let mut status = ScrubStatus {
            clock: now(),
            asked_since: self.runs.asked_since(),
            stopped,
            ..ScrubStatus::default()
        };
        if let Some(own) = self.runs.last() {
            let found = &own.found;
            status.complete_at = Some(own.ended_at);
            status.pages.push(("complete", found.pages));
            status.unread_bytes = Some(found.unread_bytes);
            status.damage = found.damage.clone().into_iter().collect();
            status.damaged_pages.clone_from(&found.damaged_pages);
            status.partial_blocks.clone_from(&found.partial_blocks);
            status.places.clone_from(&found.places);
            status.places_omitted = found.places_omitted;
        }
        if status.stopped.is_none()
            && let Some((work, extent)) = self.runs.present()
        {
            status.is_reading = true;
            status.progress = extent.done_with(bytes_in(&work.log()));
            let pages = self.present_pages();
            status.pages.extend(pages.map(|pages| ("present", pages)));
        }
        status
    }

    fn go_on(&mut self, server: &ServerOnDisk) -> Result<(), String> {
        let directory = directory_of(server, self.pgdata.as_deref())?;
        let identifier = server.system_identifier.as_deref().unwrap_or_default();
        self.runs.go_on(&directory, identifier)
    }

    /// Read when the state was written again: once for each GiB.
    fn present_pages(&mut self) -> Option<u64> {
        let (work, _) = self.runs.present()?;
        let path = work.path("run.state");
        let written = written_at(&path)?;
        if self.pages.is_none_or(|(at, _)| at != written) {
            let state = run_state::read(&path).ok()?;
            self.pages = Some((written, state.coverage().pages));
        }
        self.pages.map(|(_, pages)| pages)
    }
}

fn extent(work: &Background, directory: &Path) -> Extent {
    let state = run_state::read(&work.path("run.state"));
    Extent {
        total: relation_bytes(directory),
        done: state.map_or(0, |state| state.coverage().bytes_seen),
    }
}

fn found(work: &Background) -> Outcome<Found> {
    match work.kept::<CheckDocument>("run.json") {
        Some(document) if document.interrupted => Outcome::Stopped,
        Some(document) => Outcome::Complete(of_document(&document)),
        None => Outcome::Failed,
    }
}

fn of_document(document: &CheckDocument) -> Found {
    let mut own = Found {
        pages: document.coverage.pages,
        unread_bytes: document.coverage.bytes_skipped + document.coverage.bytes_unreadable,
        ..Found::default()
    };
    let damage = document.findings.iter();
    let mut before: Option<&Finding> = None;
    for finding in damage.filter(|own| own.severity == Severity::Damage) {
        *own.damage.entry(finding.rule.clone()).or_default() += 1;
        // A page stands there once, however much is wrong on it.
        let is_same = before.is_some_and(|before| {
            (&before.place.path, before.place.block) == (&finding.place.path, finding.place.block)
        });
        if finding.caused_by.is_some() || is_same {
            continue;
        }
        before = Some(finding);
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
    own.damaged_pages = damaged_pages(document);
    own.partial_blocks = partial_blocks(document);
    own
}

/// Beside a server that is a note: a file may be growing. A server writes whole blocks, and the
/// check has had its second look.
fn partial_blocks(document: &CheckDocument) -> Vec<(String, u64)> {
    let own = document
        .findings
        .iter()
        .filter(|own| own.rule == PARTIAL_BLOCK);
    let named = own.take(RELATIONS_MAX).map(|own| {
        let place = &own.place;
        let bytes = place.bytes.map_or(0, |[from, to]| to.saturating_sub(from));
        let names = [&place.database, &place.schema, &place.relation];
        (name_of(names, &place.path), bytes)
    });
    named.collect()
}

fn name_of(names: [&Option<String>; 3], path: &str) -> String {
    match names {
        [Some(database), Some(schema), Some(relation)] => {
            format!("{database}.{schema}.{relation}")
        }
        _ => path.to_owned(),
    }
}

/// By relation, those with most first.
fn damaged_pages(document: &CheckDocument) -> Vec<(String, u64)> {
    let relations = document.relations.iter().map(|own| {
        let ranges = own.damaged.iter();
        let pages = ranges.map(|[from, to]| to.saturating_sub(*from)).sum();
        let names = [&own.database, &own.schema, &own.relation];
        (name_of(names, &own.path), pages)
    });
    let mut relations: Vec<(String, u64)> = relations.filter(|(_, pages)| *pages > 0).collect();
    relations.sort_by_key(|(_, pages)| std::cmp::Reverse(*pages));
    relations.truncate(RELATIONS_MAX);
    relations
}
