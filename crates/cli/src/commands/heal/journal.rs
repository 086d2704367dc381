//! `--undo` and `--resume`: what a journal takes back or completes.

use std::path::{Path, PathBuf};

use pgclinic_cluster::target_of;
use pgclinic_model::document::{
    AppliedHeal, CureOutcome, HEAL_SCHEMA, HealBasis, HealDocument, HealOutcome, Tool,
};
use pgclinic_report::Document;
use pgclinic_surgery::{Disk, JournalFolder, resume, undo};

use super::carry_out::{PLAN_FILE, check_whole_again, checked};
use super::{Arguments, opened, still};
use crate::env::Env;
use crate::exit::Failure;
use crate::target;

/// A plan of a whole heal is smaller.
const PLAN_BYTES_MAX: u64 = 1 << 30;

/// Takes a journal back.
pub(super) fn undone(
    journal: &Path,
    pgdata: Option<&Path>,
    world: &mut Env<'_>,
) -> Result<HealDocument, Failure> {
    let home = home_of(journal, pgdata)?;
    still(&home, world)?.holds()?;
    let undone = undo(journal, pgdata)?;
    let mut document = document_of(journal, &home, undone.changes, world)?;
    document.outcome = HealOutcome::Undone;
    for cure in &mut document.cures {
        cure.outcome = CureOutcome::Undone;
    }
    document.follow_up.clear();
    if undone.changes == 0 {
        let words = "it was undone before, or nothing had been written: nothing was written now";
        document.warnings.insert(0, words.into());
    }
    Ok(document)
}

/// Completes a journal, and checks its pages again.
pub(super) fn resumed(
    arguments: &Arguments,
    journal: &Path,
    world: &mut Env<'_>,
) -> Result<HealDocument, Failure> {
    let pgdata = arguments.pgdata.as_deref();
    let home = home_of(journal, pgdata)?;
    still(&home, world)?.holds()?;
    let resumed = resume(journal, pgdata)?;
    let mut document = document_of(journal, &home, resumed.changes, world)?;
    if resumed.changes == 0 {
        let words = "all changes had been written before: nothing was written now";
        document.warnings.insert(0, words.into());
    }
    if document.cures.is_empty() {
        document.outcome = HealOutcome::PartlyUndecided;
        return Ok(document);
    }
    let mut healed = checked(document, &home, world)?;
    check_whole_again(arguments, &[], &mut healed, &home, world)?;
    Ok(healed)
}

fn home_of(journal: &Path, pgdata: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(match pgdata {
        Some(pgdata) => pgdata.to_owned(),
        None => JournalFolder::new(journal).read(&Disk)?.pgdata,
    })
}

/// The plan beside the journal; without one, as beside an injury's, a document without cures.
fn document_of(
    journal: &Path,
    home: &Path,
    changes: u64,
    world: &Env<'_>,
) -> Result<HealDocument, Failure> {
    let folder = JournalFolder::new(journal);
    let mut document = match plan_beside(&folder) {
        Some(document) => document,
        None => without_plan(&folder, home, world)?,
    };
    let copy = pgclinic_surgery::is_marked(home);
    document.applied = Some(AppliedHeal {
        pgdata: home.display().to_string(),
        journal: folder.path().display().to_string(),
        is_copy: copy,
        changes,
        rows_saved: Vec::new(),
    });
    Ok(document)
}

fn plan_beside(folder: &JournalFolder) -> Option<HealDocument> {
    let path = folder.kept(PLAN_FILE);
    let is_small = path
        .metadata()
        .is_ok_and(|found| found.len() <= PLAN_BYTES_MAX);
    is_small.then_some(())?;
    match Document::from_json(&std::fs::read(path).ok()?) {
        Ok(Document::Heal(document)) => Some(document),
        _ => None,
    }
}

fn without_plan(
    folder: &JournalFolder,
    home: &Path,
    world: &Env<'_>,
) -> Result<HealDocument, Failure> {
    let read = folder.read(&Disk)?;
    let cluster = opened(home, world)?;
    Ok(HealDocument {
        schema: HEAL_SCHEMA.into(),
        tool: Tool::this(),
        target: target_of(&cluster, &target::spec_of(home)),
        outcome: HealOutcome::Planned,
        basis: HealBasis {
            system_identifier: read.system_identifier.unwrap_or_default(),
            control_file: String::new(),
            requests: None,
        },
        request: Vec::new(),
        evidence: None,
        scope: None,
        reach: None,
        not_healed: Vec::new(),
        not_checked: Vec::new(),
        obstacles: Vec::new(),
        cures: Vec::new(),
        warnings: vec![format!(
            "no {PLAN_FILE} that can be read stands beside the journal of {}: its pages were not checked again",
            read.what
        )],
        other_findings: Vec::new(),
        follow_up: Vec::new(),
        applied: None,
        statements: Vec::new(),
        proof: None,
        elapsed_s: 0.0,
    })
}
