//! Databases that a server makes, moves and drops while it sends its files: before, it is asked for
//! those that it names, and afterwards for those and for their directories.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use pgclinic_cluster::DatabasesOfServer;
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session};
use pgclinic_source::{EntryKind, Source, StreamedBackup};

/// A directory without a row, and a row without a directory, are asked for again: `CREATE DATABASE`
/// names the one when it has copied all, `DROP DATABASE` removes it before its row.
const ASKED_AGAIN: u32 = 6;
const PAUSE: Duration = Duration::from_millis(500);

/// The databases that it names now; `None` where it does not say.
pub(super) fn named(target: &ConnectionTarget, connect: &ConnectOptions) -> Option<BTreeSet<Oid>> {
    oids(&mut Session::open(target, connect).ok()?, NAMED)
}

/// What it says after its files have `passed`, where it said before what it named.
pub(super) fn ask(
    target: &ConnectionTarget,
    connect: &ConnectOptions,
    before: Option<&BTreeSet<Oid>>,
    passed: &StreamedBackup,
    progress: &dyn Progress,
) -> Option<DatabasesOfServer> {
    let mut session = Session::open(target, connect).ok()?;
    let (Some(before), Some(mut look)) = (before, Look::now(&mut session)) else {
        // Who may not list directories is not told which databases were dropped.
        return Some(DatabasesOfServer {
            without_directory: oids(&mut session, WITHOUT_DIRECTORY)?,
            ..DatabasesOfServer::default()
        });
    };
    for _ in 0..ASKED_AGAIN {
        if look.is_settled(before) || progress.is_interrupted() {
            break;
        }
        sleep(PAUSE);
        look = Look::now(&mut session)?;
    }
    let known = passing(passed).into_iter().chain(before.iter().copied());
    let known = known.chain(look.named.iter().copied());
    Some(DatabasesOfServer {
        without_directory: &look.named - &look.directories,
        made_or_dropped: known
            .filter(|oid| look.made_or_dropped(*oid, before))
            .collect(),
    })
}

/// Directories of other tablespaces than the default one are not asked for.
const WITHOUT_DIRECTORY: &str = "SELECT oid FROM pg_catalog.pg_database WHERE dattablespace <> 1663 OR (pg_catalog.pg_stat_file('base/' || oid, true)).isdir IS NULL";

const NAMED: &str = "SELECT oid FROM pg_catalog.pg_database";

const DIRECTORIES: &str = "SELECT DISTINCT database FROM (SELECT 'base' AS path UNION ALL \
    SELECT 'pg_tblspc/' || oid || '/' || version FROM pg_catalog.pg_tablespace, \
    LATERAL pg_catalog.pg_ls_dir('pg_tblspc/' || oid, true, false) AS version \
    WHERE spcname NOT IN ('pg_default', 'pg_global')) AS places, \
    LATERAL pg_catalog.pg_ls_dir(path, true, false) AS database WHERE database ~ '^[0-9]{1,10}$'";

/// What the server has at one moment.
struct Look {
    named: BTreeSet<Oid>,
    directories: BTreeSet<Oid>,
}

impl Look {
    /// Names last: whoever has one then has had his directory for long.
    fn now(session: &mut Session) -> Option<Self> {
        let directories = oids(session, DIRECTORIES)?;
        let named = oids(session, NAMED)?;
        Some(Look { named, directories })
    }

    /// Nothing is being made or dropped, as far as it shows.
    fn is_settled(&self, before: &BTreeSet<Oid>) -> bool {
        let mut nameless = self.directories.difference(&self.named);
        nameless.all(|oid| before.contains(oid)) && self.named.is_subset(&self.directories)
    }

    fn made_or_dropped(&self, oid: Oid, before: &BTreeSet<Oid>) -> bool {
        let is_named = self.named.contains(&oid);
        let is_new = is_named && !before.contains(&oid);
        is_new || (!is_named && !self.directories.contains(&oid))
    }
}

fn oids(session: &mut Session, sql: &str) -> Option<BTreeSet<Oid>> {
    let rows = session.query(sql).ok()?.into_iter().flatten();
    rows.map(|oid| oid?.parse().ok()).collect()
}

/// Databases whose directories came.
fn passing(passed: &StreamedBackup) -> BTreeSet<Oid> {
    let folders = |path: &str| -> Vec<String> {
        let entries = passed.list(path).unwrap_or_default().into_iter();
        let folders = entries.filter(|entry| entry.kind == EntryKind::Folder);
        folders
            .map(|entry| format!("{path}/{}", entry.name))
            .collect()
    };
    let versions = folders("pg_tblspc").into_iter();
    let places = versions.flat_map(|tablespace| folders(&tablespace));
    let databases = places
        .chain(["base".to_owned()])
        .flat_map(|place| folders(&place));
    let number = |path: String| path.rsplit('/').next()?.parse().ok();
    databases.filter_map(number).collect()
}
