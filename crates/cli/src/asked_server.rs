//! The server of a running data directory, asked for pages that are damaged in their files.
//!
//! It is asked for one page at a time, in the database the page is in: whether a relation has the
//! file still, and whether the page can be read. Nothing is created, and no setting lets it pass
//! over damage.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pgclinic_check::{AskedPage, ServerSays};
use pgclinic_cluster::Cluster;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};

use crate::exit::Failure;

/// A page that somebody holds a lock on is not waited for.
const STATEMENT: Duration = Duration::from_secs(5);
/// Longer than a statement, so that the server's own word comes first.
const WALL: Duration = Duration::from_secs(10);
/// A server writes all of its memory in this time, or the checkpoint goes on without us.
const CHECKPOINT: Duration = Duration::from_secs(600);

/// A running server with a session in each database that was asked for pages.
pub(crate) struct AskedServer {
    target: ConnectionTarget,
    may_checkpoint: bool,
    /// By database; nothing where the server does not let us in.
    sessions: Mutex<BTreeMap<String, Option<Session>>>,
}

impl AskedServer {
    /// Connects, and makes sure that it is the server of this cluster.
    pub(crate) fn open(target: ConnectionTarget, cluster: &Cluster) -> Result<Self, Failure> {
        let name = target.to_string();
        let failure = |error: SqlError| Failure::new(format!("{name}: {error}"));
        let mut session = session(&target, &target.database).map_err(failure)?;
        let sql = "SELECT system_identifier FROM pg_catalog.pg_control_system()";
        let theirs = session.query_value(sql).map_err(failure)?;
        let control = cluster.control.trusted();
        let ours = control.map(|control| control.system_identifier.to_string());
        if ours.is_some() && theirs != ours {
            return Err(Failure::new(format!(
                "{name} is the server of the cluster {}, and the data directory is of {}",
                theirs.unwrap_or_default(),
                ours.unwrap_or_default()
            )));
        }
        let database = target.database.clone();
        Ok(AskedServer {
            target,
            may_checkpoint: false,
            sessions: Mutex::new(BTreeMap::from([(database, Some(session))])),
        })
    }

    /// The same, which may be asked for a checkpoint where one decides what is lost.
    pub(crate) fn with_checkpoint(self, may_checkpoint: bool) -> Self {
        AskedServer {
            may_checkpoint,
            ..self
        }
    }

    /// Has it write what it holds in memory. One that does not let us goes on as it was.
    pub(crate) fn checkpoint(&self) {
        if !self.may_checkpoint {
            return;
        }
        let options = ConnectOptions {
            statement_timeout: Some(CHECKPOINT),
            wall_limit: CHECKPOINT,
            ..ConnectOptions::default()
        };
        // Its outcome shows in the control file, which is what counts.
        let _refused = Session::open(&self.target, &options)
            .and_then(|mut session| session.execute("CHECKPOINT"));
    }

    /// What it says; nothing where it cannot be asked.
    pub(crate) fn ask(&self, page: &AskedPage<'_>) -> Option<ServerSays> {
        let database = page.database.unwrap_or(&self.target.database);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = sessions
            .entry(database.to_owned())
            .or_insert_with(|| session(&self.target, database).ok());
        let answer = said(kept.as_mut()?, page);
        // A server that went away is not asked again.
        kept.take_if(|session| session.is_over());
        answer
    }
}

fn session(target: &ConnectionTarget, database: &str) -> Result<Session, SqlError> {
    let target = ConnectionTarget {
        database: database.to_owned(),
        ..target.clone()
    };
    let options = ConnectOptions {
        statement_timeout: Some(STATEMENT),
        wall_limit: WALL,
        settings: vec![("default_transaction_read_only".into(), "on".into())],
        ..ConnectOptions::default()
    };
    let mut session = Session::open(&target, &options)?;
    for setting in ["zero_damaged_pages", "ignore_checksum_failure"] {
        let is_on = session.query_value(&format!("SHOW {setting}"))?;
        if is_on.as_deref() == Some("on") {
            session.execute(&format!("SET {setting} = off"))?;
        }
    }
    Ok(session)
}

fn said(session: &mut Session, page: &AskedPage<'_>) -> Option<ServerSays> {
    let sql = format!(
        "SELECT pg_catalog.pg_filenode_relation({}, {})",
        page.tablespace, page.filenode
    );
    let Some(relation) = session.query_value(&sql).ok()? else {
        return Some(ServerSays::Gone);
    };
    let sql = reading(session, &relation, page)?;
    match session.query_value(&sql) {
        Ok(_) => Some(ServerSays::Reads),
        Err(error) => {
            let message = error.message()?;
            let refuses = ["XX001", "XX002"].contains(&&*message.sqlstate);
            refuses.then(|| ServerSays::Refuses(format!("ERROR:  {}", message.message)))
        }
    }
}

/// A statement that makes the server read the page: through the extension `pageinspect` where
/// somebody has made it, for tables also without.
fn reading(session: &mut Session, relation: &str, page: &AskedPage<'_>) -> Option<String> {
    let schema = session.query_value(
        "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e \
         JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pageinspect'",
    );
    let block = page.block;
    if let Some(schema) = schema.ok()? {
        let name = relation.replace('\'', "''");
        let fork = page.fork.name();
        return Some(format!(
            "SELECT pg_catalog.length({schema}.get_raw_page('{name}', '{fork}', {block}))"
        ));
    }
    page.holds_rows.then(|| {
        format!("SELECT pg_catalog.count(*) FROM ONLY {relation} WHERE ctid = '({block},1)'")
    })
}
