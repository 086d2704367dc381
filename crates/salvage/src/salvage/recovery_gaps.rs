//! What recovery would still bring, and what of it cannot be known.

use pgclinic_cluster::wal::{StartKind, history_path};
use pgclinic_cluster::{Cluster, Comparison, ControlState, Database};
use pgclinic_format::ControlFile;
use pgclinic_format::control_file::State;
use pgclinic_model::document::{NotChecked, ReplayAccount, SalvageReport, TableAccount};
use pgclinic_model::{plural, verb_of};
use pgclinic_source::SourceErrorKind;

use super::database_job::last_change;
use super::plan::not_salvaged;

/// Tables that a gap names.
const TABLES_NAMED: usize = 5;
const CHANGES: &str = "changes since the last checkpoint";
const NEXT_FILE: &str = "whether the write-ahead log went on in its next file";

/// What is known before a row is read.
pub(super) fn of_cluster(cluster: &Cluster, replay: Option<&ReplayAccount>) -> Vec<NotChecked> {
    // A few relation files are no cluster, which would have a control file and a write-ahead log.
    if cluster.homes.is_empty() {
        return Vec::new();
    }
    // A server at work has the file open, and writes it.
    let control = if cluster.is_running() {
        None
    } else {
        control_gap(cluster)
    };
    let (history, wal) = if cluster.needs_recovery() {
        let history = history_gap(cluster, replay);
        // Where the way is lost, that is why WAL ends.
        let is_lost = history.as_ref().is_some_and(|gap| !gap.inherent);
        let wal = || wal_gap(replay).or_else(|| wal_may_go_on(cluster));
        (history, if is_lost { None } else { wal() })
    } else {
        (None, None)
    };
    let paced = paced_recovery(cluster, replay);
    let waiting = prepared(cluster).into_iter().chain(lost_prepared(cluster));
    let status = status_gaps(cluster).into_iter().chain(waiting);
    let unasked = cluster.unasked_rows_in_wal();
    let unasked = unasked.map(|gap| not_salvaged(&gap.what, &gap.why));
    let known = control.into_iter().chain(history).chain(wal);
    let gaps = known.chain(paced).chain(unasked);
    gaps.chain(status).chain(denied_by_wal(cluster)).collect()
}

/// What WAL from before the last checkpoint says of transactions, and `pg_xact` does not.
fn denied_by_wal(cluster: &Cluster) -> Option<NotChecked> {
    let denied = cluster.statuses_denied_by_wal();
    let (first, last) = (denied.first()?, denied.last()?);
    let why = format!(
        "records of pg_wal deny what pg_xact says of {}, {first} to {last}: it is damaged, or of another moment. Rows without hint bits went by it, so that some may be missing and others too many; check names the bytes",
        plural(denied.len() as u64, "transaction"),
    );
    Some(not_salvaged(STATUS, &why))
}

/// What goes by `pg_xact` alone.
const STATUS: &str = "which rows count whose transactions only pg_xact knows";

/// Settings by which recovery ends, or waits, before the end of WAL.
const PACES: [&str; 6] = [
    "recovery_target",
    "recovery_target_lsn",
    "recovery_target_name",
    "recovery_target_time",
    "recovery_target_xid",
    "recovery_min_apply_delay",
];

/// All WAL on disk was applied, and the server would not apply all of it, or not yet: what WAL
/// drops, truncates or deletes after that is still there for it.
fn paced_recovery(cluster: &Cluster, replay: Option<&ReplayAccount>) -> Option<NotChecked> {
    let is_asked = replay.is_some_and(|replay| replay.applied > 0) && cluster.is_signalled();
    let is_set = |name: &str| {
        let value = cluster.setting(name)?;
        // A delay of `0s` is none; a name may have no digit at all.
        let is_zero = value.starts_with('0') && !value.contains(|c| matches!(c, '1'..='9'));
        let is_nothing = value.is_empty() || is_zero;
        (!is_nothing).then(|| format!("{name} = '{value}'"))
    };
    let set: Vec<String> = PACES.into_iter().filter_map(is_set).collect();
    (is_asked && !set.is_empty()).then(|| {
        let why = format!(
            "its settings are {}, and all WAL on disk was applied: what the server has and later WAL drops or deletes is not written. salvage postgres://… asks the server itself, where it runs",
            set.join(", ")
        );
        not_salvaged("rows as of the moment at which recovery is to stop or wait", &why)
    })
}

/// Databases that nobody can connect to, because `DROP DATABASE` was interrupted: they are read
/// only when they are named.
pub(super) fn half_dropped(cluster: &Cluster) -> Vec<NotChecked> {
    let databases = cluster.databases.values();
    let invalid = databases.filter(|database| database.invalid);
    let gap = |database: &Database| {
        let name = database.name.as_deref().unwrap_or("?");
        let why = format!(
            "DROP DATABASE was interrupted, by datconnlimit -2 in pg_database, so that some of its files may be gone: --database {name} salvages those that are there"
        );
        not_salvaged(&format!("database {name}"), &why)
    };
    invalid.map(gap).collect()
}

/// Directories that every cluster has, and what is not known without them.
const DIRECTORIES: [(&str, &str); 4] = [
    (
        "pg_xact",
        "which transactions committed, but where rows say it themselves",
    ),
    (
        "pg_multixact/offsets",
        "what became of rows that several transactions share",
    ),
    (
        "pg_multixact/members",
        "what became of rows that several transactions share",
    ),
    (
        "pg_twophase",
        "prepared transactions: what they changed counts as not committed",
    ),
];

/// Those of them that are not there.
pub(super) fn missing_directories(cluster: &Cluster) -> Vec<&'static str> {
    if !cluster.may_compare(Comparison::DirectoriesWithLayout) {
        return Vec::new();
    }
    let is_missing = |path: &&str| {
        let listed = cluster.source().list(path);
        listed.is_err_and(|error| error.kind == SourceErrorKind::NotFound)
    };
    let paths = DIRECTORIES.iter().map(|(path, _)| *path);
    paths.filter(is_missing).collect()
}

fn status_gaps(cluster: &Cluster) -> Vec<NotChecked> {
    let missing = missing_directories(cluster);
    let lost = DIRECTORIES
        .iter()
        .filter(|(path, _)| missing.contains(path));
    let gap = |(path, lost): &(&str, &str)| NotChecked {
        // It is empty in most clusters, and copies may leave empty directories out.
        inherent: *path == "pg_twophase",
        ..not_salvaged(lost, &format!("the directory {path} is missing"))
    };
    lost.map(gap).collect()
}

/// Transactions that wait for their second phase: their rows are not committed, and not salvaged.
fn prepared(cluster: &Cluster) -> Option<NotChecked> {
    let waiting = cluster.prepared_files();
    let waiting: Vec<String> = waiting.iter().map(|(_, xid)| xid.to_string()).collect();
    let what = format!(
        "changes of {}",
        plural(waiting.len(), "prepared transaction")
    );
    let why = format!(
        "they wait for COMMIT PREPARED or ROLLBACK PREPARED, and count as not committed: {}; --rows all writes what they inserted",
        waiting.join(", ")
    );
    (!waiting.is_empty()).then(|| NotChecked {
        inherent: true,
        ..not_salvaged(&what, &why)
    })
}

/// Those that nobody can commit any more, since their files are lost.
fn lost_prepared(cluster: &Cluster) -> Option<NotChecked> {
    let lost = cluster.lost_prepared();
    let lost: Vec<String> = lost.iter().map(|xid| xid.to_string()).collect();
    let what = format!("changes of {}", plural(lost.len(), "prepared transaction"));
    let why = format!(
        "their files are missing from pg_twophase: WAL has their PREPARE TRANSACTION and no end of it, and they count as not committed: {}; --rows all writes what they inserted",
        lost.join(", ")
    );
    (!lost.is_empty()).then(|| not_salvaged(&what, &why))
}

/// A control file that cannot be trusted is named, with what the write-ahead log says in its place.
/// Only the checkpoint of a shutdown at its end settles that nothing is missing.
fn control_gap(cluster: &Cluster) -> Option<NotChecked> {
    let fault = match &cluster.control {
        ControlState::Right(_) => return None,
        ControlState::WrongCrc(_) => "its checksum is wrong".to_owned(),
        ControlState::Foreign { control, of_wal } => format!(
            "it is that of another cluster, with system identifier {}: pg_wal has {of_wal}, and the pages follow its records",
            control.system_identifier
        ),
        ControlState::Older {
            control,
            checkpoint,
        } => format!(
            "it is older than the cluster: its checkpoint is at {}, pg_wal has one at {checkpoint}, and the pages follow its records",
            control.checkpoint_lsn
        ),
        ControlState::Fault(fault) => fault.to_string(),
        ControlState::Unreadable(why) => why.clone(),
    };
    let what = "the control file global/pg_control";
    Some(match cluster.control_from_wal() {
        None => {
            let why = format!(
                "{fault}, and pg_wal has no checkpoint record: whether recovery is due is unknown. Bring back the control file and the WAL of the same moment"
            );
            not_salvaged(what, &why)
        }
        Some(control) if is_settled(cluster, control) => NotChecked {
            inherent: true,
            ..not_salvaged(what, &settled_words(&fault, control))
        },
        Some(control) => {
            let redo = cluster.recovery().map(|recovery| recovery.start.redo);
            let why = format!(
                "{fault}; recovery begins at redo {}, found in pg_wal. Whether that WAL is all there was is unknown",
                redo.unwrap_or(control.checkpoint.redo)
            );
            not_salvaged(what, &why)
        }
    })
}

fn is_settled(cluster: &Cluster, control: &ControlFile) -> bool {
    control.state == State::ShutDown && !cluster.needs_recovery()
}

fn settled_words(fault: &str, control: &ControlFile) -> String {
    format!(
        "{fault}; the last record in pg_wal, at {}, is the checkpoint of a shutdown: no recovery is due. The server does not start without the file",
        control.checkpoint_lsn
    )
}

/// WAL that is not there.
fn wal_gap(replay: Option<&ReplayAccount>) -> Option<NotChecked> {
    match replay {
        None => Some(not_salvaged(
            CHANGES,
            "the cluster was not shut down in good order, and its write-ahead log cannot be applied",
        )),
        Some(replay) if !replay.is_complete => {
            let why = format!(
                "the write-ahead log ends at {end}: {}; WAL from {end} on is needed, from an archive, a standby or a backup of pg_wal",
                replay.why,
                end = replay.end
            );
            Some(not_salvaged(CHANGES, &why))
        }
        Some(_) => None,
    }
}

/// The history of the timeline that recovery leads to. Where it is lost, records of WAL may tell
/// the same; and recovery that begins on that timeline does not ask for it.
fn history_gap(cluster: &Cluster, replay: Option<&ReplayAccount>) -> Option<NotChecked> {
    let recovery = cluster.recovery().filter(|_| !cluster.is_running())?;
    let (files, start) = (&recovery.files, recovery.start);
    let target = recovery.timelines.target();
    let fault = files.history_fault(target)?;
    let file = format!("the history of timeline {target}, {}", history_path(target));
    let shown = if start.timeline == target {
        // One that is there the server reads all the same.
        let is_wrong = files.histories.get(&target).is_some_and(Result::is_err);
        let refused = if is_wrong {
            ". The server does not start before the file is right"
        } else {
            ""
        };
        Some(format!(
            "it {fault}; recovery begins on that timeline, and no WAL before it is needed{refused}"
        ))
    } else {
        let history = files.history_or_switches(target);
        let left = history.and_then(|history| history.left(start.timeline));
        left.map(|left| {
            format!(
                "it {fault}; records of pg_wal show that timeline {} was left at {left}, and were followed. The server does not start without the file",
                start.timeline
            )
        })
    };
    Some(match shown {
        Some(why) => NotChecked {
            inherent: true,
            ..not_salvaged(&file, &why)
        },
        None => {
            let end = replay.map_or_else(|| start.redo.to_string(), |replay| replay.end.clone());
            let why = format!(
                "{file}, {fault}: recovery begins on timeline {}, and no record of pg_wal shows where it was left. WAL was followed to {end}; bring back the file and WAL from there on",
                start.timeline
            );
            not_salvaged(CHANGES, &why)
        }
    })
}

/// The log of a crash ends where one of its files does, as it does where the next one is lost or
/// overwritten with zeros. Before one that was not used yet it is what a crash leaves: only pages
/// that were changed later would tell that the file was used and put back.
fn wal_may_go_on(cluster: &Cluster) -> Option<NotChecked> {
    let recovery = cluster.recovery()?;
    let crashed = recovery.start.kind == StartKind::Crash && !cluster.is_running();
    let replay = cluster.replay().filter(|_| crashed)?;
    let end = replay.end.record;
    if let Some(older) = replay.ends_before_recycled(&recovery.shape) {
        let place = if replay.end.at > end {
            "inside a record, where its file ends"
        } else {
            "where a file ends"
        };
        let why = format!(
            "the write-ahead log ends at {end}, {place}, and the next one holds pages of an older use, from {older} on. A crash leaves it so before the file is used. Had it been used, and put back to what it was before, WAL from {end} on would be missing, and only pages that were changed later would show it"
        );
        return Some(NotChecked {
            inherent: true,
            ..not_salvaged(NEXT_FILE, &why)
        });
    }
    let open = if replay.ends_with_its_files() {
        "where its last file ends: whether a further file followed, no file shows. A server that was idle after pg_switch_wal leaves it so"
    } else if replay.ends_before_zeros(&recovery.shape) {
        "where a file ends, and the next one begins with zeros: whether anything stood there, no file shows. A server that made it beforehand and never came to it leaves it so, and starts without a word in either case"
    } else {
        return None;
    };
    let why = format!(
        "the write-ahead log ends at {end}, {open}; else WAL from {end} on is needed, from an archive, a standby or a backup of pg_wal"
    );
    Some(not_salvaged(CHANGES, &why))
}

/// What the pages that were read show of others that are not there.
pub(super) fn tell_what_pages_show(cluster: &Cluster, account: &mut SalvageReport) {
    tell_pages_beyond_wal(cluster, account);
    tell_rows_before_freeze(cluster, account);
    tell_denied_status(account);
}

/// Where `pg_xact` is wrong of transactions that hint bits know, it may be wrong of others: rows
/// without hint bits go by it alone.
fn tell_denied_status(account: &mut SalvageReport) {
    let pages = account
        .tables
        .iter()
        .map(|table| table.pages_against_status);
    let (pages, tables) = pages
        .filter(|pages| *pages > 0)
        .fold((0, 0_u64), |(sum, tables), pages| (sum + pages, tables + 1));
    if pages == 0 {
        return;
    }
    let why = format!(
        "hint bits on {} of {} say that transactions committed of which pg_xact says that they did not: pg_xact is damaged or of an earlier moment, or the {} damaged. Rows without hint bits went by pg_xact, so that some may be missing and others too many; check says which of them is wrong",
        plural(pages, "page"),
        plural(tables, "table"),
        if pages == 1 { "page is" } else { "pages are" },
    );
    account.not_salvaged.push(not_salvaged(STATUS, &why));
}

/// Pages that were changed later than the last record of the write-ahead log prove that some of it
/// is missing; or that their files are not of this cluster, where it was shut down.
fn tell_pages_beyond_wal(cluster: &Cluster, account: &mut SalvageReport) {
    let own = account.tables.iter();
    let own: Vec<&TableAccount> = own.filter(|table| table.pages_beyond_wal > 0).collect();
    let in_tables: u64 = own.iter().map(|table| table.pages_beyond_wal).sum();
    let pages = in_tables + cluster.pages_later_than_replay();
    let Some(end) = last_change(cluster).filter(|_| pages > 0) else {
        return;
    };
    let changed = format!(
        "{pages} {were} changed after {end}, where the write-ahead log ends",
        pages = plural(pages, "page"),
        were = verb_of(pages, "were")
    );
    let gap = if cluster.wal_end().is_some() {
        let why =
            format!("{changed}: WAL from {end} on is missing, and with it changes to other pages");
        not_salvaged(CHANGES, &why)
    } else {
        let names = own.iter().take(TABLES_NAMED);
        let names = names.map(|table| format!("{}.{}", table.schema, table.table));
        let mut names: Vec<String> = names.collect();
        if own.len() > names.len() {
            let more = own.len() - names.len();
            names.push(plural(more as u64, "more table"));
        }
        let what = format!(
            "whether rows of {} are as they were, and their own",
            names.join(", ")
        );
        let why = format!(
            "{changed}: the files are another cluster's or of a later moment, or the control file is of an earlier one. The rows were taken as they are"
        );
        not_salvaged(&what, &why)
    };
    account.not_salvaged.push(gap);
}

/// Unfrozen rows from before `relfrozenxid` are of an older file, or of another table's: what the
/// table held since is not among them. Before a recovery the catalogs may be younger than the rows.
fn tell_rows_before_freeze(cluster: &Cluster, account: &mut SalvageReport) {
    let is_settled = !cluster.needs_recovery() && !cluster.is_partial();
    for table in &mut account.tables {
        if !is_settled {
            table.rows_before_freeze = 0;
        }
    }
    let own = account.tables.iter();
    let own = own.filter(|table| table.rows_before_freeze > 0);
    let gaps: Vec<NotChecked> = own
        .map(|table| {
            let what = format!(
                "whether {} row versions of table {}.{} of database {} are as they were, and its own",
                table.rows_before_freeze, table.schema, table.table, table.database
            );
            let why = "they are not frozen, and their xmin or xmax is before relfrozenxid: the file is an older copy of the table's, or another table's, or relfrozenxid in pg_class is wrong. They were taken as they are";
            not_salvaged(&what, why)
        })
        .collect();
    account.not_salvaged.extend(gaps);
}
