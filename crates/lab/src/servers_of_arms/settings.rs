//! Settings of the laboratory's servers: those that PostgreSQL ships with, where the scratch
//! servers of other rooms are tuned for quick and quiet tests.

use std::collections::BTreeMap;

use crate::cell::{Arm, Cell};
use crate::experiment::Matrix;

/// The shipped values of what [`pgclinic_servers`] sets otherwise. `dynamic_shared_memory_type`
/// stays `mmap`, so that nothing stays behind in `/dev/shm` when a server is killed.
const SHIPPED: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("shared_buffers", "128MB"),
    ("max_connections", "100"),
    ("max_wal_senders", "10"),
    ("max_prepared_transactions", "0"),
    ("huge_pages", "try"),
    ("jit", "on"),
    ("update_process_title", "on"),
    ("wal_recycle", "on"),
    ("autovacuum", "on"),
    ("max_parallel_workers_per_gather", "2"),
    ("max_parallel_maintenance_workers", "2"),
    ("synchronize_seqscans", "on"),
];

/// Connections that the laboratory itself needs beside those of the load.
const OWN_CONNECTIONS: u32 = 15;

/// What the experiment asks for: the arm's settings, then those that are axes.
pub(crate) fn wanted(matrix: &Matrix, cell: &Cell, arm: &Arm) -> BTreeMap<String, String> {
    let mut settings = arm.settings.clone();
    for axis in &matrix.axes {
        if let Some(setting) = &axis.setting {
            settings.insert(setting.clone(), cell.at(&axis.name).to_owned());
        }
    }
    settings
}

/// The settings of a cell's server: shipped values, then what is wanted.
pub(crate) fn settings_of(
    wanted: BTreeMap<String, String>,
    major: u16,
    connections: u32,
) -> BTreeMap<String, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut settings: BTreeMap<String, String> = SHIPPED.iter().map(own).collect();
    if major >= 18 {
        settings.insert("io_method".to_owned(), "worker".to_owned());
    }
    if connections + OWN_CONNECTIONS > 100 {
        let connections = (connections + OWN_CONNECTIONS).to_string();
        settings.insert("max_connections".to_owned(), connections);
    }
    settings.extend(wanted);
    settings
}
