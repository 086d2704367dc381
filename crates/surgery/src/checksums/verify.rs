//! Every page read as a server with checksums would, before the control file says that there are
//! any.

use std::path::Path;
use std::sync::Arc;

use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::Cluster;
use pgclinic_model::Level;
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};

use super::journal::ChecksumsJournal;
use super::survey::{damaged_pages, is_read_whole};
use super::{ChecksumsRun, Ending};
use crate::error::{Error, Result};

/// Reads every page. Pages that were damaged before are not asked again: nothing was to be made of
/// them.
pub(super) fn verified(
    pgdata: &Path,
    journal: &ChecksumsJournal,
    run: &ChecksumsRun<'_>,
) -> Result<Ending> {
    let cluster = with_checksums(pgdata, journal).map_err(|why| Error::Patch { why })?;
    let options = CheckOptions {
        level: Level::Pages,
        ..run.check.clone()
    };
    let document = check_cluster(&cluster, &options, run.progress);
    if document.interrupted {
        return Ok(Ending::Interrupted);
    }
    let mut damaged = damaged_pages(&document).into_iter();
    let is_right = is_read_whole(&document)
        && damaged.all(|page| journal.known.iter().any(|known| known.page == page));
    Ok(if is_right {
        Ending::Whole
    } else {
        Ending::NotVerified(Box::new(document))
    })
}

/// The cluster as it will be once its control file is written.
fn with_checksums(
    pgdata: &Path,
    journal: &ChecksumsJournal,
) -> std::result::Result<Cluster, String> {
    let control = OverlayPatch::Bytes {
        path: super::control::CONTROL_FILE.into(),
        offset: 0,
        bytes: journal.control_after.clone(),
    };
    let files = DataDirectory::open(pgdata).map_err(|error| error.to_string())?;
    let source = Overlay::new(Arc::new(files), vec![control]).map_err(|error| error.to_string())?;
    Cluster::open(Arc::new(source)).map_err(|error| error.to_string())
}
