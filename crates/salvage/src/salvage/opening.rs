//! What is known before a row is read: which databases and tables are asked for, and the account in
//! which nothing stands yet.

use pgclinic_cluster::status::{lost_status_files, zeroed_status};
use pgclinic_cluster::wal::Replayed;
use pgclinic_cluster::{Catalog, Cluster, selected, target_of};
use pgclinic_format::Oid;
use pgclinic_model::Selection;
use pgclinic_model::document::{
    NotChecked, Outcome, ReplayAccount, RowCounts, SalvageReport, Target as TargetDocument, Tool,
};

use super::error::SalvageError;
use super::plan::{self, Plan, not_salvaged};
use super::{Rows, SalvageOptions, older_directory, older_files, recovery_gaps};
use crate::file_names::FileNames;
use crate::shape::MainForks;

/// The one database of the selection, beside those that every cluster has and nobody filled.
pub(super) fn only_database(cluster: &Cluster, selection: &Selection) -> Result<Oid, SalvageError> {
    let found = databases(cluster, selection);
    match found.as_slice() {
        [(database, _)] => Ok(*database),
        _ => {
            let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
            let names = names.join(", ");
            let why =
                format!("one database goes into one database: name it with --database ({names})");
            Err(SalvageError::Unsuitable(why))
        }
    }
}

/// The table of a stream.
pub(super) fn only_table<T>(
    mut found: Vec<(Oid, T, plan::Planned)>,
    not_salvaged: &[NotChecked],
) -> Result<(Oid, T, plan::Planned), SalvageError> {
    let count = found.len();
    if let (1, Some(only)) = (count, found.pop()) {
        return Ok(only);
    }
    match not_salvaged.first() {
        None if count == 0 => Err(SalvageError::NothingSelected),
        Some(told) if count == 0 => {
            let why = format!("{}: {}", told.what, told.why);
            Err(SalvageError::Unsuitable(why))
        }
        _ => {
            let why = format!(
                "a stream holds one table, and {count} fit: name one with --database and --relation"
            );
            Err(SalvageError::Unsuitable(why))
        }
    }
}

/// Databases with the names of their folders.
pub(super) fn databases(cluster: &Cluster, selection: &Selection) -> Vec<(Oid, String)> {
    let left = selected::left_behind(selection, cluster);
    let all: Vec<(Oid, String)> = cluster
        .databases
        .values()
        .filter(|database| !left.contains(&database.oid))
        .filter(|database| !database.invalid || !selection.databases.is_empty())
        .map(|database| {
            let number = || database.oid.to_string();
            (database.oid, database.name.clone().unwrap_or_else(number))
        })
        .collect();
    let parts: Vec<[&str; 1]> = all.iter().map(|(_, name)| [name.as_str()]).collect();
    let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
    all.iter()
        .filter(|(oid, _)| selected::database(selection, cluster, *oid))
        .map(|(oid, name)| (*oid, names.name(&[name], *oid)))
        .collect()
}

pub(super) fn encoding_of(cluster: &Cluster, database: Oid) -> Option<i32> {
    cluster.databases.get(&database)?.encoding
}

/// An account of what is known before a row was read.
pub(super) fn open_account(
    cluster: &Cluster,
    options: &SalvageOptions,
    replayed: Option<&Replayed>,
) -> SalvageReport {
    let mut account = new_account(target_of(cluster, &options.spec), options);
    let troubles = cluster.troubles.iter();
    account
        .not_salvaged
        .extend(troubles.map(|trouble| not_salvaged(&trouble.what, &trouble.why)));
    account.replay = replayed.map(replay_account);
    let gaps = recovery_gaps::of_cluster(cluster, account.replay.as_ref());
    account.not_salvaged.extend(gaps);
    if options.selection.databases.is_empty() {
        account
            .not_salvaged
            .extend(recovery_gaps::half_dropped(cluster));
    }
    let left = selected::left_behind(&options.selection, cluster);
    account
        .not_salvaged
        .extend(selected::passed_over(cluster, &left));
    account
}

/// An account in which nothing stands yet.
pub(crate) fn new_account(target: TargetDocument, options: &SalvageOptions) -> SalvageReport {
    let rows = match options.rows {
        Rows::Live => "live",
        Rows::All => "all",
    };
    SalvageReport {
        schema: "pgclinic.salvage/1".into(),
        tool: Tool::this(),
        target,
        source: None,
        form: options.form.name().into(),
        rows: rows.into(),
        destination: None,
        outcome: Outcome::Whole,
        interrupted: false,
        replay: None,
        snapshots: Vec::new(),
        lost_databases: Vec::new(),
        totals: RowCounts::default(),
        lost_by: Vec::new(),
        tables: Vec::new(),
        sequences: Vec::new(),
        large_objects: Vec::new(),
        lost_catalogs: Vec::new(),
        checks: Vec::new(),
        counts: Vec::new(),
        not_salvaged: Vec::new(),
        elapsed_s: 0.0,
    }
}

pub(super) fn replay_account(replayed: &Replayed) -> ReplayAccount {
    ReplayAccount {
        start: replayed.start.to_string(),
        end: replayed.end.record.to_string(),
        why: replayed.end.why.to_string(),
        records: replayed.records,
        applied: replayed.applied,
        not_applied: replayed.not_applied.values().sum(),
        faults: replayed.faults.clone(),
        is_complete: replayed.is_complete,
    }
}

/// Files that say what became of transactions, and that are not there.
pub(super) fn lost_status(cluster: &Cluster) -> Vec<NotChecked> {
    let why = "rows whose hint bits do not tell it are uncertain or withheld";
    // Where the whole directory is missing, that is said once.
    let directories = recovery_gaps::missing_directories(cluster);
    let is_beside = |what: &String| !directories.iter().any(|path| what.starts_with(path));
    let lost = lost_status_files(cluster).into_iter().filter(is_beside);
    let zeroed = zeroed_status(cluster).into_iter().map(|own| {
        format!(
            "{} is zeroed where the status of transactions {} to {} must stand",
            own.place.path, own.first, own.last
        )
    });
    let lost = lost.chain(zeroed);
    lost.map(|what| not_salvaged(&format!("what became of transactions: {what}"), why))
        .collect()
}

/// The tables of a database, with their files in `folder`.
pub(super) fn plan_of(
    cluster: &Cluster,
    catalog: &Catalog,
    folder: &str,
    options: &SalvageOptions,
) -> Plan {
    let files = MainForks::of_database(cluster, catalog.database);
    let mut plan = Plan::of(
        cluster,
        catalog,
        &files,
        folder,
        &options.selection,
        options.column_choice(),
        &options.given,
    );
    plan.not_salvaged
        .extend(older_files::gaps(cluster, (catalog, &files), options));
    plan.not_salvaged
        .extend(older_directory::gap(cluster, catalog));
    plan
}
