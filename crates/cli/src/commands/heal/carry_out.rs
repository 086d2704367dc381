//! The cures that somebody consented to are written, read back, and their pages checked again.

use std::path::{Path, PathBuf};

use pgclinic_model::document::{
    AppliedHeal, Cure, CureOutcome, CureRequest, HealDocument, HealEvidence, HealOutcome, NotHealed,
};
use pgclinic_model::shell_word;
use pgclinic_surgery::cures::{HealPlan, ProvenPages, check_again, plan_heal, rows_to_save};
use pgclinic_surgery::safety::LOCK_FILE;
use pgclinic_surgery::{Applied, Consent, FileBeside, JournalFolder, Operation, apply, copy_to};

use super::elsewhere::fork_of;
use super::evidence::Search;
use super::prove::prove;
use super::{Arguments, document_of, opened, start, still};
use crate::env::Env;
use crate::exit::Failure;
use crate::journal_beside::journal_beside;

/// Name of the plan beside the journal.
pub(super) const PLAN_FILE: &str = "plan.json";

/// A plan to which somebody consented.
pub(super) struct Job<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) pgdata: &'a Path,
    /// Cures by their place in the plan.
    pub(super) chosen: &'a [usize],
    pub(super) proven: &'a ProvenPages,
}

impl Job<'_> {
    /// Carries out the chosen cures of the plan that `shown` is, on the directory or on a new copy.
    pub(super) fn carry_out(
        &self,
        shown: HealDocument,
        world: &mut Env<'_>,
    ) -> Result<HealDocument, Failure> {
        let (arguments, chosen) = (self.arguments, self.chosen);
        let stillness = still(self.pgdata, world)?;
        let home = match &arguments.copy_to {
            Some(copy) => copy_to(self.pgdata, copy)?.pgdata,
            None => self.pgdata.to_path_buf(),
        };
        let cluster = opened(&home, world)?;
        let requests = chosen.iter().filter_map(|index| shown.request.get(*index));
        let requests: Vec<CureRequest> = requests.cloned().collect();
        let plan = plan_heal(&cluster, &requests, self.proven)?;
        refuse_other_cures(&shown, chosen, &plan)?;
        let (patch, control_file) = (plan.patch.clone(), plan.basis.control_file.clone());
        let files_to_append = plan.beside.clone();
        let mut planned = document_of(&cluster, &home, plan);
        planned.evidence.clone_from(&shown.evidence);
        planned.scope = shown.scope;
        planned.not_healed.clone_from(&shown.not_healed);
        // Nothing is written beside such a file, and a copy has none.
        planned.not_healed.retain(|own| own.path != LOCK_FILE);
        planned.not_checked.clone_from(&shown.not_checked);
        stillness.holds()?;
        let journal = arguments.journal.clone();
        let journal = journal.unwrap_or_else(|| journal_beside(&home, "heal"));
        let (mut beside, saved) = rows_to_save(&cluster, &planned.cures, &world.temp_folder)?;
        beside.push(plan_file(&planned)?);
        beside.extend(files_to_append);
        let operation = Operation {
            pgdata: &home,
            patch: &patch,
            journal: &journal,
            consent: Consent::Plan(identifier(&planned)?),
            what: &what(&planned.cures),
            time: None,
            beside: &beside,
            control_file: Some(&control_file),
        };
        let was_there = JournalFolder::new(&journal).file().exists();
        let applied = apply(&operation).map_err(|error| {
            let is_begun = !was_there && JournalFolder::new(&journal).file().exists();
            interrupted(&error, is_begun.then_some(&journal))
        })?;
        let mut written = with_applied(planned, &home, &applied, arguments);
        if let Some(applied) = &mut written.applied {
            applied.rows_saved = saved;
        }
        let mut healed = checked(written, &home, world)?;
        let left_out = requests_left_out(&shown, chosen);
        check_whole_again(arguments, &left_out, &mut healed, &home, world)?;
        add_left_out(&mut healed, shown, chosen);
        with_proof(arguments, &home, healed, world)
    }
}

/// All that a plan by evidence was made from is checked again, with catalogs as they are now: what
/// was wrong because of a page that is back is no longer listed, and what stays is.
pub(super) fn check_whole_again(
    arguments: &Arguments,
    left_out: &[CureRequest],
    healed: &mut HealDocument,
    home: &Path,
    world: &Env<'_>,
) -> Result<(), Failure> {
    let Some(scope) = healed.scope else {
        return Ok(());
    };
    let cluster = opened(home, world)?;
    let search = Search {
        arguments,
        pgdata: home,
        cluster: &cluster,
        evidence: &HealEvidence::default(),
        scratch: false,
        world,
    };
    let left = search.damage_left(scope.level, left_out)?;
    if left.not_healed.is_empty() && left.not_checked.is_empty() {
        settle_unchecked(&mut healed.cures);
    }
    healed.not_healed = damage_that_stays(&healed.not_healed, left.not_healed);
    healed.not_checked = left.not_checked;
    healed.outcome = outcome_of(healed);
    Ok(())
}

/// A page that could not be checked alone was checked with all others.
fn settle_unchecked(cures: &mut [Cure]) {
    let open = cures.iter_mut();
    for cure in open.filter(|cure| cure.outcome == CureOutcome::NotChecked) {
        cure.outcome = CureOutcome::Healed;
    }
}

/// What was listed before and is damaged still, with its reasons, and then what else is.
fn damage_that_stays(listed: &[NotHealed], left: Vec<NotHealed>) -> Vec<NotHealed> {
    let is_of = |one: &NotHealed, other: &NotHealed| fork_of(&one.path) == fork_of(&other.path);
    // No check is of the lock file.
    let is_left =
        |own: &&NotHealed| own.path == LOCK_FILE || left.iter().any(|left| is_of(left, own));
    let mut all: Vec<NotHealed> = listed.iter().filter(is_left).cloned().collect();
    let is_new = |own: &NotHealed| listed.iter().all(|known| !is_of(known, own));
    all.extend(left.into_iter().filter(is_new));
    all
}

/// What somebody did not consent to.
fn requests_left_out(shown: &HealDocument, chosen: &[usize]) -> Vec<CureRequest> {
    let all = (0..).zip(&shown.request);
    let left = all.filter(|(index, _)| !chosen.contains(index));
    left.map(|(_, request)| request.clone()).collect()
}

/// With what a server says of it, where one is asked for.
pub(super) fn with_proof(
    arguments: &Arguments,
    home: &Path,
    mut healed: HealDocument,
    world: &mut Env<'_>,
) -> Result<HealDocument, Failure> {
    if arguments.prove {
        let proof = prove(home, arguments.prove_in.as_deref(), &healed, world)?;
        if !proof.holds() {
            healed.outcome = HealOutcome::DamageRemains;
        }
        healed.proof = Some(proof);
    }
    Ok(healed)
}

/// Once the journal is there, something may have been written, and two ways lead on.
pub(super) fn interrupted(error: &pgclinic_surgery::Error, journal: Option<&PathBuf>) -> Failure {
    let Some(journal) = journal else {
        return Failure::new(error);
    };
    let journal = shell_word(&journal.display().to_string());
    Failure::new(format!(
        "{error}. Before the server is started, go on with pgclinic heal --resume {journal}, or take it back with pgclinic heal --undo {journal}"
    ))
}

/// What is carried out is what was shown: an earlier cure that was left out may have made another
/// one of a later cure on the same page.
fn refuse_other_cures(
    shown: &HealDocument,
    chosen: &[usize],
    plan: &HealPlan,
) -> Result<(), Failure> {
    let shown = chosen.iter().filter_map(|index| shown.cures.get(*index));
    for (shown, planned) in shown.zip(&plan.cures) {
        if (&shown.id, shown.safety, &shown.fields)
            != (&planned.id, planned.safety, &planned.fields)
        {
            return Err(Failure::new(format!(
                "without the cures before it, cure {} is not what was shown: consent to all of them, or plan it alone. Nothing was written",
                shown.id
            )));
        }
    }
    Ok(())
}

pub(super) fn identifier(document: &HealDocument) -> Result<u64, Failure> {
    Ok(document.basis.system_identifier.parse()?)
}

pub(super) fn plan_file(document: &HealDocument) -> Result<FileBeside, Failure> {
    let bytes = serde_json::to_vec_pretty(document)?;
    Ok(FileBeside::of_bytes(PLAN_FILE, bytes))
}

/// For whoever reads the journal.
pub(super) fn what(cures: &[Cure]) -> String {
    let words = cures
        .iter()
        .map(|cure| format!("{} {}", cure.name, cure.place));
    words.collect::<Vec<_>>().join("; ")
}

pub(super) fn with_applied(
    mut document: HealDocument,
    home: &Path,
    applied: &Applied,
    arguments: &Arguments,
) -> HealDocument {
    let directory = applied.journal.parent().unwrap_or(&applied.journal);
    document.applied = Some(AppliedHeal {
        pgdata: home.display().to_string(),
        journal: directory.display().to_string(),
        is_copy: arguments.copy_to.is_some(),
        changes: applied.changes,
        rows_saved: Vec::new(),
    });
    document
}

/// The document with what the check says of the pages that were written.
pub(super) fn checked(
    mut document: HealDocument,
    home: &Path,
    world: &Env<'_>,
) -> Result<HealDocument, Failure> {
    if start::is_start(&document) {
        return start::checked(document, home, world).map(start::unproven);
    }
    let cluster = opened(home, world)?;
    document.other_findings = check_again(&cluster, &mut document.cures);
    document.outcome = outcome_of(&document);
    Ok(document)
}

pub(super) fn outcome_of(document: &HealDocument) -> HealOutcome {
    let has = |outcome| document.cures.iter().any(|cure| cure.outcome == outcome);
    if has(CureOutcome::DamageRemains) || !document.not_healed.is_empty() {
        HealOutcome::DamageRemains
    } else if has(CureOutcome::NotChecked)
        || has(CureOutcome::LeftOut)
        || !document.not_checked.is_empty()
    {
        HealOutcome::PartlyUndecided
    } else {
        HealOutcome::Healed
    }
}

/// Cures to which nobody consented stand in the report, after the others.
pub(super) fn add_left_out(healed: &mut HealDocument, shown: HealDocument, chosen: &[usize]) {
    let all = (0..).zip(shown.cures.into_iter().zip(shown.request));
    for (_, (cure, request)) in all.filter(|(index, _)| !chosen.contains(index)) {
        healed.cures.push(Cure {
            outcome: CureOutcome::LeftOut,
            ..cure
        });
        healed.request.push(request);
    }
    healed.outcome = outcome_of(healed);
}
