//! One ordered plan for all findings: what to secure, what to read out, what heals, tables before
//! what is made from them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Fork;
use pgclinic_model::document::{FileKind, Finding, PlanRelation, PlanStep, Remedy, Target};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Severity, plural, shell_word};

use super::{Commands, holds_rows, is_map};
use crate::consequences::{FETCH_WAL, LET_A_COPY_RECOVER, RESET_WAL};

/// Relations and commands that a step names; the rest is counted.
const NAMED_MAX: usize = 100;
/// Relations that a command line names; with more, it takes their whole database.
const SALVAGED_BY_NAME: usize = 20;
/// Ranges of blocks that a sentence names.
const RANGES_MAX: usize = 20;

/// When a step is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Wal,
    Recovery,
    ClusterFiles,
    CatalogTables,
    Tables,
    Sequences,
    Views,
    Maps,
    Indexes,
    IndexesLater,
    LastResort,
}

/// Steps that gather what several findings ask for.
type Steps<'a> = BTreeMap<(Rank, &'a str, std::cmp::Reverse<Safety>), Gathered>;

#[derive(Default)]
struct Gathered {
    relations: BTreeSet<PlanRelation>,
    commands: Commands,
}

/// The plan; empty where nothing is to be done.
pub(super) fn plan(findings: &[Finding], target: &Target) -> Vec<PlanStep> {
    let is_root = |finding: &&Finding| finding.caused_by.is_none();
    let roots: Vec<&Finding> = findings.iter().filter(is_root).collect();
    let mut steps = Steps::new();
    for finding in roots.iter().copied() {
        gather(finding, &mut steps);
    }
    let damaged: Vec<&Finding> = roots
        .iter()
        .copied()
        .filter(|finding| finding.severity == Severity::Damage)
        .collect();
    let rest = steps.split_off(&(Rank::Recovery, "", std::cmp::Reverse(Safety::Exact)));
    // Archives and standbys remove WAL: it is fetched before anything else is done.
    let mut plan: Vec<PlanStep> = steps.into_iter().map(written).collect();
    if !damaged.is_empty() {
        plan.push(secure(target));
        plan.extend(salvage(&damaged, target));
        plan.extend(heal(&damaged, target));
    }
    plan.extend(rest.into_iter().map(written));
    if !damaged.is_empty() {
        plan.push(check_again(target));
    }
    plan
}

/// Takes up the cures of a finding. A note asks for nothing but the recovery that is due.
fn gather<'a>(finding: &'a Finding, steps: &mut Steps<'a>) {
    let rank = rank_of(finding);
    for remedy in &finding.remedies {
        let is_recovery = remedy.name == LET_A_COPY_RECOVER;
        if finding.severity == Severity::Note && !is_recovery {
            continue;
        }
        let rank = match (rank, remedy.safety) {
            _ if is_recovery => Rank::Recovery,
            _ if remedy.name == FETCH_WAL => Rank::Wal,
            _ if remedy.name == RESET_WAL => Rank::LastResort,
            (Rank::Indexes, Safety::Lossy | Safety::ShowOnly) => Rank::IndexesLater,
            _ => rank,
        };
        let key = (rank, remedy.name.as_str(), std::cmp::Reverse(remedy.safety));
        let step = steps.entry(key).or_default();
        step.relations.insert(relation_of(finding));
        let (command, block) = command_of(finding, remedy);
        step.commands.entry(command).or_default().extend(block);
    }
}

fn rank_of(finding: &Finding) -> Rank {
    let place = &finding.place;
    let is_catalog = place.schema.as_deref() == Some("pg_catalog");
    match place.kind {
        _ if is_map(finding) => Rank::Maps,
        FileKind::ControlFile
        | FileKind::RelationMap
        | FileKind::Slru
        | FileKind::Wal
        | FileKind::File => Rank::ClusterFiles,
        FileKind::Table | FileKind::Toast if is_catalog => Rank::CatalogTables,
        FileKind::Table | FileKind::Toast | FileKind::Unknown => Rank::Tables,
        FileKind::Sequence => Rank::Sequences,
        FileKind::MaterializedView => Rank::Views,
        FileKind::Index => Rank::Indexes,
    }
}

fn relation_of(finding: &Finding) -> PlanRelation {
    PlanRelation {
        database: finding.place.database.clone(),
        name: finding.place.relation_name(),
    }
}

/// What a step says once for all blocks of a file, and the block.
fn command_of(finding: &Finding, remedy: &Remedy) -> (String, Option<u64>) {
    let place = &finding.place;
    match (remedy.name.as_str(), place.block) {
        ("restore-page-from-copy", Some(block)) => (place.path.clone(), Some(u64::from(block))),
        _ => (remedy.command.clone(), None),
    }
}

fn written((key, gathered): ((Rank, &str, std::cmp::Reverse<Safety>), Gathered)) -> PlanStep {
    let (rank, name, std::cmp::Reverse(safety)) = key;
    let mut gathered = gathered;
    one_command_an_index(&mut gathered.commands);
    let commands = gathered.commands.into_iter();
    let commands = commands.map(|(command, blocks)| sentence(command, &blocks));
    step(
        name,
        safety,
        why_of(rank, name, safety),
        gathered.relations.into_iter().collect(),
        commands.collect(),
    )
}

/// Findings of pages ask for an index beside its users, those of files for it alone: the latter
/// serves both.
fn one_command_an_index(commands: &mut Commands) {
    let alone: BTreeSet<String> = commands.keys().cloned().collect();
    commands.retain(|command, _| {
        let other = command.replace("INDEX CONCURRENTLY ", "INDEX ");
        other == *command || !alone.contains(&other)
    });
}

/// A sentence about the blocks of a file, or the command as it is.
fn sentence(command: String, blocks: &BTreeSet<u64>) -> String {
    if blocks.is_empty() {
        return command;
    }
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*block) => *last = *block,
            _ => ranges.push((*block, *block)),
        }
    }
    let shown = ranges.iter().take(RANGES_MAX).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    let mut words = shown.collect::<Vec<_>>().join(", ");
    if ranges.len() > RANGES_MAX {
        words.push_str(" and others that the findings name");
    }
    let noun = if blocks.len() == 1 { "block" } else { "blocks" };
    format!(
        "take {noun} {words} of {command} from a backup or standby whose copy pgclinic check calls sound"
    )
}

fn why_of(rank: Rank, name: &str, safety: Safety) -> &'static str {
    match (rank, name, safety) {
        (Rank::Wal, ..) => {
            "recovery needs this WAL, and pages that are accused without it are sound with it: nothing is to be mended in them before; where it is gone for good, salvage writes the rows that are left"
        }
        (Rank::Recovery, ..) => {
            "replay writes these pages again, so that nothing is to be mended in them before"
        }
        (Rank::ClusterFiles, ..) => {
            "the server needs these files to start, and to know which rows there are"
        }
        (Rank::CatalogTables, ..) => {
            "the catalogs say which relations there are: they come before the tables of users"
        }
        (Rank::Tables, ..) => "a table comes before its indexes and maps, which are made from it",
        (Rank::Sequences, ..) => "a sequence that gives numbers again makes duplicate keys",
        (Rank::Views, _, Safety::Exact) => {
            "the view is made again from its tables, in which no damage was seen"
        }
        (Rank::Views, ..) => "the view is made again from its tables, so it comes after them",
        (Rank::Maps, ..) => "the map is made again from its table",
        (Rank::Indexes, ..) => {
            "these indexes alone are damaged: no damage was seen in their tables"
        }
        (Rank::IndexesLater, "reindex", Safety::Lossy) => {
            "an index is made again from its table, so it comes after it"
        }
        (Rank::LastResort, ..) => {
            "where nothing else is left: it throws away what WAL has and the files do not, and rows come and go by it"
        }
        (Rank::IndexesLater, ..) => "to be decided by hand: the table may be the wrong side",
    }
}

fn step(
    name: &str,
    safety: Safety,
    why: impl Into<String>,
    mut relations: Vec<PlanRelation>,
    mut commands: Vec<String>,
) -> PlanStep {
    let beyond = |len: usize| len.saturating_sub(NAMED_MAX) as u64;
    let (relations_omitted, commands_omitted) = (beyond(relations.len()), beyond(commands.len()));
    relations.truncate(NAMED_MAX);
    commands.truncate(NAMED_MAX);
    PlanStep {
        name: name.into(),
        safety,
        why: why.into(),
        relations,
        relations_omitted,
        commands,
        commands_omitted,
    }
}

/// What stands before every change.
fn secure(target: &Target) -> PlanStep {
    let spec = target.spec.as_str();
    let is_running = target.is_running();
    let copy = format!(
        "cp -a {} {}",
        shell_word(spec),
        shell_word(&format!("{spec}.copy"))
    );
    let links = "links in pg_tblspc lead to the original's tablespaces, so copy those too and set the copy's links";
    let (why, commands) = match target.kind.as_str() {
        "data-directory" if is_running => {
            (format!("stop the server as soon as you can: what it writes and what VACUUM removes cannot be got back. Then copy all of it and change nothing but the copy; {links}"), vec![copy])
        }
        "data-directory" => {
            (format!("copy all of it, with the server stopped, and change nothing but the copy; {links}"), vec![copy])
        }
        "server" => ("stop the server as soon as you can, copy its data directory with the tablespaces, and change nothing but the copy".to_owned(), Vec::new()),
        "base-backup" | "tar-backup" | "backup-chain" => ("keep this backup as it is, keep the older ones, and check the cluster that it was taken of: a backup copies damage".to_owned(), Vec::new()),
        _ => ("copy the file, and change nothing but the copy".to_owned(), vec![copy]),
    };
    step("secure-a-copy", Safety::ShowOnly, why, Vec::new(), commands)
}

/// Files by which a server starts, and knows which rows there are.
fn is_of_the_cluster(finding: &Finding) -> bool {
    matches!(
        finding.place.kind,
        FileKind::ControlFile | FileKind::RelationMap | FileKind::Slru | FileKind::Wal
    )
}

/// What follows from evidence is seen before any file is taken from elsewhere.
fn heal(damaged: &[&Finding], target: &Target) -> Option<PlanStep> {
    let is_asked = damaged.iter().copied().any(is_of_the_cluster)
        && target.kind == "data-directory"
        && !target.is_running();
    is_asked.then(|| {
        step(
            "see-what-heals",
            Safety::ShowOnly,
            "it says what of these files follows from WAL and from the other files, exactly or with which loss; nothing is written without consent",
            Vec::new(),
            vec![format!("pgclinic heal {}", target.as_arguments())],
        )
    })
}

/// Reading out the rows that are still there, where rows are at stake: those of all tables where
/// files of the whole cluster are damaged.
fn salvage(damaged: &[&Finding], target: &Target) -> Option<PlanStep> {
    let reads_all = matches!(target.kind.as_str(), "data-directory" | "base-backup");
    let is_of_all = |finding: &&Finding| reads_all && is_of_the_cluster(finding);
    if damaged
        .iter()
        .any(|finding| is_of_all(finding) || is_shared_catalog(finding))
    {
        return Some(salvage_all(target));
    }
    let at_stake = damaged.iter().copied().filter(|finding| {
        let in_rows =
            holds_rows(finding) && finding.place.fork.is_none_or(|fork| fork == Fork::Main);
        // A row whose entry proves that it is wrong stands with its index.
        let flipped = finding.facts.get("flipped").and_then(|side| side.as_str());
        flipped == Some("row") || (in_rows && finding.at_risk.rows != Some(0))
    });
    let mut by_database: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut relations, mut refused) = (BTreeSet::new(), BTreeMap::new());
    // Catalogs name the tables: those that are missed there stand in no finding.
    let mut without_names = BTreeSet::new();
    for finding in at_stake {
        let (Some(database), Some(name)) = (&finding.place.database, salvaged_name(finding)) else {
            continue;
        };
        if is_catalog(finding) {
            without_names.insert(database.clone());
        }
        relations.insert(PlanRelation {
            database: Some(database.clone()),
            name: name.clone(),
        });
        if finding.at_risk.whole_table {
            *refused.entry(name.clone()).or_insert(0u64) += finding.at_risk.rows.unwrap_or(1);
        }
        by_database
            .entry(database.clone())
            .or_default()
            .insert(name);
    }
    if by_database.is_empty() {
        return None;
    }
    let several = by_database.len() > 1;
    let commands = by_database.iter().map(|(database, names)| {
        let of = several.then_some(database.as_str());
        let names = names.iter().filter(|_| !without_names.contains(database));
        let names: Vec<&str> = names.map(String::as_str).collect();
        salvage_command(target, (database, &names), &salvaged_into(target, of))
    });
    let mut why = "rows are at stake: read out what is still there, before anything changes the files; salvage only reads them, and needs as much room as the tables hold, best on another disk".to_owned();
    for (table, rows) in refused.iter().take(RANGES_MAX) {
        let rows = plural(*rows, "row");
        why.push_str(&format!(
            "; the server refuses the whole of {table} because of {rows}, salvage writes the others"
        ));
    }
    let commands = commands.collect();
    Some(step(
        "salvage-rows",
        Safety::ShowOnly,
        why,
        relations.into_iter().collect(),
        commands,
    ))
}

/// Every table of every database.
fn salvage_all(target: &Target) -> PlanStep {
    let command = format!(
        "pgclinic salvage {} --to {}",
        target.as_arguments(),
        shell_word(&salvaged_into(target, None))
    );
    let why = "every table is at stake: read out what is there, before anything changes the files; salvage only reads them, applies WAL in memory, and says what is missing";
    step(
        "salvage-rows",
        Safety::ShowOnly,
        why,
        Vec::new(),
        vec![command],
    )
}

/// The finding is about a table of the catalogs that says which relations and columns there are.
fn is_catalog(finding: &Finding) -> bool {
    let place = &finding.place;
    let is_of_system = place.schema.as_deref() == Some("pg_catalog");
    let holds_objects = place.relation.as_deref() == Some("pg_largeobject");
    is_of_system && !holds_objects && place.kind != FileKind::Index
}

/// The same of one that all databases share.
fn is_shared_catalog(finding: &Finding) -> bool {
    let is_shared = finding.place.database_oid == Some(0);
    is_shared && is_catalog(finding) && holds_rows(finding) && finding.at_risk.rows != Some(0)
}

/// The table as salvage names it; that of long values is their table.
fn salvaged_name(finding: &Finding) -> Option<String> {
    let place = &finding.place;
    match (&finding.links.owner, place.kind) {
        (Some(owner), FileKind::Toast | FileKind::Index) => Some(owner.qualified_name.clone()),
        (None, FileKind::Toast | FileKind::Index) => None,
        _ => place.relation.is_some().then(|| place.relation_name()),
    }
}

fn salvage_command(target: &Target, (database, names): (&str, &[&str]), into: &str) -> String {
    let mut words = vec!["pgclinic salvage".to_owned(), target.as_arguments()];
    words.push(format!("--database {}", shell_word(database)));
    if names.len() <= SALVAGED_BY_NAME {
        words.extend(
            names
                .iter()
                .map(|name| format!("--relation {}", shell_word(name))),
        );
    }
    words.push(format!("--to {}", shell_word(into)));
    words.join(" ")
}

/// A folder beside the target, one for each database; of a server, one where the command is typed.
fn salvaged_into(target: &Target, database: Option<&str>) -> String {
    let of = database.map(|name| format!("-{}", name.replace('/', "_")));
    let of = of.unwrap_or_default();
    let spec = target.spec.split(" + ").next().unwrap_or_default();
    match target.kind.as_str() {
        "server" => format!("salvaged{of}"),
        _ => format!("{spec}.salvaged{of}"),
    }
}

fn check_again(target: &Target) -> PlanStep {
    let command = format!("pgclinic check {} --level full", target.as_arguments());
    let why = "what was mended is proven by another look, at the deepest level and of the stopped cluster";
    step(
        "check-again",
        Safety::ShowOnly,
        why,
        Vec::new(),
        vec![command],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_file_are_one_sentence() {
        let blocks = BTreeSet::from([3, 4, 5, 9]);
        let words = sentence("base/5/16384".into(), &blocks);
        assert!(
            words.starts_with("take blocks 3-5, 9 of base/5/16384 from"),
            "{words}"
        );
        assert_eq!(
            sentence("REINDEX INDEX a;".into(), &BTreeSet::new()),
            "REINDEX INDEX a;"
        );
    }
}
