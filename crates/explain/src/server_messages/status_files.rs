//! Whether the transactions and multixacts that a message names can exist at all.

use pgclinic_cluster::Cluster;

use super::facts::Facts;

/// Sentences about the numbers of a message against the control file and the status files.
pub(super) fn notes(cluster: &Cluster, facts: &Facts, notes: &mut Vec<String>) {
    let Some(control) = cluster.control.trusted() else {
        let asked = facts.xid.is_some() || facts.multixact.is_some();
        notes.extend(asked.then(|| {
            "the control file cannot be trusted, so nothing tells which transactions ran".to_owned()
        }));
        return;
    };
    let checkpoint = &control.checkpoint;
    if let Some(xid) = facts.xid {
        let (oldest, next) = (checkpoint.oldest_xid, checkpoint.next_xid());
        let file = cluster.transactions.file_of(xid);
        let is_there = if cluster.source().len(&file).is_ok() {
            "is there"
        } else {
            "is missing"
        };
        notes.push(if xid.precedes(next) && !xid.precedes(oldest) {
            format!("transaction {xid} is one of those that the cluster knows, {oldest} to {next}; its status stands in {file}, which {is_there}")
        } else {
            format!("at the last checkpoint the cluster knew transactions {oldest} to {next}: number {xid} is not one of them, so it comes from damaged bytes or an old page")
        });
    }
    if let Some(multi) = facts.multixact {
        let (oldest, next) = (checkpoint.oldest_multi, checkpoint.next_multi);
        notes.push(if multi.precedes(next) && !multi.precedes(oldest) {
            format!("multixact {multi} is one of those that the cluster knows, {oldest} to {next}")
        } else {
            format!("at the last checkpoint the cluster knew multixacts {oldest} to {next}: number {multi} is not one of them, so it comes from damaged bytes or an old page")
        });
    }
    if let Some(file) = facts
        .file
        .as_deref()
        .filter(|file| !file.starts_with('/') && !file.contains(".."))
    {
        let words = if cluster.source().len(file).is_ok() {
            "is there now"
        } else {
            "is not there"
        };
        notes.push(format!("{file} {words}"));
    }
}
