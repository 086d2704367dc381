//! The control file as a plan remembers it.

use pgclinic_cluster::Cluster;
use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_source::read_all;

use crate::error::{Error, Result};

const CONTROL_FILE: &str = "global/pg_control";

/// BLAKE3 of the control file, in hexadecimal. Each start of a server writes it, so that the same
/// hash means that no server ran in between.
///
/// # Errors
/// When it cannot be read.
pub fn control_file_hash(cluster: &Cluster) -> Result<String> {
    let bytes = read_all(
        cluster.source().as_ref(),
        CONTROL_FILE,
        FILE_BYTES as u64 * 2,
    );
    let bytes = bytes.map_err(|error| Error::Cure {
        place: CONTROL_FILE.into(),
        why: error.to_string(),
    })?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}
