//! Databases that a server makes, moves and drops while it sends its files: before, it is asked for
//! those that it names, and afterwards for those and for their directories.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use pgclinic_cluster::{DatabasesOfServer, LookAtDatabases, LooksAtDatabases};
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session};

/// A directory without a row, and a row without a directory, are asked for again: `CREATE DATABASE`
/// names the one when it has copied all, `DROP DATABASE` removes it before its row.
const ASKED_AGAIN: u32 = 6;
const PAUSE: Duration = Duration::from_millis(500);

/// What it has now; `None` where it does not say.
pub(super) fn look(target: &ConnectionTarget, connect: &ConnectOptions) -> Option<LookAtDatabases> {
    now(&mut Session::open(target, connect).ok()?)
}

/// What it says after it sent its files, where it said before what it had.
pub(super) fn ask(
    target: &ConnectionTarget,
    connect: &ConnectOptions,
    before: Option<&LookAtDatabases>,
    progress: &dyn Progress,
) -> Option<DatabasesOfServer> {
    let mut session = Session::open(target, connect).ok()?;
    let (Some(before), Some(mut look)) = (before, now(&mut session)) else {
        // Who may not list directories is not told which databases were dropped.
        return Some(DatabasesOfServer {
            without_directory: oids(&mut session, WITHOUT_DIRECTORY)?,
            ..DatabasesOfServer::default()
        });
    };
    for _ in 0..ASKED_AGAIN {
        if is_settled(&look, before) || progress.is_interrupted() {
            break;
        }
        sleep(PAUSE);
        look = now(&mut session)?;
    }
    Some(DatabasesOfServer {
        without_directory: &look.named - &look.directories,
        looks: Some(LooksAtDatabases {
            before: before.clone(),
            now: look,
        }),
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

/// Names last: whoever has one then has had his directory for long.
fn now(session: &mut Session) -> Option<LookAtDatabases> {
    let directories = oids(session, DIRECTORIES)?;
    let named = oids(session, NAMED)?;
    Some(LookAtDatabases { named, directories })
}

/// Nothing is being made or dropped, as far as it shows.
fn is_settled(look: &LookAtDatabases, before: &LookAtDatabases) -> bool {
    let mut nameless = look.directories.difference(&look.named);
    nameless.all(|oid| before.named.contains(oid)) && look.named.is_subset(&look.directories)
}

fn oids(session: &mut Session, sql: &str) -> Option<BTreeSet<Oid>> {
    let rows = session.query(sql).ok()?.into_iter().flatten();
    rows.map(|oid| oid?.parse().ok()).collect()
}
