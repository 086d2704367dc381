//! Small files outside of the databases that checks read: prepared transactions, replication.

use pgclinic_cluster::Cluster;
use pgclinic_format::TwoPhase;
use pgclinic_source::EntryKind;

/// Where replication origins keep how far they have come.
pub(crate) const ORIGINS: &str = "pg_logical/replorigin_checkpoint";
/// Longer than any that can be read into memory with ease; longer ones are told as unread.
pub(crate) const PREPARED_BYTES_MAX: u64 = 64 << 20;

/// What a prepared transaction's file says; nothing when it cannot be read or is not right.
pub(crate) fn read_prepared(cluster: &Cluster, path: &str) -> Option<TwoPhase> {
    let source = cluster.source().as_ref();
    let bytes = pgclinic_source::read_all(source, path, PREPARED_BYTES_MAX).ok()?;
    let file = TwoPhase::parse(&bytes, cluster.layout.major).ok()?;
    file.is_right(bytes.len()).then_some(file)
}

/// The state files of replication slots. Slots whose folder ends in `.tmp` were never finished.
pub(crate) fn slots(cluster: &Cluster) -> Vec<String> {
    let entries = cluster.source().list("pg_replslot").unwrap_or_default();
    let folders = entries
        .into_iter()
        .filter(|entry| entry.kind != EntryKind::File && !entry.name.ends_with(".tmp"));
    folders
        .map(|entry| format!("pg_replslot/{}/state", entry.name))
        .collect()
}

/// All of these files that there are.
pub(crate) fn checked(cluster: &Cluster) -> Vec<String> {
    let prepared = cluster.prepared_files().into_iter().map(|(path, _)| path);
    let more = slots(cluster).into_iter().chain([ORIGINS.to_owned()]);
    prepared.chain(more).collect()
}
