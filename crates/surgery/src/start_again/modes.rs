//! Permissions of the data directory.
//!
//! Truth: `checkDataDir` in `src/backend/utils/init/miscinit.c`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pgclinic_model::plan::{Change, Safety};

use super::Draft;

pub(super) const NAME: &str = "set-permissions";
/// `PG_MODE_MASK_GROUP`.
const REFUSED: u32 = 0o027;
const GROUP_READS: u32 = 0o050;

/// The server refuses a directory that its group may write to, or others may enter.
pub(super) fn draft(pgdata: &Path) -> Option<Draft> {
    let before = std::fs::metadata(pgdata).ok()?.mode() & 0o7777;
    if before & REFUSED == 0 && before & 0o700 == 0o700 {
        return None;
    }
    let after = if before & GROUP_READS == GROUP_READS {
        0o750
    } else {
        0o700
    };
    let draft = Draft::new(
        NAME,
        Safety::Exact,
        ".",
        format!("permissions of the data directory become {after:04o}"),
    );
    let draft = draft.because(format!(
        "they are {before:04o}, and the server takes 0700 or 0750 only"
    ));
    let change = Change::Mode {
        path: ".".into(),
        before,
        after,
    };
    Some(draft.change(format!("{before:04o} becomes {after:04o}"), change))
}
