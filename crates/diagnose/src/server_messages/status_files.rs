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
        let next = checkpoint.next_xid();
        let file = cluster.transactions.file_of(xid);
        let is_there = cluster.source().len(&file).is_ok();
        notes.push(if xid.precedes(next) {
            let words = if is_there { "is there" } else { "is missing" };
            format!("transaction {xid} is older than the next one, {next}; its status stands in {file}, which {words}")
        } else {
            format!("at the last checkpoint the next transaction was {next}: number {xid} had not been given out, so it comes from damaged bytes")
        });
    }
    if let Some(multi) = facts.multixact {
        let next = checkpoint.next_multi;
        notes.push(if multi.precedes(next) {
            format!("multixact {multi} is older than the next one, {next}")
        } else {
            format!("at the last checkpoint the next multixact was {next}: number {multi} had not been given out, so it comes from damaged bytes")
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
