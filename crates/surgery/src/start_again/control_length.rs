//! A control file that ends after what the server reads of it: zeros fill it up to its length.
//!
//! Truth: `WriteControlFile` in `src/backend/access/transam/xlog.c`, which writes zeros after the
//! live part.

use pgclinic_cluster::Cluster;
use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_model::plan::Safety;

use super::{CONTROL_FILE, Draft, control_bytes, write};

pub(super) const NAME: &str = "fill-control-file";

/// Nothing where it has its length, or where its checksum does not vouch for what is left.
pub(super) fn draft(cluster: &Cluster) -> Option<Draft> {
    let control = cluster.control.trusted()?;
    let mut bytes = control_bytes(cluster);
    let found = bytes.len();
    if found >= FILE_BYTES {
        return None;
    }
    bytes.resize(FILE_BYTES, 0);
    let summary = format!("the control file is filled up with zeros to {FILE_BYTES} bytes");
    let draft = Draft::new(NAME, Safety::Exact, CONTROL_FILE, summary)
        .because(format!(
            "all that it says is there: its checksum {:#010x} over the first {} bytes is right",
            control.crc_stored, control.crc_at
        ))
        .because("after that the server writes nothing but zeros");
    let change = write(cluster, CONTROL_FILE, bytes, FILE_BYTES as u64);
    Some(draft.change(format!("{found} bytes become {FILE_BYTES}"), change))
}
