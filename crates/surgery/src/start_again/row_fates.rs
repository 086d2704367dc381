//! What a server will show of each table, once it has started: rows, and those of them about whose
//! transactions nothing is known any more.

use std::fmt::Write as _;

use pgclinic_cluster::{
    Cluster, Death, Doubt, HeapScan, RelKind, Relation, RowState, Visibility, XactStatus,
};
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_format::{Fork, HeapTuple, MultiXactId, Xid};
use pgclinic_model::document::TableFates;

use super::databases::each_database;

/// Rows that are listed one by one.
const LISTED_MAX: u64 = 1_000_000;

/// What is predicted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Fates {
    /// Tables with rows.
    pub(super) tables: Vec<TableFates>,
    /// Rows whose fate is unknown, as CSV.
    pub(super) list: String,
    listed: u64,
}

/// What became of a row whose transaction's end is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It goes as if rolled back; it may have been committed.
    Hidden,
    /// It stays; it may have been deleted or replaced.
    Kept,
}

/// Reads every table of the cluster as it will be.
pub(super) fn predict(cluster: &Cluster) -> Fates {
    let mut fates = Fates {
        list: "database,schema,relation,ctid,xmin,xmax,fate\n".into(),
        ..Fates::default()
    };
    each_database(cluster, &mut |database| {
        for files in database.forks.iter().filter(|own| own.fork == Fork::Main) {
            let catalog = database.catalog;
            let relation = catalog.by_file(files.home.tablespace, files.filenode);
            let Some(relation) = relation.filter(|own| has_rows(own)) else {
                continue;
            };
            let Some(columns) = relation.layouts.as_deref() else {
                continue;
            };
            let mut table = TableFates {
                database: catalog.database_name.clone(),
                schema: relation.schema.clone(),
                relation: relation.name.clone(),
                ..TableFates::default()
            };
            let mut scan = HeapScan::new(cluster, files, columns);
            scan.each_row(|row| {
                let state = shown(cluster, row.tuple, row.state);
                let fate = fate(cluster, row.tuple, state);
                match state {
                    RowState::Visible => table.rows += 1,
                    RowState::Undecided(_) => table.undecided += 1,
                    RowState::Dead(_) => {}
                }
                let words = match fate {
                    Some(Fate::Hidden) => {
                        table.hidden += 1;
                        "hidden"
                    }
                    Some(Fate::Kept) => {
                        table.kept += 1;
                        "kept"
                    }
                    None => return,
                };
                fates.list_row(&table, (row.block, row.item), row.tuple, words);
            });
            table.pages_unreadable = scan.unreadable.len() as u64;
            if table.says_something() {
                fates.tables.push(table);
            }
        }
    });
    fates.tables.sort_by(|one, other| {
        let key = |own: &TableFates| {
            (
                own.database.clone(),
                own.schema.clone(),
                own.relation.clone(),
            )
        };
        key(one).cmp(&key(other))
    });
    fates
}

impl Fates {
    fn list_row(
        &mut self,
        table: &TableFates,
        (block, item): (u32, u16),
        tuple: HeapTuple<'_>,
        fate: &str,
    ) {
        if self.listed >= LISTED_MAX {
            return;
        }
        self.listed += 1;
        let database = table.database.as_deref().unwrap_or_default();
        let names = [database, &table.schema, &table.relation].map(quoted);
        let (xmin, xmax) = (tuple.t_xmin(), tuple.t_xmax());
        // A String takes all that is written.
        let _always = writeln!(
            self.list,
            "{},\"({block},{item})\",{xmin},{xmax},{fate}",
            names.join(",")
        );
    }

    /// Rows about which nothing is known any more.
    pub(super) fn unknown(&self) -> u64 {
        self.tables.iter().map(|own| own.hidden + own.kept).sum()
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn has_rows(relation: &Relation) -> bool {
    matches!(
        relation.kind,
        RelKind::Table | RelKind::Toast | RelKind::MaterializedView
    )
}

/// A server shows a row whose multixact has no member that changed it, though its members are lost.
fn shown(cluster: &Cluster, tuple: HeapTuple<'_>, state: RowState) -> RowState {
    let has_no_updater = || {
        let multi = MultiXactId(tuple.t_xmax().0);
        tuple.has(HEAP_XMAX_IS_MULTI) && cluster.multixacts.updater(multi) == Some(None)
    };
    let was_inserted = || Visibility::new(cluster).was_inserted(tuple) == Some(true);
    match state {
        RowState::Undecided(Doubt::Deletion) if has_no_updater() && was_inserted() => {
            RowState::Visible
        }
        state => state,
    }
}

/// What the row's transactions leave open.
fn fate(cluster: &Cluster, tuple: HeapTuple<'_>, state: RowState) -> Option<Fate> {
    match state {
        RowState::Dead(Death::InProgress) if is_open(cluster, tuple.t_xmin()) => Some(Fate::Hidden),
        RowState::Visible => deletion_is_unknown(cluster, tuple).then_some(Fate::Kept),
        _ => None,
    }
}

/// Somebody may have deleted or replaced the row.
fn deletion_is_unknown(cluster: &Cluster, tuple: HeapTuple<'_>) -> bool {
    if tuple.has(HEAP_XMAX_INVALID) || tuple.has(HEAP_XMAX_COMMITTED) || tuple.xmax_is_locked_only()
    {
        return false;
    }
    if !tuple.has(HEAP_XMAX_IS_MULTI) {
        return is_open(cluster, tuple.t_xmax());
    }
    // One that is more than a lock has a member that changed the row, unless its members are lost.
    let updater = cluster.multixacts.updater(MultiXactId(tuple.t_xmax().0));
    updater.is_some_and(|updater| updater.is_none_or(|xid| is_open(cluster, xid)))
}

/// It was neither committed nor rolled back as far as `pg_xact` tells, and nobody prepared it.
fn is_open(cluster: &Cluster, xid: Xid) -> bool {
    let log = &cluster.transactions;
    xid.is_normal() && log.status(xid) == Some(XactStatus::InProgress) && !log.is_prepared(xid)
}
