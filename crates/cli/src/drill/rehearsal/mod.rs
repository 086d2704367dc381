//! A rehearsal on a copy of a user's own cluster: the copy is hurt at random within a budget, and
//! what `check` finds and `salvage` saves of it is scored. In an exam a user does the work.
//!
//! ```text
//! original (read only) ─► copy ─► check ─► rows ─► injuries ─┬─► check ─► rows ─► server ─► score
//!                                                            └─► exam: marked later by a key
//! ```

mod copy;
mod exam;
mod marks;
mod rows;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pgclinic_check::check_cluster;
use pgclinic_check::walker::CheckOptions;
use pgclinic_cluster::{Cluster, target_of};
use pgclinic_model::document::{
    Finding, REHEARSAL_SCHEMA, RehearsalDocument, RehearsalKind, RehearsalScore, RehearsalTable,
    Target, Tool,
};
use pgclinic_model::{CheckDocument, Glob, Level, Progress, Selection};
use pgclinic_report::Document;
use pgclinic_spill::MemoryPlan;
use pgclinic_surgery::{
    Consent, DamageBudget, Injury, InjuryOptions, InjuryTargets, Operation, PlannedInjuries, apply,
    mark_copy, plan_random,
};

use crate::drill::master;
use crate::exit::Failure;
use copy::{NeededFiles, mebibytes, owner_of};
pub(crate) use exam::{hide, key_of, mark};
use marks::{Families, KnownInjury, Marked};
use rows::{RowHashes, RowsPlace, TableName, compared, rows_of};

/// What is rehearsed.
pub(crate) struct Wanted<'a> {
    /// The original, as it was named.
    pub(crate) spec: String,
    /// One database of it.
    pub(crate) database: Option<&'a str>,
    /// One relation.
    pub(crate) relation: Option<&'a str>,
    /// Injuries to choose from; all that hurt a page where none is named.
    pub(crate) injuries: Vec<&'static Injury>,
    pub(crate) budget: DamageBudget,
    pub(crate) seed: u64,
    pub(crate) threads: NonZeroUsize,
    pub(crate) server: Asking,
}

/// Whether a server is started on a second copy of what was hurt, to hear what it says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Where one of the cluster's major is on this machine.
    IfAtHand,
    Never,
}

/// No bar; a run ends at its next step where somebody wants it to stop.
pub(crate) struct UntilInterrupted(pub(crate) Arc<AtomicBool>);

impl Progress for UntilInterrupted {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl UntilInterrupted {
    fn goes_on(&self) -> Result<(), Failure> {
        if self.is_interrupted() {
            return Err(Failure::new("the rehearsal was interrupted"));
        }
        Ok(())
    }
}

/// Where a rehearsal has its files.
struct Places<'a> {
    /// The copy, which is not there yet.
    pgdata: &'a Path,
    /// What is needed for a while.
    scratch: &'a Path,
    journal: &'a Path,
}

/// A copy that was hurt, and all that is known of it.
struct Patient {
    target: Target,
    pgdata: PathBuf,
    healthy: CheckDocument,
    families: Families,
    planned: PlannedInjuries,
    injuries: Vec<KnownInjury>,
    before: BTreeMap<TableName, RowHashes>,
    copied_bytes: u64,
    copy_s: f64,
}

/// Rehearses on a copy in `scratch`, and removes nothing.
///
/// # Errors
/// When the copy does not fit, cannot be hurt, or somebody wants it to stop.
pub(crate) fn run(
    original: &Cluster,
    wanted: &Wanted<'_>,
    scratch: &Path,
    tell: &mut dyn FnMut(&str),
    stop: &UntilInterrupted,
) -> Result<Document, Failure> {
    let places = Places {
        pgdata: &scratch.join("copy"),
        scratch,
        journal: &scratch.join("journal"),
    };
    let patient = injured_copy(original, wanted, &places, tell, stop)?;
    tell("checking the damaged copy");
    let start = Instant::now();
    let known = ids_of(&patient.healthy);
    let findings = new_findings(check(&patient.pgdata, wanted, stop)?, &known);
    let check_s = start.elapsed().as_secs_f64();
    stop.goes_on()?;
    let marked = marks::mark(&patient.injuries, &findings, &patient.families);
    tell("reading the rows of the tables that were hurt");
    let start = Instant::now();
    let tables = saved_tables(&patient.before, &patient.pgdata, scratch, wanted, stop)?;
    let mut score = scored(&marked, &tables);
    score.copy_s = patient.copy_s;
    score.check_s = check_s;
    score.salvage_s = start.elapsed().as_secs_f64();
    let server = server::asked(&patient.pgdata, wanted, scratch, tell);
    stop.goes_on()?;
    let passed = score.detected + score.blind == score.injuries && score.false_alarms == 0;
    Ok(Document::Rehearsal(RehearsalDocument {
        schema: REHEARSAL_SCHEMA.into(),
        tool: Tool::this(),
        kind: RehearsalKind::Drill,
        target: patient.target,
        level: patient.healthy.level,
        coverage: patient.healthy.coverage,
        seed: wanted.seed,
        pages: patient.planned.pages,
        copied_bytes: patient.copied_bytes,
        server: Some(server),
        injuries: marked.injuries,
        false_alarms: marked.false_alarms,
        tables,
        score,
        previous: None,
        passed,
        elapsed_s: 0.0,
    }))
}

/// Copies what is needed, looks what is there already, and hurts the copy.
fn injured_copy(
    original: &Cluster,
    wanted: &Wanted<'_>,
    places: &Places<'_>,
    tell: &mut dyn FnMut(&str),
    stop: &UntilInterrupted,
) -> Result<Patient, Failure> {
    let pgdata = places.pgdata;
    let needed = NeededFiles::of(original, wanted.database)?;
    let parent = pgdata.parent().unwrap_or(pgdata);
    let free = needed.room(parent)?;
    tell(&format!(
        "copying {} in {} files to {}, which has {} free",
        mebibytes(needed.bytes),
        needed.count(),
        parent.display(),
        mebibytes(free)
    ));
    let start = Instant::now();
    let owner = owner_of(Path::new(&wanted.spec));
    needed.write(original.source().as_ref(), pgdata, owner, stop)?;
    mark_copy(pgdata)?;
    let copy_s = start.elapsed().as_secs_f64();
    tell("checking the undamaged copy");
    let healthy = check(pgdata, wanted, stop)?;
    stop.goes_on()?;
    if !healthy.findings.is_empty() {
        tell(&format!(
            "{} findings are there before anything is hurt; they are not counted: pgclinic check shows them",
            healthy.findings.len()
        ));
    }
    let cluster = master::open(pgdata)?;
    let planned = planned(&cluster, wanted)?;
    let injuries = known_injuries(&planned);
    let families = Families::of(&cluster);
    let tables = families.hurt_tables(&injuries);
    let place = rows_before_place(places.scratch, wanted.threads);
    let before = rows_of(&cluster, &tables, place, stop)?;
    stop.goes_on()?;
    apply(&Operation {
        pgdata,
        patch: &planned.patch,
        journal: places.journal,
        consent: Consent::Marked,
        what: "a rehearsal",
        time: None,
        beside: &[],
        control_file: None,
    })?;
    Ok(Patient {
        target: target_of(original, &wanted.spec),
        pgdata: pgdata.to_owned(),
        healthy,
        families,
        planned,
        injuries,
        before,
        copied_bytes: needed.bytes,
        copy_s,
    })
}

fn planned(cluster: &Cluster, wanted: &Wanted<'_>) -> Result<PlannedInjuries, Failure> {
    let options = InjuryOptions {
        database: wanted.database.map(str::to_owned),
        relation: wanted.relation.map(str::to_owned),
        seed: wanted.seed,
        ..InjuryOptions::default()
    };
    let targets = InjuryTargets::new(cluster);
    let planned = plan_random(&targets, &wanted.injuries, &options, wanted.budget)?;
    Ok(planned)
}

/// The changes of each injury are those of the one patch, in its order.
fn known_injuries(planned: &PlannedInjuries) -> Vec<KnownInjury> {
    let mut left = planned.patch.changes.as_slice();
    let injury = |chosen: &pgclinic_surgery::Chosen| {
        let own = chosen.1.patch.changes.len().min(left.len());
        let (changes, rest) = left.split_at(own);
        left = rest;
        KnownInjury::of(chosen, changes)
    };
    planned.injuries.iter().map(injury).collect()
}

/// Checks a copy as deep as it goes.
fn check(
    pgdata: &Path,
    wanted: &Wanted<'_>,
    stop: &UntilInterrupted,
) -> Result<CheckDocument, Failure> {
    let selection = Selection {
        databases: wanted.database.map(Glob::new).into_iter().collect(),
        ..Selection::default()
    };
    let options = CheckOptions {
        level: Level::Full,
        threads: wanted.threads,
        evidence: 0,
        selection,
        spec: wanted.spec.clone(),
        memory: MemoryPlan::default(),
        spill_folder: pgdata.parent().unwrap_or(pgdata).to_owned(),
        since: None,
    };
    Ok(check_cluster(&master::open(pgdata)?, &options, stop))
}

fn ids_of(document: &CheckDocument) -> BTreeSet<String> {
    let findings = document.findings.iter();
    findings.map(|finding| finding.id.clone()).collect()
}

/// What the undamaged copy does not have.
fn new_findings(document: CheckDocument, known: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = document.findings;
    findings.retain(|finding| !known.contains(&finding.id));
    findings
}

/// The rows that are read now beside those of the original.
fn saved_tables(
    before: &BTreeMap<TableName, RowHashes>,
    pgdata: &Path,
    scratch: &Path,
    wanted: &Wanted<'_>,
    stop: &UntilInterrupted,
) -> Result<Vec<RehearsalTable>, Failure> {
    let names: Vec<TableName> = before.keys().cloned().collect();
    let place = RowsPlace {
        scratch,
        name: "rows-now",
        threads: wanted.threads,
    };
    let now = rows_of(&master::open(pgdata)?, &names, place, stop)?;
    stop.goes_on()?;
    let tables = before.iter();
    let tables: Result<Vec<_>, Failure> = tables
        .map(|(name, rows)| compared(name, rows, now.get(name)))
        .collect();
    for number in 0..names.len() {
        fs::remove_file(place.file(number))?;
    }
    tables
}

/// Where the rows of the undamaged copy lie.
fn rows_before_place(scratch: &Path, threads: NonZeroUsize) -> RowsPlace<'_> {
    RowsPlace {
        scratch,
        name: "rows",
        threads,
    }
}

/// The sums; times are not known here.
fn scored(marked: &Marked, tables: &[RehearsalTable]) -> RehearsalScore {
    let injuries = &marked.injuries;
    let count = |is: &dyn Fn(&pgclinic_model::document::RehearsalInjury) -> bool| {
        injuries.iter().filter(|injury| is(injury)).count() as u64
    };
    let sum = |rows: fn(&RehearsalTable) -> u64| tables.iter().map(rows).sum();
    RehearsalScore {
        injuries: injuries.len() as u64,
        detected: count(&|injury| !injury.found_by.is_empty()),
        explained: count(&|injury| injury.explained),
        blind: count(&|injury| injury.blind.is_some()),
        false_alarms: marked.false_alarms.len() as u64,
        rows: sum(|table| table.rows),
        rows_saved: sum(|table| table.saved),
        rows_wrong: sum(|table| table.wrong),
        ..RehearsalScore::default()
    }
}
