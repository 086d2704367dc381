//! The files of a running server, named by its URL and read through itself.

use std::sync::Arc;
use std::time::Duration;

use pgclinic_salvage::ServerSource;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};
use pgclinic_source::Source;

use crate::exit::Failure;

/// A server that does not answer for so long is gone.
const SILENCE: Duration = Duration::from_secs(120);

/// Connects to the server and makes sure that it lets its files be read.
pub(crate) fn source(server: &ConnectionTarget) -> Result<Arc<dyn Source>, Failure> {
    let connect = ConnectOptions {
        wall_limit: SILENCE,
        settings: vec![("default_transaction_read_only".into(), "on".into())],
        ..ConnectOptions::default()
    };
    let refused = |error: SqlError| Failure::new(format!("{server}: {error}"));
    let mut session = Session::open(server, &connect).map_err(refused)?;
    let missing = ServerSource::missing_rights(&mut session).map_err(refused)?;
    if !missing.is_empty() {
        let (user, database) = (&server.user, &server.database);
        let functions = missing.join(", ");
        return Err(Failure::new(format!(
            "{server}: the role {user:?} may not read the server's files: a superuser can allow it in the database {database:?} by GRANT EXECUTE ON FUNCTION {functions} TO \"{user}\""
        )));
    }
    Ok(Arc::new(ServerSource::new(session, server, &connect)))
}
