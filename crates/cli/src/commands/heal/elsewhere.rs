//! Damage that no cure of a plan is for: why, and what else there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pgclinic_format::Fork;
use pgclinic_model::document::{CheckDocument, FileKind, NotHealed, RelationSummary};
use pgclinic_model::{Finding, Severity, plural, shell_word};
use pgclinic_surgery::checksums::PageOfFork;

use super::accused::Accusation;
use super::ends::{TruncatedTable, is_of_end, is_of_table};
use super::evidence::Found;
use super::shown_commands;
use super::status::{LostPages, is_of_status};
use super::wanted::{Reason, Wanted, page_of};

/// What is healed, or listed, elsewhere.
pub(super) struct Known<'a> {
    pub(super) wanted: &'a [Wanted<'a>],
    pub(super) truncated: &'a [TruncatedTable],
    pub(super) lost: &'a LostPages,
    pub(super) accused: &'a [Accusation<'a>],
}

/// Damage that belongs to none of these pages: files that are missing or too short, SLRU files,
/// the control file. What follows from a page that comes back goes with it.
pub(super) fn damage_elsewhere(
    document: &CheckDocument,
    known: &Known<'_>,
    found: &Found,
) -> Vec<NotHealed> {
    let Known {
        wanted,
        truncated,
        lost,
        accused,
    } = known;
    let accused: BTreeSet<&str> = accused.iter().map(|own| own.finding.id.as_str()).collect();
    let other = &found.not_healed;
    let of_rows = wanted
        .iter()
        .filter(|page| page.reason != Reason::Accused)
        .map(Wanted::page);
    let of_maps = found
        .requests
        .iter()
        .map(|own| PageOfFork::new(&own.path, own.block.into()));
    let pages: BTreeSet<PageOfFork> = of_rows.chain(of_maps).collect();
    let is_wanted = |finding: &Finding| page_of(finding).is_some_and(|page| pages.contains(&page));
    let is_end = |finding: &Finding| {
        let mut tables = truncated.iter();
        is_of_end(finding) && tables.any(|own| is_of_table(finding, own))
    };
    let is_lost = |own: &Finding| {
        let is_page = is_of_status(own) && lost.contains_key(&own.place.path);
        is_page || accused.contains(own.id.as_str())
    };
    let is_other = |finding: &Finding| {
        page_of(finding).is_some_and(|page| {
            let mut own = other.iter().filter(|own| own.path == page.path);
            own.any(|own| {
                own.blocks
                    .iter()
                    .any(|[start, end]| (*start..*end).contains(&page.block))
            })
        })
    };
    let damage = document.findings.iter();
    let damage = damage.filter(|own| own.severity == Severity::Damage);
    let roots: BTreeSet<&str> = damage
        .clone()
        .filter(|own| is_wanted(own) || is_end(own) || is_lost(own))
        .map(|own| own.id.as_str())
        .collect();
    let follows = |own: &Finding| {
        own.caused_by
            .as_deref()
            .is_some_and(|id| roots.contains(id))
    };
    let is_known = |own: &Finding| is_wanted(own) || is_end(own) || is_lost(own) || is_other(own);
    entries_by_file(
        document,
        damage.filter(|own| !is_known(own) && !follows(own)),
    )
}

/// Damage in files of which the plan has neither a cure nor a word: whatever else decides what is
/// listed, no damage of a check stays out of it.
pub(super) fn damage_without_answer(
    document: &CheckDocument,
    accused: &[Accusation<'_>],
    found: &Found,
) -> Vec<NotHealed> {
    let cured = found.requests.iter().map(|own| &own.path);
    let listed = found.not_healed.iter().map(|own| &own.path);
    let answered: BTreeSet<String> = cured.chain(listed).map(|path| fork_of(path)).collect();
    // Each of them is listed, or answered by a page of another file.
    let accused: BTreeSet<&str> = accused.iter().map(|own| own.finding.id.as_str()).collect();
    let is_answered = |own: &Finding| {
        accused.contains(own.id.as_str()) || answered.contains(&fork_of(&own.place.path))
    };
    let damage = document.findings.iter();
    let damage = damage.filter(|own| own.severity == Severity::Damage);
    let roots = damage.clone().filter(|own| is_answered(own));
    let roots: BTreeSet<&str> = roots.map(|own| own.id.as_str()).collect();
    let follows = |own: &Finding| {
        let root = own.caused_by.as_deref();
        root.is_some_and(|id| roots.contains(id))
    };
    entries_by_file(
        document,
        damage.filter(|own| !is_answered(own) && !follows(own)),
    )
}

/// The first file of the fork to which a file belongs.
pub(super) fn fork_of(path: &str) -> String {
    PageOfFork::new(path, 0).path
}

/// One entry a file.
fn entries_by_file<'a>(
    document: &CheckDocument,
    findings: impl Iterator<Item = &'a Finding>,
) -> Vec<NotHealed> {
    let mut by_path: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_path
            .entry(&finding.place.path)
            .or_default()
            .push(finding);
    }
    by_path
        .into_iter()
        .map(|(path, findings)| not_of_a_page(path, &findings, &document.target.spec))
        .collect()
}

/// Findings of one file that are listed with their words.
pub(super) const FINDINGS_SHOWN: usize = 5;

pub(super) fn not_of_a_page(path: &str, findings: &[&Finding], pgdata: &str) -> NotHealed {
    let blocks = findings.iter().filter_map(|own| own.place.block);
    let blocks: BTreeSet<u32> = blocks.collect();
    let shown = findings.iter().take(FINDINGS_SHOWN);
    let mut why: Vec<String> = shown
        .map(|own| format!("{}: {}", own.rule, own.message))
        .collect();
    let more = findings.len().saturating_sub(FINDINGS_SHOWN);
    if more > 0 {
        why.push(format!("and {} of this file", plural(more, "more finding")));
    }
    let rules: BTreeSet<&str> = findings.iter().map(|own| own.rule.as_str()).collect();
    let of_index = findings
        .iter()
        .find(|own| own.place.kind == FileKind::Index);
    let statement = of_index.and_then(|own| reindex_of(own));
    if of_index.is_some() && statement.is_none() {
        why.push(OF_A_NAMELESS_INDEX.to_owned());
    }
    let mut commands: Vec<String> = statement.into_iter().collect();
    commands.push(format!(
        "pgclinic check {} --level full",
        shown_commands::pgdata_word(Path::new(pgdata))
    ));
    commands.extend(rules.iter().map(|rule| format!("pgclinic explain {rule}")));
    NotHealed {
        path: path.to_owned(),
        relation: findings.iter().find_map(|own| own.place.relation.clone()),
        blocks: blocks
            .into_iter()
            .map(|block| [block.into(), u64::from(block) + 1])
            .collect(),
        needs_loss: false,
        why,
        commands,
    }
}

/// Damage whose cure is no page: what follows from tables is made again.
pub(super) fn other_way(relation: &RelationSummary) -> NotHealed {
    let name = relation.name();
    let is_named = relation.relation.is_some();
    let (why, command) = match (relation.fork, relation.kind) {
        (Fork::Main, FileKind::Index) => (
            "an index is rebuilt from its table, not patched; its table comes first. Where its pages are wanted all the same, --index-pages looks for what proves them",
            is_named.then(|| reindex(&name, relation.database.as_deref())),
        ),
        _ => (
            "the kind of this relation is unknown",
            Some("pgclinic check --level full shows more".into()),
        ),
    };
    let mut why = vec![why.to_owned()];
    if command.is_none() {
        why.push(OF_A_NAMELESS_INDEX.to_owned());
    }
    NotHealed {
        path: relation.path.clone(),
        relation: Some(name),
        blocks: relation.damaged.clone(),
        needs_loss: false,
        why,
        commands: command.into_iter().collect(),
    }
}

/// What is left where nothing proves the page: the rows that can still be read are saved.
pub(super) fn not_proven(page: &Wanted<'_>, why: Vec<String>, pgdata: &Path) -> NotHealed {
    let block = u64::from(page.block);
    NotHealed {
        path: page.files.path(0),
        relation: Some(page.relation.clone()),
        blocks: vec![[block, block + 1]],
        needs_loss: true,
        why,
        commands: vec![shown_commands::salvage(pgdata, Some(&page.table))],
    }
}

/// Gives the page up, with all that is on it.
pub(super) fn zero_page(page: &Wanted<'_>, pgdata: &Path) -> String {
    format!(
        "pgclinic heal {} --at {}:{} --zero-page",
        shown_commands::pgdata_word(pgdata),
        shell_word(&page.files.path(0)),
        page.block
    )
}

/// A sequence that no column owns.
pub(super) fn sequence_not_proven(page: &Wanted<'_>, why: Vec<String>) -> NotHealed {
    NotHealed {
        path: page.files.path(0),
        relation: Some(page.relation.clone()),
        blocks: vec![[0, 1]],
        needs_loss: true,
        why,
        commands: vec![
            format!("DROP SEQUENCE {};", page.relation),
            format!("CREATE SEQUENCE {} START 1;", page.relation),
        ],
    }
}

pub(super) fn index_not_proven(page: &Wanted<'_>, mut why: Vec<String>) -> NotHealed {
    let block = u64::from(page.block);
    let path = page.files.path(0);
    // A relation without a name goes by its file.
    let is_named = page.relation != path;
    if !is_named {
        why.push(OF_A_NAMELESS_INDEX.to_owned());
    }
    let statement = is_named.then(|| reindex(&page.relation, page.database.as_deref()));
    NotHealed {
        path,
        relation: Some(page.relation.clone()),
        blocks: vec![[block, block + 1]],
        needs_loss: false,
        why,
        commands: statement.into_iter().collect(),
    }
}

/// The statement that makes an index again.
fn reindex(name: &str, database: Option<&str>) -> String {
    match database {
        Some(database) => format!("REINDEX INDEX {name}; -- in database {database}"),
        None => format!("REINDEX INDEX {name};"),
    }
}

/// Why no statement stands where that of an index would.
pub(super) const OF_A_NAMELESS_INDEX: &str = "no catalog names the index whose file this is: once one does, REINDEX builds it from its table";

/// The same for the index of a finding, where its name is known.
pub(super) fn reindex_of(finding: &Finding) -> Option<String> {
    let place = &finding.place;
    place.relation.as_ref()?;
    Some(reindex(&place.relation_name(), place.database.as_deref()))
}
