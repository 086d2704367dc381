//! The other nodes of a cluster: its standbys, and the new cluster of an upgrade.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_cluster::{Cluster, target_of};
use pgclinic_model::document::{
    ChecksumsAction, ChecksumsDocument, ChecksumsNode, ChecksumsOutcome, Target,
};
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};

use crate::env::Env;
use crate::exit::Failure;
use crate::target::{self, Opening};

const STANDBY: &str = "standby";
const NEW_CLUSTER: &str = "new cluster";
/// A node that does not answer for so long is not there.
const SILENCE: Duration = Duration::from_secs(30);
/// The first major whose `initdb` turns data checksums on by itself.
const ON_BY_DEFAULT: u16 = 18;

/// What each node of `--standby` says of itself.
pub(super) fn standbys(
    named: &[PathBuf],
    world: &mut Env<'_>,
) -> Result<Vec<ChecksumsNode>, Failure> {
    let nodes = named.iter().map(|node| {
        let target = match target::named_server(node, world)? {
            Some(server) => {
                of_server(&server).map_err(|error| Failure::new(format!("{server}: {error}")))?
            }
            None => {
                let opening = Opening::new(world, None).reading_again();
                let cluster = target::open_cluster(node, opening)?;
                target_of(&cluster, &target::spec_of(node))
            }
        };
        Ok(ChecksumsNode {
            role: STANDBY.into(),
            target,
            matches: None,
            notes: Vec::new(),
        })
    });
    nodes.collect()
}

fn of_server(server: &ConnectionTarget) -> Result<Target, SqlError> {
    let options = ConnectOptions {
        statement_timeout: Some(SILENCE),
        wall_limit: SILENCE,
        settings: vec![("default_transaction_read_only".into(), "on".into())],
        ..ConnectOptions::default()
    };
    let mut session = Session::open(server, &options)?;
    let mut ask = |sql: &str| session.query_value(sql);
    let identifier = ask("SELECT system_identifier FROM pg_catalog.pg_control_system()")?;
    let checksums = ask("SHOW data_checksums")?;
    let version = ask("SHOW server_version_num")?;
    let in_recovery = ask("SELECT pg_catalog.pg_is_in_recovery()")?;
    let state = match in_recovery.as_deref() {
        Some("t") => "running, in recovery",
        _ => "running, in production",
    };
    let version = version.and_then(|version| version.parse::<u32>().ok());
    Ok(Target {
        spec: server.to_string(),
        kind: "server".into(),
        major: version.and_then(|version| u16::try_from(version / 10_000).ok()),
        system_identifier: identifier,
        block_size: None,
        segment_size: None,
        checksums: checksums.map(|word| word == "on"),
        state: Some(state.into()),
    })
}

/// The new cluster of an upgrade: its data directory, or the number of its major.
pub(super) fn new_cluster(
    new: &Path,
    old: &Cluster,
    world: &mut Env<'_>,
) -> Result<ChecksumsNode, Failure> {
    let major = new.to_str().and_then(|text| text.parse::<u16>().ok());
    let mut notes = Vec::new();
    let target = match major.filter(|_| !new.exists()) {
        Some(major) => {
            let words = if major >= ON_BY_DEFAULT {
                "initdb turns data checksums on, unless --no-data-checksums is given"
            } else {
                "initdb leaves data checksums off, unless --data-checksums is given"
            };
            notes.push(words.to_owned());
            Target {
                spec: format!("PostgreSQL {major}"),
                kind: "major".into(),
                major: Some(major),
                checksums: Some(major >= ON_BY_DEFAULT),
                ..Target::default()
            }
        }
        None => {
            let opening = Opening::new(world, None).reading_again();
            let cluster = target::open_cluster(new, opening)?;
            target_of(&cluster, &target::spec_of(new))
        }
    };
    if target.major.is_some_and(|major| major < old.layout.major) {
        return Err(Failure::new(format!(
            "{} is of an older major version than the cluster that is to be upgraded ({})",
            target.spec, old.layout.major
        )));
    }
    if target
        .block_size
        .is_some_and(|new| new != old.build.block_size)
    {
        notes.push("its block size is another one: pg_upgrade refuses that too".into());
    }
    Ok(ChecksumsNode {
        role: NEW_CLUSTER.into(),
        matches: target
            .checksums
            .zip(old.checksums())
            .map(|(new, old)| new == old),
        target,
        notes,
    })
}

/// Puts the standbys into the document, each with whether it has what the target has now.
pub(super) fn compare(document: &mut ChecksumsDocument, nodes: Vec<ChecksumsNode>) {
    for mut node in nodes {
        let ours = &document.target;
        if node.target.system_identifier != ours.system_identifier {
            node.notes
                .push("its system identifier is another one: it is no copy of this cluster".into());
        }
        let will_be = match document.action {
            ChecksumsAction::Enable => Some(true),
            ChecksumsAction::Disable => Some(false),
            ChecksumsAction::Undo | ChecksumsAction::Compare => ours.checksums,
        };
        let both = node.target.checksums.zip(will_be);
        node.matches = both.map(|(theirs, ours)| theirs == ours);
        document.nodes.push(node);
    }
}

/// Whether all nodes match.
pub(super) fn outcome(document: &ChecksumsDocument) -> ChecksumsOutcome {
    let is = |wanted| document.nodes.iter().any(|node| node.matches == wanted);
    match () {
        () if is(Some(false)) => ChecksumsOutcome::Differs,
        () if is(None) => ChecksumsOutcome::Incomplete,
        () => ChecksumsOutcome::Same,
    }
}
