//! A patch shown over a source: what the cluster would be, without a byte written.

use std::sync::Arc;

use pgclinic_model::plan::{Change, Patch};
use pgclinic_source::{Overlay, OverlayPatch, Source, SourceError};

/// The source with the patch laid over it. Directories, permission bits, links and bytes that
/// lie beside a journal do not show.
///
/// # Errors
/// When a path of the patch is none that a source accepts.
pub fn overlay(under: Arc<dyn Source>, patch: &Patch) -> Result<Arc<dyn Source>, SourceError> {
    let patches = patch.changes.iter().flat_map(overlaid).collect();
    Ok(Arc::new(Overlay::new(under, patches)?))
}

fn overlaid(change: &Change) -> Vec<OverlayPatch> {
    let path = change.path().to_owned();
    match change {
        Change::Bytes { offset, after, .. } => vec![OverlayPatch::Bytes {
            path,
            offset: *offset,
            bytes: after.clone(),
        }],
        Change::Extend { before, after, .. } => vec![OverlayPatch::Bytes {
            path,
            offset: before.unwrap_or(0),
            bytes: after.clone(),
        }],
        Change::Cut { len, .. } => vec![OverlayPatch::Cut { path, len: *len }],
        Change::Remove { .. } => vec![OverlayPatch::Remove { path }],
        Change::Write { bytes, len, .. } => vec![
            OverlayPatch::Remove { path: path.clone() },
            OverlayPatch::Bytes {
                path: path.clone(),
                offset: 0,
                bytes: bytes.clone(),
            },
            OverlayPatch::Grow { path, len: *len },
        ],
        // These bytes lie beside the journal alone.
        Change::Append { .. }
        | Change::Directory { .. }
        | Change::RemoveDirectory { .. }
        | Change::Mode { .. }
        | Change::Link { .. } => Vec::new(),
    }
}
