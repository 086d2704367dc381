//! Pages that are sound by themselves, and that the check of level full accuses: of a TOASTed value
//! that is not whole those of its row, of its chunks, and of where its index says that they stand;
//! of entries that no row belongs to those of the rows; of a catalog that holds nothing but zeros
//! all. Which of them is not what it was, WAL and copies say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pgclinic_cluster::{
    BlocksOfValues, Catalog, Cluster, DatabaseContext, ForkFiles, Relation, blocks_of_values,
};
use pgclinic_format::{BlockNo, Oid};
use pgclinic_model::document::{CheckDocument, NotHealed};
use pgclinic_model::{Finding, Severity, shell_word};
use pgclinic_surgery::checksums::PageOfFork;

use super::elsewhere::{OF_A_NAMELESS_INDEX, reindex_of};
use super::given_up::may_be_accused_in_vain;
use super::shown_commands;
use super::wanted::ForksByPath;

/// A TOASTed value is not what its row says.
const VALUE_RULES: [&str; 4] = [
    "toast-value-corrupt",
    "toast-value-incomplete",
    "toast-value-missing",
    "toast-value-size",
];
/// An entry of an index and the row to which it leads contradict each other.
const ENTRY_RULES: [&str; 2] = ["index-entry-of-other-key", "index-entry-without-row"];
/// A catalog that always has rows has none.
const EMPTY_RULE: &str = "empty-catalog";

/// A finding, and the pages of which one may be another than it was.
pub(super) struct Accusation<'a> {
    pub(super) finding: &'a Finding,
    pub(super) pages: BTreeSet<PageOfFork>,
    /// Name of the column with the value.
    column: Option<String>,
}

/// All of them that a document has, of findings that follow from no other.
pub(super) fn accusations<'a>(
    document: &'a CheckDocument,
    cluster: &Cluster,
    forks: &ForksByPath,
) -> Vec<Accusation<'a>> {
    let own = document.findings.iter().filter(|own| {
        let is_root = own.severity == Severity::Damage && own.caused_by.is_none();
        is_root && (is_accusing(own) || is_of_zeros(own, cluster, forks))
    });
    let mut by_database: BTreeMap<Oid, Vec<&Finding>> = BTreeMap::new();
    for finding in own {
        if let Some(database) = finding.place.database_oid {
            by_database.entry(database).or_default().push(finding);
        }
    }
    let mut all = Vec::new();
    for (database, findings) in by_database {
        let catalog = cluster.catalog(database);
        let own = forks.values().filter(|own| own.home.database == database);
        let forks: Vec<_> = own.cloned().collect();
        let view = DatabaseContext {
            cluster,
            catalog: &catalog,
            forks: &forks,
        };
        all.extend(of_database(&view, findings));
    }
    all
}

fn is_accusing(finding: &Finding) -> bool {
    let rule = finding.rule.as_str();
    VALUE_RULES.contains(&rule) || ENTRY_RULES.contains(&rule)
}

/// It is of a catalog that has pages, and nothing on them. One that is too short ends too early.
fn is_of_zeros(finding: &Finding, cluster: &Cluster, forks: &ForksByPath) -> bool {
    let files = forks.get(&finding.place.path);
    finding.rule == EMPTY_RULE && files.is_some_and(|own| !all_pages(cluster, own).is_empty())
}

fn of_database<'a>(
    database: &DatabaseContext<'_>,
    findings: Vec<&'a Finding>,
) -> Vec<Accusation<'a>> {
    let mut values: BTreeMap<Oid, BTreeSet<Oid>> = BTreeMap::new();
    for finding in &findings {
        if let (Some(value), Some(table)) = (value_of(finding), finding.place.relation_oid) {
            values.entry(table).or_default().insert(value);
        }
    }
    let blocks: BTreeMap<Oid, BlocksOfValues> = values
        .iter()
        .filter_map(|(table, values)| {
            let toast = toast_of(database.catalog, *table)?;
            Some((*table, blocks_of_values(database, toast, values)))
        })
        .collect();
    let accusation = |finding: &'a Finding| Accusation {
        finding,
        column: column_of(database.catalog, finding),
        pages: match value_of(finding) {
            Some(value) => pages_of_value(database, finding, value, &blocks),
            None if finding.rule == EMPTY_RULE => pages_of_file(database, finding),
            None => page_of_row(database, finding).into_iter().collect(),
        },
    };
    findings.into_iter().map(accusation).collect()
}

fn toast_of(catalog: &Catalog, table: Oid) -> Option<&Relation> {
    let mut relations = catalog.relations.values();
    relations.find(|relation| relation.toast_of == table)
}

fn column_of(catalog: &Catalog, finding: &Finding) -> Option<String> {
    let table = catalog.relations.get(&finding.place.relation_oid?)?;
    let number = finding.place.attribute.as_ref()?.number;
    let mut columns = table.columns.iter().flatten();
    let own = columns.find(|column| column.attnum == number)?;
    Some(own.name.clone())
}

fn value_of(finding: &Finding) -> Option<Oid> {
    let value = finding.facts.get("value")?.as_u64()?;
    let is_of_value = VALUE_RULES.contains(&finding.rule.as_str());
    is_of_value.then(|| Oid::try_from(value).ok()).flatten()
}

/// That of the row, and those that have its chunks or should.
fn pages_of_value(
    database: &DatabaseContext<'_>,
    finding: &Finding,
    value: Oid,
    blocks: &BTreeMap<Oid, BlocksOfValues>,
) -> BTreeSet<PageOfFork> {
    let place = &finding.place;
    let mut pages = BTreeSet::new();
    if let Some(block) = place.block {
        pages.insert(PageOfFork::new(&place.path, block.into()));
    }
    let Some(table) = place.relation_oid else {
        return pages;
    };
    let toast = toast_of(database.catalog, table);
    let files = toast.and_then(|toast| database.main_fork(toast));
    let own = blocks.get(&table).and_then(|blocks| blocks.get(&value));
    if let (Some(files), Some(blocks)) = (files, own) {
        let path = files.path(0);
        pages.extend(
            blocks
                .iter()
                .map(|block| PageOfFork::new(&path, u64::from(*block))),
        );
    }
    pages
}

/// All of the file in which the finding is.
fn pages_of_file(database: &DatabaseContext<'_>, finding: &Finding) -> BTreeSet<PageOfFork> {
    let mut forks = database.forks.iter();
    let files = forks.find(|own| own.path(0) == finding.place.path);
    files.map_or_else(BTreeSet::new, |files| all_pages(database.cluster, files))
}

fn all_pages(cluster: &Cluster, files: &ForkFiles) -> BTreeSet<PageOfFork> {
    let build = cluster.build;
    let blocks = files.blocks(build.block_size, build.segment_bytes);
    let path = files.path(0);
    (0..blocks)
        .map(|block| PageOfFork::new(&path, block))
        .collect()
}

/// That of the row to which the entry leads.
fn page_of_row(database: &DatabaseContext<'_>, finding: &Finding) -> Option<PageOfFork> {
    let relations = &database.catalog.relations;
    let index = relations.get(&finding.place.relation_oid?)?;
    let table = relations.get(&index.index.as_ref()?.table)?;
    let files = database.main_fork(table)?;
    let block = block_of_row(finding)?;
    Some(PageOfFork::new(&files.path(0), block.into()))
}

/// `table_block`, or the block of `row`, which is written as a ctid: `(35,7)`.
fn block_of_row(finding: &Finding) -> Option<BlockNo> {
    if let Some(block) = finding.facts.get("table_block") {
        return BlockNo::try_from(block.as_u64()?).ok();
    }
    let row = finding.facts.get("row")?.as_str()?;
    row.strip_prefix('(')?.split_once(',')?.0.parse().ok()
}

/// What is listed of an accusation when none of its pages comes back. Without the relation map of
/// its database it may be made in vain: no value is given up then.
pub(super) fn not_cured(
    accusation: &Accusation<'_>,
    mut why: Vec<String>,
    lost_map: Option<&str>,
    pgdata: &str,
) -> NotHealed {
    let finding = accusation.finding;
    let place = &finding.place;
    why.insert(0, finding.message.clone());
    let is_of_value = value_of(finding).is_some();
    let is_of_catalog = finding.rule == EMPTY_RULE;
    let commands = match lost_map {
        Some(_) if is_of_value => Vec::new(),
        None if is_of_value => cut_value(accusation, pgdata),
        _ if is_of_catalog => vec![format!("pgclinic explain {EMPTY_RULE}")],
        _ => reindex_of(finding).into_iter().collect(),
    };
    if commands.is_empty() && !is_of_value {
        why.push(OF_A_NAMELESS_INDEX.to_owned());
    }
    why.extend(
        lost_map
            .filter(|_| !is_of_catalog)
            .map(may_be_accused_in_vain),
    );
    NotHealed {
        path: PageOfFork::new(&place.path, 0).path,
        relation: place.relation.as_ref().map(|_| place.relation_name()),
        blocks: place
            .block
            .map(|block| [block.into(), u64::from(block) + 1])
            .into_iter()
            .collect(),
        needs_loss: is_of_value && lost_map.is_none(),
        why,
        commands,
    }
}

/// The rows are saved first, then the value is given up, and nothing but the value.
fn cut_value(accusation: &Accusation<'_>, pgdata: &str) -> Vec<String> {
    let place = &accusation.finding.place;
    let pgdata_path = Path::new(pgdata);
    let pgdata = shown_commands::pgdata_word(pgdata_path);
    let relation = place.relation_name();
    let mut commands = vec![shown_commands::salvage(pgdata_path, Some(&relation))];
    let column = accusation.column.as_ref();
    if let (Some(block), Some(item), Some(column)) = (place.block, place.item, column) {
        let path = shell_word(&PageOfFork::new(&place.path, 0).path);
        let column = shell_word(column);
        commands.push(format!(
            "pgclinic heal {pgdata} --at {path}:{block}:{item} --cut-toast-value {column}"
        ));
    }
    commands
}
