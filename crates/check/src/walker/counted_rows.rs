//! Rows at risk where nothing of a page or a file can be read: the entries of an index that lead
//! there count them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::index_entries::for_each_entry;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::Severity;
use pgclinic_model::document::{FileKind, Finding};

use crate::block_set::BlockSet;
use crate::check::ForkCx;
use crate::entries::lost_rows::{ask_indexes, best};
use crate::entries::named_blocks::is_witness;
use crate::files::missing_file::MISSING_FILE;
use crate::relation_check::RelationCx;
use crate::walker::run_ledger::RunLedger;

/// Fills in the rows of findings that have none, for tables of the database of `of`.
pub(super) fn fill(of: &RelationCx<'_>, books: &mut RunLedger) {
    let database = of.catalog.database;
    let is_open = |finding: &Finding| {
        let place = &finding.place;
        finding.severity == Severity::Damage
            && finding.caused_by.is_none()
            && finding.at_risk.rows.is_none()
            && matches!(place.kind, FileKind::Table | FileKind::MaterializedView)
            && place.fork == Some(Fork::Main)
            && place.database_oid == Some(database)
    };
    let mut pages: BTreeMap<Oid, BTreeSet<BlockNo>> = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for finding in books.findings.kept().filter(|finding| is_open(finding)) {
        match (finding.place.relation_oid, finding.place.block) {
            (Some(oid), Some(block)) => drop(pages.entry(oid).or_default().insert(block)),
            (Some(oid), None) if finding.rule == MISSING_FILE.name => drop(missing.insert(oid)),
            _ => {}
        }
    }
    if pages.is_empty() && missing.is_empty() {
        return;
    }
    let on_pages: BTreeMap<Oid, BTreeMap<BlockNo, u64>> = pages
        .into_iter()
        .filter_map(|(oid, blocks)| Some((oid, rows_on(of, oid, &blocks)?)))
        .collect();
    let in_files: BTreeMap<Oid, u64> = missing
        .into_iter()
        .filter_map(|oid| Some((oid, rows_of(of, oid)?)))
        .collect();
    for finding in books.findings.kept_mut().filter(|finding| is_open(finding)) {
        let Some(oid) = finding.place.relation_oid else {
            continue;
        };
        finding.at_risk.rows = match finding.place.block {
            Some(block) => on_pages
                .get(&oid)
                .and_then(|rows| rows.get(&block))
                .copied(),
            None if finding.rule == MISSING_FILE.name => in_files.get(&oid).copied(),
            None => None,
        };
    }
}

/// Rows on each of these blocks; nothing where no index counts them.
fn rows_on(
    of: &RelationCx<'_>,
    table: Oid,
    blocks: &BTreeSet<BlockNo>,
) -> Option<BTreeMap<BlockNo, u64>> {
    let relation = of.of(of.main_fork_of(table)?);
    let is_settled = relation.settles();
    is_settled.then_some(())?;
    let mut set = BlockSet::none_of(&(0..relation.fork.blocks));
    blocks.iter().for_each(|block| set.add(u64::from(*block)));
    let witnesses = ask_indexes(
        &relation,
        |named| blocks.iter().any(|block| named.may_name(*block)),
        |block| set.has(block),
    );
    let best = best(witnesses.iter()).filter(|own| own.counts_rows())?;
    let rows = best.blocks.iter().map(|(block, own)| (*block, own.entries));
    Some(rows.collect())
}

/// Rows of a table that has no file, by the index that counts them best.
fn rows_of(of: &RelationCx<'_>, table: Oid) -> Option<u64> {
    let cluster = of.fork.cluster?;
    let is_at_rest = !cluster.needs_recovery() && !cluster.is_running();
    let is_full = |index: &&ForkCx<'_>| {
        let own = index.relation.and_then(|own| own.index.as_ref());
        is_witness(index) && own.is_some_and(|own| !own.has_predicate)
    };
    let indexes = of.neighbours.indexes_of(table);
    let indexes = indexes.filter(|_| is_at_rest).filter(is_full);
    let counted = indexes.filter(|index| index.method.is_some_and(counts_rows));
    counted.map(|index| entries_of(of, index)).max()
}

/// A row has one entry there.
fn counts_rows(method: pgclinic_format::index_page::AccessMethod) -> bool {
    use pgclinic_format::index_page::AccessMethod::{Btree, Gist, Hash, Spgist};
    matches!(method, Btree | Gist | Hash | Spgist)
}

fn entries_of(of: &RelationCx<'_>, index: &ForkCx<'_>) -> u64 {
    let Some((method, source)) = index.method.zip(index.source) else {
        return 0;
    };
    let damaged = of.neighbours.damaged_in(index);
    let mut pages = pgclinic_scan::PageReader::new(source, index);
    let mut entries = 0;
    for number in 0..index.blocks {
        let is_out = damaged.is_some_and(|damaged| damaged.has(number));
        let Some(block) = BlockNo::try_from(number).ok().filter(|_| !is_out) else {
            continue;
        };
        if of.is_interrupted() {
            break;
        }
        if let Some(page) = pages.page(block) {
            for_each_entry(method, page, |_, _| entries += 1);
        }
    }
    entries
}
