//! Every injury, raw and with the checksum made true again, on its copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use pgclinic_model::CheckDocument;
use pgclinic_model::document::{DrillRow, NotRun, RowOutcome, ServerAnswer};
use pgclinic_surgery::{
    Consent, Injury, InjuryOptions, InjuryTargets, Operation, PlannedInjury, apply, injuries,
    plan_on, undo,
};

use crate::drill::bench_copy::BenchCopy;
use crate::drill::crew::on_copies;
use crate::drill::injury_set::{InjurySet, variants};
use crate::drill::judge::NewFindings;
use crate::drill::master::{self, Master};
use crate::drill::oracle::{self, Heard};
use crate::drill::readings::DatabaseReadings;
use crate::exit::Failure;

/// What a scan leaves out.
const ALL_VISIBLE: &str = "the page is all-visible: a scan takes every row on it for visible and reads neither its xmin nor its xmax";

/// An injury with its damage, chosen before any copy is made.
pub(crate) struct Planned {
    injury: &'static Injury,
    variant: &'static str,
    plan: PlannedInjury,
}

/// What the whole drill works with.
pub(crate) struct Ward<'a> {
    pub(crate) master: &'a Master,
    pub(crate) healthy: &'a CheckDocument,
    pub(crate) readings: &'a [DatabaseReadings],
    pub(crate) heard: &'a Heard,
    /// The server can be asked to read an index from end to end.
    pub(crate) reads_indexes: bool,
    /// Indexes that it is asked to scan, by database and name.
    pub(crate) scanned: &'a BTreeSet<(String, String)>,
}

/// What a drill is going to do.
#[derive(Default)]
pub(crate) struct DrillPlan {
    /// In the order of the register.
    pub(crate) planned: Vec<Planned>,
    /// Injuries that the filling has no place for.
    pub(crate) not_run: Vec<NotRun>,
    /// Injuries that should have found a place.
    pub(crate) failed: Vec<NotRun>,
    /// Rows that only the full matrix has.
    pub(crate) left_out: u64,
}

/// Plans the injuries of a set. One that finds no page to hurt is a failure, unless it needs
/// `--large`.
pub(crate) fn plan(
    targets: &InjuryTargets<'_>,
    seed: u64,
    large: bool,
    set: InjurySet<'_>,
) -> DrillPlan {
    let mut plan = DrillPlan::default();
    let members = set.injuries();
    for &injury in &members {
        if injury.wants.needs_large && !large {
            plan.not_run.push(NotRun {
                injury: injury.name.into(),
                why: "only the large filling has a place for it (tables of more than one segment, slots, prepared transactions): --large".into(),
            });
            continue;
        }
        for (variant, sealed) in variants(injury) {
            let options = InjuryOptions {
                seed,
                sealed: *sealed,
                ..InjuryOptions::default()
            };
            match plan_on(targets, injury, &options) {
                Ok(damage) => plan.planned.push(Planned {
                    injury,
                    variant,
                    plan: damage,
                }),
                Err(error) => plan.failed.push(NotRun {
                    injury: injury.name.into(),
                    why: error.to_string(),
                }),
            }
        }
    }
    if matches!(set, InjurySet::Default) {
        let left = injuries()
            .iter()
            .filter(|injury| members.iter().all(|member| member.name != injury.name));
        plan.left_out = left.map(|injury| variants(injury).len() as u64).sum();
    }
    plan
}

/// What of the plan has no row, as the drill was stopped before.
pub(crate) fn left_over(planned: &[Planned], rows: &[DrillRow]) -> Vec<NotRun> {
    let mut done: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in rows {
        *done.entry((&row.injury, &row.variant)).or_default() += 1;
    }
    let mut left = Vec::new();
    for own in planned {
        match done.get_mut(&(own.injury.name, own.variant)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => left.push(NotRun {
                injury: format!("{} ({})", own.injury.name, own.variant),
                why: "the drill was interrupted before it".into(),
            }),
        }
    }
    left
}

/// Runs all rows on `threads` copies at once; `step` is given each row when it is done.
/// Interrupted, the rows so far come back.
pub(crate) fn run(
    ward: &Ward<'_>,
    planned: &[Planned],
    threads: usize,
    stop: &AtomicBool,
    step: &(dyn Fn(&DrillRow) + Sync),
) -> Result<Vec<DrillRow>, Failure> {
    on_copies(
        (ward.master, "copy"),
        planned,
        threads,
        stop,
        &|planned, copy| {
            let row = row(ward, planned, copy)?;
            step(&row);
            Ok(row)
        },
    )
}

fn row(ward: &Ward<'_>, planned: &Planned, copy: &mut BenchCopy) -> Result<DrillRow, Failure> {
    let plan = &planned.plan;
    let mut failures = Vec::new();
    hurt(ward, planned, copy, "first")?;
    let level = master::level_for(&plan.damage.must);
    let verdict = NewFindings::new(master::check_at(level, &copy.pgdata, 0)?, ward.healthy);
    undo(&journal(ward, copy, "first"), Some(&copy.pgdata))?;
    let undone = copy.differing()?.is_empty();
    if !undone {
        failures.push("the journal did not bring the first bytes back".into());
    }
    let missing = verdict.missing(plan);
    let unexpected = verdict.unexpected(plan);
    failures.extend(missing.iter().map(|rule| format!("{rule} did not fire")));
    failures.extend(
        unexpected
            .iter()
            .map(|rule| format!("{rule} fired and should not")),
    );
    if verdict.helpless() {
        failures.push("a finding of damage names no way out".into());
    }
    let with = server_with(ward, planned, copy)?;
    failures.extend(
        verdict
            .false_prophecies(&with, ward)
            .into_iter()
            .map(|words| format!("the server did not say with checksums: {words}")),
    );
    let without = match planned.variant {
        "sealed" => None,
        _ => server_without(ward, planned, copy, &mut failures)?,
    };
    copy.refresh()?;
    let prophecy = verdict.prophecy();
    let blind = plan.damage.blind.map(str::to_owned);
    let blind = blind.filter(|_| verdict.findings.is_empty());
    let lied = failures
        .iter()
        .any(|failure| failure.starts_with("the server did not say"));
    Ok(DrillRow {
        injury: planned.injury.name.into(),
        variant: planned.variant.into(),
        place: plan.place.clone(),
        wound: plan.damage.words.clone(),
        found_by: verdict.rules(),
        message: verdict
            .findings
            .first()
            .map(|finding| finding.message.clone()),
        cause: verdict
            .findings
            .iter()
            .find_map(|finding| finding.cause.as_ref())
            .map(|cause| cause.name.clone()),
        missing,
        unexpected,
        server_does_not_look: does_not_look(plan, [Some(&with), without.as_ref()]),
        outcome: match (failures.is_empty(), &blind) {
            (false, _) => RowOutcome::Failed,
            (true, Some(_)) => RowOutcome::Blind,
            (true, None) => RowOutcome::Passed,
        },
        blind,
        server_says_true: prophecy.as_ref().map(|_| !lied),
        server_says: prophecy,
        with_checksums: Some(with),
        without_checksums: without,
        undone,
        way_out: Some(planned.injury.recovery_advice.into()),
        failures,
    })
}

/// Why a server that noticed nothing did not look, where the page tells.
fn does_not_look(plan: &PlannedInjury, answers: [Option<&ServerAnswer>; 2]) -> Option<String> {
    let mut answers = answers.into_iter().flatten();
    let noticed_nothing = answers.any(|answer| {
        answer.started && !answer.crashed && answer.messages.is_empty() && answer.silent.is_empty()
    });
    (plan.is_all_visible && noticed_nothing).then(|| ALL_VISIBLE.into())
}

fn journal(ward: &Ward<'_>, copy: &BenchCopy, name: &str) -> std::path::PathBuf {
    let bench = copy
        .pgdata
        .parent()
        .and_then(|folder| folder.file_name())
        .unwrap_or_default();
    ward.master
        .scratch
        .path()
        .join("journals")
        .join(bench)
        .join(name)
}

fn hurt(ward: &Ward<'_>, planned: &Planned, copy: &BenchCopy, name: &str) -> Result<(), Failure> {
    let journal = journal(ward, copy, name);
    if journal.exists() {
        std::fs::remove_dir_all(&journal)?;
    }
    let operation = Operation {
        pgdata: &copy.pgdata,
        patch: &planned.plan.patch,
        journal: &journal,
        consent: Consent::Marked,
        what: planned.injury.name,
        time: None,
        beside: &[],
        control_file: None,
    };
    apply(&operation)?;
    Ok(())
}

fn server_with(
    ward: &Ward<'_>,
    planned: &Planned,
    copy: &mut BenchCopy,
) -> Result<ServerAnswer, Failure> {
    copy.refresh()?;
    hurt(ward, planned, copy, "again")?;
    Ok(oracle::hear(ward.master, &copy.pgdata, ward.readings).compared_with(ward.heard))
}

/// The same damage where nothing checks sums, with the prophecies for that case.
fn server_without(
    ward: &Ward<'_>,
    planned: &Planned,
    copy: &mut BenchCopy,
    failures: &mut Vec<String>,
) -> Result<Option<ServerAnswer>, Failure> {
    copy.refresh()?;
    hurt(ward, planned, copy, "bare")?;
    if !copy.disable_checksums()? {
        return Ok(None);
    }
    let level = master::level_for(&planned.plan.damage.must);
    let verdict = NewFindings::new(master::check_at(level, &copy.pgdata, 0)?, ward.healthy);
    let answer = oracle::hear(ward.master, &copy.pgdata, ward.readings).compared_with(ward.heard);
    let lies = verdict.false_prophecies(&answer, ward);
    failures.extend(
        lies.into_iter()
            .map(|words| format!("the server did not say without checksums: {words}")),
    );
    Ok(Some(answer))
}
