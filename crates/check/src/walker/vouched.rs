//! Tables of which nothing beside their own pages tells how many they had, or where rows stood.
//!
//! An index is made again from its table. Where its file is gone, and no other index, visibility
//! map or count of pages vouches for the table, rows may be missing that nobody misses.

use std::collections::BTreeSet;

use pgclinic_cluster::{
    Catalog, Cluster, Comparison, DatabaseContext, Persistence, RelKind, Relation,
};
use pgclinic_format::index_entries::names_rows;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{Coverage, Level, NotChecked, ROWS_MAY_BE_LOST, Witness};
use pgclinic_model::plural;

use crate::check::ForkCx;
use crate::entries::named_blocks::is_witness;
use crate::walker::CheckOptions;
use crate::walker::database_relations::DatabaseRelations;
use crate::walker::run_ledger::RunLedger;

const HEAP: Option<AccessMethod> = Some(AccessMethod::Heap);
/// Tables that an entry names; the rest is counted.
const NAMES_MAX: usize = 5;

/// The tables for which nothing vouches, by OID.
pub(super) fn without_voucher(
    neighbours: &DatabaseRelations<'_>,
    lost_maps: &BTreeSet<Oid>,
) -> BTreeSet<Oid> {
    let forks = neighbours.forks().iter();
    let tables = forks.filter(|fork| fork.fork() == Fork::Main && fork.method == HEAP);
    let open = tables.filter(|table| !is_vouched_for(table, neighbours, lost_maps));
    open.filter_map(|table| Some(table.relation?.oid)).collect()
}

/// Tables whose visibility maps are lost, or say nothing.
pub(super) fn lost_maps(neighbours: &DatabaseRelations<'_>) -> BTreeSet<Oid> {
    let forks = neighbours.forks().iter();
    let tables = forks.filter(|fork| fork.fork() == Fork::Main && fork.method == HEAP);
    let known = tables.filter_map(|table| Some((table.cluster?, table.relation?, table.files)));
    let lost = known.filter(|(cluster, own, files)| cluster.has_lost_map(own, files));
    lost.map(|(_, own, _)| own.oid).collect()
}

/// Books the witnesses of these tables.
pub(super) fn count(
    neighbours: &DatabaseRelations<'_>,
    lost_maps: &BTreeSet<Oid>,
    coverage: &mut Coverage,
) {
    for (place, fork) in neighbours.forks().iter().enumerate() {
        let witness = match (fork.fork(), fork.method) {
            (Fork::Main, HEAP) => {
                let is_counted = counts_pages(fork, lost_maps);
                coverage.asked(Witness::PageCounts, u64::from(is_counted), 0);
                continue;
            }
            (Fork::Main, _) if is_witness(fork) => Witness::IndexEntries,
            (Fork::Vm, _) if has_marks(fork, lost_maps) => Witness::VisibilityMaps,
            _ => continue,
        };
        let is_asked = neighbours.is_in_reach(place);
        coverage.asked(witness, u64::from(is_asked), u64::from(!is_asked));
    }
}

fn is_vouched_for<'a>(
    table: &'a ForkCx<'a>,
    neighbours: &DatabaseRelations<'a>,
    lost_maps: &BTreeSet<Oid>,
) -> bool {
    let Some(own) = table.relation else {
        return true;
    };
    let map = neighbours.beside(table, Fork::Vm);
    map.is_some_and(|map| has_marks(map, lost_maps))
        || counts_pages(table, lost_maps)
        || neighbours
            .indexes_of(own.oid)
            .any(|index| names_some(index, neighbours))
}

fn has_marks(map: &ForkCx<'_>, lost_maps: &BTreeSet<Oid>) -> bool {
    let is_lost = map.relation.is_some_and(|own| lost_maps.contains(&own.oid));
    map.blocks > 0 && !is_lost
}

/// `pg_class` has counted the pages of the table, and it has them.
fn counts_pages(table: &ForkCx<'_>, lost_maps: &BTreeSet<Oid>) -> bool {
    let own = table.relation.filter(|own| !lost_maps.contains(&own.oid));
    let counted = own.map_or(0, |own| u64::try_from(own.relpages).unwrap_or(0));
    let is_own = table.cluster.is_some_and(Cluster::counts_own_pages);
    is_own && counted > 0 && counted <= table.blocks
}

fn names_some<'a>(index: &'a ForkCx<'a>, neighbours: &DatabaseRelations<'a>) -> bool {
    let named = neighbours.named_by(index);
    is_witness(index) && has_all_rows(index.relation) && named.is_some_and(|own| own.end() > 0)
}

fn has_all_rows(index: Option<&Relation>) -> bool {
    let index = index.and_then(|own| own.index.as_ref());
    index.is_some_and(|index| !index.has_predicate)
}

/// Leaves open whether such tables have all their rows, where an index that would tell is gone or
/// damaged.
pub(super) fn leave_open(
    (neighbours, catalog): (&DatabaseRelations<'_>, &Catalog),
    tables: &BTreeSet<Oid>,
    options: &CheckOptions,
    books: &mut RunLedger,
) {
    if !options.selection.is_everything() {
        return;
    }
    for table in tables
        .iter()
        .filter_map(|oid| neighbours.main_fork_of(*oid))
    {
        let Some(own) = table.relation.filter(|_| may_be_judged(table)) else {
            continue;
        };
        let indexes = catalog.relations.values();
        let mut lost = indexes
            .filter(|other| tells_rows_of(other, own.oid))
            .filter(|other| {
                let fork = neighbours.main_fork_of(other.oid);
                fork.is_none_or(|fork| {
                    let damaged = neighbours.damaged_in(fork);
                    damaged.is_some_and(|blocks| !blocks.is_empty())
                })
            });
        if let Some(index) = lost.next() {
            books.not_checked(NotChecked {
                what: format!("{ROWS_MAY_BE_LOST} of {}", own.qualified_name()),
                why: format!(
                    "{} would name them and cannot be read, and no other index, visibility map or count of pages shows how long the table was: a backup or a standby shows what stood there",
                    index.qualified_name()
                ),
                inherent: false,
            });
        }
    }
}

fn may_be_judged(table: &ForkCx<'_>) -> bool {
    table.cluster.is_some_and(|cluster| {
        !cluster.is_running() && cluster.may_compare(Comparison::ForksOfRelation)
    })
}

/// The relation is an index in use with an entry for each row of the table.
fn tells_rows_of(relation: &Relation, table: Oid) -> bool {
    let in_use = relation.index.as_ref().is_some_and(|index| {
        index.table == table && index.valid && index.ready && index.live && !index.has_predicate
    });
    in_use && relation.page_method().is_some_and(names_rows)
}

/// Tables that have neither an index nor a visibility map by nature: rows may be missing from them
/// without a trace.
pub(super) fn tell_unwitnessed(
    view: &DatabaseContext<'_>,
    options: &CheckOptions,
    books: &mut RunLedger,
) {
    if options.level < Level::Structure || !options.selection.is_everything() {
        return;
    }
    let indexed: BTreeSet<Oid> = view
        .catalog
        .relations
        .values()
        .filter_map(|own| Some((own.index.as_ref()?.table, own)))
        .filter(|(table, own)| tells_rows_of(own, *table))
        .map(|(table, _)| table)
        .collect();
    let files = view.forks.iter().filter(|files| files.bytes() > 0);
    let mapped: BTreeSet<(Oid, Oid)> = files
        .filter(|files| files.fork == Fork::Vm)
        .map(|files| (files.home.tablespace, files.filenode))
        .collect();
    let is_bare = |own: &&Relation| {
        own.kind == RelKind::Table
            && own.persistence != Persistence::Temporary
            && own.page_method() == Some(AccessMethod::Heap)
            && !indexed.contains(&own.oid)
            && !mapped.contains(&(own.tablespace, own.filenode))
    };
    let bare: Vec<&Relation> = view.catalog.relations.values().filter(is_bare).collect();
    if bare.is_empty() {
        return;
    }
    let names = bare.iter().take(NAMES_MAX);
    let names: Vec<String> = names.map(|own| own.qualified_name()).collect();
    let more = match bare.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let database = view
        .catalog
        .database_name
        .as_deref()
        .unwrap_or("a database");
    books.not_checked(NotChecked {
        what: format!(
            "whether rows are missing without a trace, of {} of {database}",
            plural(bare.len(), "table"),
        ),
        why: format!(
            "they have neither an index nor a visibility map, so that nothing names pages that were emptied or truncated: {}{more}",
            names.join(", ")
        ),
        inherent: true,
    });
}
