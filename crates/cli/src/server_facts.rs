//! What is known of a cluster's server beside its files, for the advice of a measurement: asked of
//! the server itself where the target is its URL, else of the program that last ran on the files,
//! where it is one that is installed here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_cluster::Cluster;
use pgclinic_measure::ServerFacts;
use pgclinic_servers::{
    ConnectOptions, ConnectionTarget, Installation, Session, SqlError, everywhere,
    io_uring_forbidden,
};
use pgclinic_source::read_all;

/// A server that does not answer such questions for so long is left alone.
const PATIENCE: Duration = Duration::from_secs(10);
/// The command line of a server.
const OPTIONS_BYTES_MAX: u64 = 64 << 10;

/// Settings that advice asks for, and what the server could be set to.
const SETTINGS: &str = "SELECT name, setting, array_to_string(coalesce(enumvals, '{}'), ',') FROM pg_catalog.pg_settings \
    WHERE name IN ('default_toast_compression', 'io_method', 'log_statement', 'log_autovacuum_min_duration', 'server_version')";

/// What can be found out; nothing of what cannot.
pub(crate) fn of(cluster: &Cluster, named: Option<&ConnectionTarget>) -> ServerFacts {
    match named {
        Some(server) => asked(server).unwrap_or_default(),
        None => last_program(cluster).map_or_else(ServerFacts::default, |own| {
            of_installation(&own, cluster.layout.major)
        }),
    }
}

fn asked(server: &ConnectionTarget) -> Result<ServerFacts, SqlError> {
    let options = ConnectOptions {
        statement_timeout: Some(PATIENCE),
        wall_limit: PATIENCE,
        settings: vec![("default_transaction_read_only".into(), "on".into())],
        ..ConnectOptions::default()
    };
    let mut session = Session::open(server, &options)?;
    let (mut settings, mut choices) = (BTreeMap::new(), BTreeMap::new());
    for row in session.query(SETTINGS)? {
        if let [Some(name), Some(value), Some(possible)] = row.as_slice() {
            settings.insert(name.clone(), value.clone());
            choices.insert(name.clone(), possible.clone());
        }
    }
    let can_be = |name: &str, value: &str| {
        let possible: Option<&String> = choices.get(name);
        possible.map(|all| all.split(',').any(|own| own == value))
    };
    let version = settings.remove("server_version");
    let version = version.and_then(|text| text.split_whitespace().next().map(str::to_owned));
    Ok(ServerFacts {
        version,
        lz4: can_be("default_toast_compression", "lz4"),
        io_uring: can_be("io_method", "io_uring"),
        settings: Some(settings),
        // A running server has asked its kernel.
        io_uring_forbidden: None,
    })
}

/// The installation whose server wrote `postmaster.opts`. Files of strangers name any program, so
/// that none is run but those which lie where servers are installed.
fn last_program(cluster: &Cluster) -> Option<Installation> {
    let options = read_all(
        cluster.source().as_ref(),
        "postmaster.opts",
        OPTIONS_BYTES_MAX,
    )
    .ok()?;
    let bindir = bindir_in(&String::from_utf8_lossy(&options))?;
    let bindir = bindir.canonicalize().ok()?;
    let mut all = everywhere().into_iter();
    all.find(|own| own.bindir.canonicalize().is_ok_and(|path| path == bindir))
        .filter(|own| own.major == cluster.layout.major)
}

/// Out of `/usr/lib/postgresql/15/bin/postgres "-D" "/data"`.
fn bindir_in(options: &str) -> Option<PathBuf> {
    let line = options.lines().next()?;
    let program = line.split_once(" \"").map_or(line, |(program, _)| program);
    let program = Path::new(program.trim());
    let is_server = program.is_absolute() && program.file_name()? == "postgres";
    is_server.then(|| program.parent().map(Path::to_owned))?
}

fn of_installation(own: &Installation, major: u16) -> ServerFacts {
    let takes =
        |first: u16, name: &str, value: &str| (major >= first).then(|| own.accepts(name, value));
    ServerFacts {
        version: Some(own.version.clone()),
        settings: None,
        lz4: takes(14, "default_toast_compression", "lz4"),
        io_uring: takes(18, "io_method", "io_uring"),
        io_uring_forbidden: io_uring_forbidden(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_first_word_of_its_options() {
        let debian = "/usr/lib/postgresql/15/bin/postgres \"-D\" \"/data\" \"-c\" \"port=5432\"\n";
        let bindir = Some(PathBuf::from("/usr/lib/postgresql/15/bin"));
        assert_eq!(bindir_in(debian), bindir);
        assert_eq!(bindir_in("/usr/lib/postgresql/15/bin/postgres"), bindir);
        assert_eq!(bindir_in("postgres \"-D\" \"/data\""), None);
        assert_eq!(bindir_in("/tmp/evil \"-D\" \"/data\""), None);
        assert_eq!(bindir_in(""), None);
    }
}
