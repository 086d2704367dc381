//! What a document says of the cluster that it is about.

use pgclinic_model::document::Target;

use crate::Cluster;

fn kind_of(cluster: &Cluster) -> &'static str {
    if !cluster.links().is_empty() {
        "backup-chain"
    } else if cluster.source().spec().is_tar() {
        "tar-backup"
    } else if cluster.source().spec().is_server() {
        "server"
    } else if cluster.is_base_backup() {
        "base-backup"
    } else {
        "data-directory"
    }
}

/// As the control file has it; that a server is at work comes first.
fn state_of(cluster: &Cluster, written: &str) -> String {
    if cluster.is_running() {
        format!("running, {written}")
    } else {
        written.to_owned()
    }
}

/// The target's part of a document.
pub fn target_of(cluster: &Cluster, spec: &str) -> Target {
    let control = cluster.control.trusted();
    Target {
        spec: spec.to_owned(),
        kind: kind_of(cluster).into(),
        major: Some(cluster.layout.major),
        system_identifier: control.map(|control| control.system_identifier.to_string()),
        block_size: Some(cluster.build.block_size),
        segment_size: Some(cluster.build.segment_bytes),
        checksums: cluster.checksums(),
        state: control.map(|control| state_of(cluster, &control.state.to_string())),
    }
}
