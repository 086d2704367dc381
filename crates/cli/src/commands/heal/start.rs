//! A server that does not start: what keeps it from starting, planned and carried out. It comes
//! before damaged pages, which only a cluster shows that starts.

use std::path::{Path, PathBuf};

use pgclinic_cluster::{Cluster, target_of};
use pgclinic_model::document::{
    Cure, CureOutcome, CureRequest, HEAL_SCHEMA, HealDocument, HealEvidence, HealOutcome, PlanStep,
    Tool,
};
use pgclinic_model::plan::Safety;
use pgclinic_source::read_all;
use pgclinic_surgery::start_again::{
    LINK_TABLESPACES, START_CURES, STATUS_FROM_HINT_BITS, StartOptions, StartPlan, TABLESPACE_MAP,
    TablespaceMap, has_lost_links, not_cured, plan_denied_status, plan_start,
};
use pgclinic_surgery::{Applied, Consent, JournalFolder, Operation, apply, copy_still_files};

use super::carry_out::{
    add_left_out, identifier, interrupted, outcome_of, plan_file, what, with_applied, with_proof,
};
use super::evidence::copies;
use super::{Arguments, consent, lock_file, opened, saved_plan, shown_commands, still};
use crate::env::Env;
use crate::exit::Failure;
use crate::journal_beside::journal_beside;
use crate::progress::Bar;
use crate::target;

/// More than any map of tablespaces has.
const MAP_BYTES_MAX: u64 = 1 << 20;

/// Every cure of it lets a server start.
pub(super) fn is_start(document: &HealDocument) -> bool {
    let is_own = |request: &CureRequest| START_CURES.contains(&request.cure.as_str());
    !document.request.is_empty() && document.request.iter().all(is_own)
}

/// The plan, carried out where somebody consented; nothing where nothing known keeps a server from
/// starting, or where something else is asked for.
pub(super) fn planned(
    arguments: &Arguments,
    pgdata: &Path,
    cluster: &Cluster,
    world: &mut Env<'_>,
) -> Result<Option<HealDocument>, Failure> {
    if arguments.pages || arguments.cure.named().is_some() || !arguments.at.is_empty() {
        return Ok(None);
    }
    let saved = arguments
        .apply
        .as_deref()
        .map(saved_plan::read)
        .transpose()?;
    if saved.as_ref().is_some_and(|saved| !is_start(saved)) {
        return Ok(None);
    }
    let denied = saved.as_ref().map(|saved| denied_pages(&saved.request));
    let denied = denied.unwrap_or_default();
    let named = match saved.as_ref().and_then(|saved| saved.evidence.clone()) {
        Some(named) => named,
        None => arguments.evidence.named()?,
    };
    let maps = tablespace_maps(&named, cluster, world)?;
    let found = Evidence {
        denied: &denied,
        maps: &maps,
    };
    let plan = plan_of(arguments, pgdata, (cluster, &found), world)?;
    let Some(plan) = plan else {
        let Some(_) = saved else { return Ok(None) };
        return Err(Failure::new(
            "nothing keeps a server from starting here any more: nothing was written, make the plan again",
        ));
    };
    let mut document = document_of(cluster, pgdata, &plan);
    document.not_healed.extend(lock_file::unusable(pgdata));
    document.evidence = Some(named).filter(|_| !maps.is_empty());
    if document.cures.is_empty() {
        // What keeps the server from starting stays, whatever anybody consents to.
        document.outcome = HealOutcome::DamageRemains;
    }
    if let Some(saved) = &saved {
        saved_plan::refuse_changed(saved, &document)?;
    }
    let chosen = arguments.consents.chosen(&document.cures)?;
    if chosen.is_empty() {
        let shown = consent::with_commands(document, pgdata);
        return Ok(Some(with_salvage(shown, pgdata)));
    }
    carry_out(arguments, pgdata, (document, &chosen, &found), world).map(Some)
}

/// What a plan rests on beside the files.
struct Evidence<'a> {
    /// Pages of pg_xact that rows deny.
    denied: &'a [u32],
    maps: &'a [TablespaceMap],
}

/// Those of the backups that were named, where links to tablespaces are missing.
fn tablespace_maps(
    named: &HealEvidence,
    cluster: &Cluster,
    world: &Env<'_>,
) -> Result<Vec<TablespaceMap>, Failure> {
    if named.backups.is_empty() || !has_lost_links(cluster) {
        return Ok(Vec::new());
    }
    let backups = copies(named, world)?.into_iter();
    let maps = backups.filter_map(|(backup, copy)| {
        let text = read_all(copy.source().as_ref(), TABLESPACE_MAP, MAP_BYTES_MAX).ok()?;
        Some(TablespaceMap { backup, text })
    });
    Ok(maps.collect())
}

/// The plan for pages of pg_xact that rows deny, carried out where somebody consented; nothing
/// where there are none.
pub(super) fn by_rows(
    arguments: &Arguments,
    pgdata: &Path,
    (cluster, denied): (&Cluster, &[u32]),
    world: &mut Env<'_>,
) -> Result<Option<HealDocument>, Failure> {
    if denied.is_empty() {
        return Ok(None);
    }
    let found = Evidence { denied, maps: &[] };
    let Some(plan) = plan_of(arguments, pgdata, (cluster, &found), world)? else {
        return Ok(None);
    };
    let document = document_of(cluster, pgdata, &plan);
    let chosen = arguments.consents.chosen(&document.cures)?;
    if chosen.is_empty() {
        return Ok(Some(consent::with_commands(document, pgdata)));
    }
    carry_out(arguments, pgdata, (document, &chosen, &found), world).map(Some)
}

/// Pages of pg_xact that the cures of a plan correct.
fn denied_pages(requests: &[CureRequest]) -> Vec<u32> {
    let own = requests.iter();
    let own = own.filter(|request| request.cure == STATUS_FROM_HINT_BITS);
    own.map(|request| request.block).collect()
}

/// Rows are saved before anything lossy is done; that needs no server.
fn with_salvage(mut document: HealDocument, pgdata: &Path) -> HealDocument {
    let is_lossy = |cure: &Cure| cure.safety == Safety::Lossy;
    if document.cures.iter().any(is_lossy) || !document.not_healed.is_empty() {
        let step = PlanStep {
            name: "save-the-rows".into(),
            safety: Safety::Exact,
            why: "it reads the files alone, and needs neither a server nor WAL".into(),
            relations: Vec::new(),
            relations_omitted: 0,
            commands: vec![shown_commands::salvage(pgdata, None)],
            commands_omitted: 0,
        };
        document.follow_up.insert(0, step);
    }
    document
}

fn plan_of(
    arguments: &Arguments,
    pgdata: &Path,
    (cluster, found): (&Cluster, &Evidence<'_>),
    world: &Env<'_>,
) -> Result<Option<StartPlan>, Failure> {
    let bar = Bar::of_bytes(&arguments.output, world.terminal, &world.interrupted);
    let options = StartOptions {
        pgdata,
        threads: arguments.load.threads(),
        progress: &bar,
        temp_folder: &world.temp_folder,
        tablespace_maps: found.maps,
    };
    let plan = match found.denied {
        [] => plan_start(cluster, &options),
        pages => {
            let plan = plan_denied_status(cluster, pages, &options);
            Ok(Some(plan).filter(|plan| !plan.cures.is_empty()))
        }
    };
    bar.finish();
    Ok(plan?)
}

fn document_of(cluster: &Cluster, pgdata: &Path, plan: &StartPlan) -> HealDocument {
    HealDocument {
        schema: HEAL_SCHEMA.into(),
        tool: Tool::this(),
        target: target_of(cluster, &target::spec_of(pgdata)),
        outcome: HealOutcome::Planned,
        basis: plan.basis.clone(),
        request: plan.request.clone(),
        evidence: None,
        scope: None,
        reach: None,
        not_healed: plan.not_healed.clone(),
        not_checked: Vec::new(),
        obstacles: Vec::new(),
        cures: plan.cures.clone(),
        warnings: plan.warnings.clone(),
        other_findings: Vec::new(),
        follow_up: plan.follow_up.clone(),
        statements: Vec::new(),
        applied: None,
        proof: None,
        elapsed_s: 0.0,
    }
}

fn carry_out(
    arguments: &Arguments,
    pgdata: &Path,
    (shown, chosen, found): (HealDocument, &[usize], &Evidence<'_>),
    world: &mut Env<'_>,
) -> Result<HealDocument, Failure> {
    if arguments.copy_to.is_some() {
        refuse_shared_files(&shown, chosen)?;
    }
    let stillness = still(pgdata, world)?;
    let home = match &arguments.copy_to {
        Some(copy) => copy_still_files(pgdata, copy)?.pgdata,
        None => pgdata.to_path_buf(),
    };
    let cluster = opened(&home, world)?;
    let plan = plan_of(arguments, &home, (&cluster, found), world)?;
    let plan = plan.filter(|plan| is_as_shown(&shown, plan, chosen));
    let plan = plan.ok_or_else(|| {
        Failure::new(
            "the files changed since the plan was shown: nothing was written, show it again",
        )
    })?;
    let mut planned = document_of(&cluster, &home, &plan);
    planned.evidence.clone_from(&shown.evidence);
    let cures = chosen.iter().filter_map(|at| plan.cures.get(*at));
    planned.cures = cures.cloned().collect();
    let requests = chosen.iter().filter_map(|at| plan.request.get(*at));
    planned.request = requests.cloned().collect();
    stillness.holds()?;
    let journal = arguments.journal.clone();
    let journal = journal.unwrap_or_else(|| journal_beside(&home, "heal"));
    let mut beside = plan.beside(chosen);
    beside.push(plan_file(&planned)?);
    let control_file = plan.basis.control_file.clone();
    let operation = Operation {
        pgdata: &home,
        patch: &plan.patch(chosen),
        journal: &journal,
        consent: consent_of(&planned)?,
        what: &what(&planned.cures),
        time: None,
        beside: &beside,
        control_file: Some(&control_file),
    };
    let applied = applied(&operation, &journal)?;
    let written = with_applied(planned, &home, &applied, arguments);
    let mut healed = checked(written, &home, world)?;
    if chosen.len() < shown.cures.len() {
        add_left_out(&mut healed, shown, chosen);
    }
    Ok(unproven(with_proof(arguments, &home, healed, world)?))
}

/// A copy with links to the tablespaces of the original would write to those.
fn refuse_shared_files(shown: &HealDocument, chosen: &[usize]) -> Result<(), Failure> {
    let chosen = chosen.iter().filter_map(|at| shown.cures.get(*at));
    let own = chosen
        .into_iter()
        .find(|cure| cure.name == LINK_TABLESPACES);
    match own {
        None => Ok(()),
        Some(cure) => Err(Failure::new(format!(
            "a copy with the links of cure {} would write to the same tablespaces: leave that cure out of it. Nothing was written",
            cure.id
        ))),
    }
}

/// What the files no longer contradict is healed only where a server did start on it.
pub(super) fn unproven(mut document: HealDocument) -> HealDocument {
    // Beside these, files may stay lost without which it starts.
    let are_healed = document
        .cures
        .iter()
        .all(|cure| cure.outcome == CureOutcome::Healed);
    let is_undecided = document.outcome == HealOutcome::PartlyUndecided && are_healed;
    let is_healed = document.outcome == HealOutcome::Healed;
    if (is_healed || is_undecided) && document.proof.is_none() {
        document.outcome = HealOutcome::PartlyUndecided;
        document.warnings.push(
            "nothing is found any more that keeps a server from starting, but none was started: --prove lets one start on a copy and read everything".into(),
        );
    }
    document
}

fn is_as_shown(shown: &HealDocument, plan: &StartPlan, chosen: &[usize]) -> bool {
    let id = |cures: &[Cure], at: usize| cures.get(at).map(|cure| cure.id.clone());
    chosen
        .iter()
        .all(|at| id(&shown.cures, *at) == id(&plan.cures, *at))
}

/// Where the control file cannot be trusted, nothing but its bytes says which cluster it is.
fn consent_of(document: &HealDocument) -> Result<Consent, Failure> {
    if document.basis.system_identifier.is_empty() {
        return Ok(Consent::PlanByBytes);
    }
    Ok(Consent::Plan(identifier(document)?))
}

fn applied(operation: &Operation<'_>, journal: &PathBuf) -> Result<Applied, Failure> {
    let was_there = JournalFolder::new(journal).file().exists();
    apply(operation).map_err(|error| {
        let is_begun = !was_there && JournalFolder::new(journal).file().exists();
        interrupted(&error, is_begun.then_some(journal))
    })
}

/// The document with what is still found that keeps a server from starting.
pub(super) fn checked(
    mut document: HealDocument,
    home: &Path,
    world: &Env<'_>,
) -> Result<HealDocument, Failure> {
    let cluster = opened(home, world)?;
    let options = StartOptions {
        pgdata: home,
        threads: std::num::NonZeroUsize::MIN,
        progress: &NoProgress,
        temp_folder: &world.temp_folder,
        tablespace_maps: &[],
    };
    let left = match denied_pages(&document.request).as_slice() {
        [] => plan_start(&cluster, &options)?,
        pages => Some(plan_denied_status(&cluster, pages, &options)),
    };
    let is_started = left.is_none();
    let (left, open) = match left {
        Some(plan) => (plan.request, plan.not_healed),
        None => (Vec::new(), not_cured(&cluster, &options)?),
    };
    for (cure, request) in document.cures.iter_mut().zip(&document.request) {
        cure.outcome = if left.contains(request) {
            CureOutcome::DamageRemains
        } else {
            CureOutcome::Healed
        };
    }
    document.not_healed = open;
    document.outcome = outcome_of(&document);
    if is_started && document.outcome == HealOutcome::DamageRemains {
        // A server starts without what stays lost, and its recovery may still change that.
        document.outcome = HealOutcome::PartlyUndecided;
    }
    Ok(document)
}

/// The second look is short, and has no bar.
struct NoProgress;

impl pgclinic_model::Progress for NoProgress {
    fn expect(&self, _: u64) {}
    fn advance(&self, _: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}
