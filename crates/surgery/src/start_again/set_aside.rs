//! Small files that the server reads at its start and refuses: replication slots, replication
//! origins, prepared transactions. They are set aside beside the journal, and what goes with them
//! is named.

use pgclinic_cluster::Cluster;
use pgclinic_format::replication::{ReplicationFault, origin_fault, slot_fault};
use pgclinic_format::{TwoPhase, two_phase};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::{EntryKind, SourceErrorKind, read_all};

use super::{Draft, remove};

pub(super) const NAME: &str = "set-aside";
const ORIGINS: &str = "pg_logical/replorigin_checkpoint";
/// No slot or list of origins is longer.
const SMALL_BYTES_MAX: u64 = 2 << 20;
/// Longer files of prepared transactions are left to who can read them.
const PREPARED_BYTES_MAX: u64 = 64 << 20;

/// One for each file.
pub(super) fn drafts(cluster: &Cluster) -> Vec<Draft> {
    let mut drafts = slots(cluster);
    drafts.extend(origins(cluster));
    drafts.extend(prepared(cluster));
    drafts
}

fn slots(cluster: &Cluster) -> Vec<Draft> {
    let source = cluster.source().as_ref();
    let entries = source.list("pg_replslot").unwrap_or_default();
    let directories = entries.into_iter();
    // The server removes by itself what ends in .tmp.
    let directories =
        directories.filter(|entry| entry.kind != EntryKind::File && !entry.name.ends_with(".tmp"));
    directories
        .filter_map(|entry| slot(cluster, &entry.name))
        .collect()
}

fn slot(cluster: &Cluster, name: &str) -> Option<Draft> {
    let source = cluster.source().as_ref();
    let directory = format!("pg_replslot/{name}");
    let path = format!("{directory}/state");
    let why = match read_all(source, &path, SMALL_BYTES_MAX) {
        Ok(bytes) => format!("{path}: {}", words_of(slot_fault(&bytes)?)),
        Err(error) if error.kind == SourceErrorKind::NotFound => format!("{path} is not there"),
        Err(_) => return None,
    };
    let mut draft = Draft::new(
        NAME,
        Safety::Lossy,
        &path,
        format!("the replication slot {name} is set aside"),
    )
    .because(why)
    .warn("whoever used the slot makes a new one, and begins with a new copy; WAL is no longer kept for it");
    for entry in source.list(&directory).ok()? {
        let own = format!("{directory}/{}", entry.name);
        draft = draft.change("set aside beside the journal", remove(&own));
    }
    Some(draft.change(
        "removed, empty",
        Change::RemoveDirectory { path: directory },
    ))
}

fn words_of(fault: ReplicationFault) -> String {
    match fault {
        ReplicationFault::Size { bytes } => format!("{bytes} bytes are not its length"),
        ReplicationFault::Magic { found, .. } => format!("the magic word is {found:#010x}"),
        ReplicationFault::Version { found } => format!("the version {found} is unknown"),
        ReplicationFault::Checksum { stored, computed } => format!(
            "stored checksum {stored:#010x} does not match computed checksum {computed:#010x}"
        ),
    }
}

fn origins(cluster: &Cluster) -> Option<Draft> {
    let bytes = read_all(cluster.source().as_ref(), ORIGINS, SMALL_BYTES_MAX).ok()?;
    let fault = origin_fault(&bytes)?;
    let draft = Draft::new(
        NAME,
        Safety::Lossy,
        ORIGINS,
        "the progress of replication origins is set aside",
    );
    let draft = draft
        .because(format!("{ORIGINS}: {}", words_of(fault)))
        .warn("subscriptions begin again where the publisher's slot stands: changes may be applied twice. Compare before they are enabled");
    Some(draft.change("set aside beside the journal", remove(ORIGINS)))
}

fn prepared(cluster: &Cluster) -> Vec<Draft> {
    let entries = cluster.source().list("pg_twophase").unwrap_or_default();
    let names = entries.into_iter().map(|entry| entry.name);
    names
        .filter_map(|name| prepared_transaction(cluster, &name))
        .collect()
}

fn prepared_transaction(cluster: &Cluster, name: &str) -> Option<Draft> {
    let major = cluster.layout.major;
    let xid = two_phase::xid_of_name(name, major)?;
    let path = format!("pg_twophase/{name}");
    let bytes = read_all(cluster.source().as_ref(), &path, PREPARED_BYTES_MAX).ok()?;
    let why = match TwoPhase::parse(&bytes, major) {
        Err(fault) => fault.to_string(),
        Ok(file) if !file.is_right(bytes.len()) => {
            "its length or checksum is not the stored one".into()
        }
        Ok(file) if file.xid != xid => format!("it is of transaction {}", file.xid),
        Ok(_) => return None,
    };
    let draft = Draft::new(
        NAME,
        Safety::Lossy,
        &path,
        format!("the prepared transaction {xid} is given up: it counts as rolled back"),
    );
    let draft = draft
        .because(format!("{path}: {why}"))
        .warn("whoever coordinates it has to know that it was rolled back");
    let draft = draft.change("set aside beside the journal", remove(&path));
    Some(Draft {
        rows_lost: None,
        ..draft
    })
}
